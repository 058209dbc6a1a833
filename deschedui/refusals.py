"""What an installation must not start with, outside the demo: looked for in its environment, all reported together.

What only the database shows (the demo's people) is looked for by ``decisions.checks``.
"""

from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, unquote, urlsplit

if TYPE_CHECKING:
    from deschedui.config import Environment

LEAST_KEY: Final = 50  # characters; also what Django's own deployment check asks for
LEAST_DIFFERENT: Final = 8  # different characters in a key
# Keys that stand in a template, an example or a documentation; whoever reads those can sign sessions.
_EXAMPLES: Final = ("django-insecure-", "only-for-debug", "<", "change")
_DEMO: Final = "; DESCHEDUI_DEMO=1 permits this and all below on a developer's machine"


def objections(env: "Environment", environ: Mapping[str, str]) -> list[str]:
    """Everything that this environment must not have: a sentence each that begins with the variable.

    Args:
        environ: where uvicorn's own ``WEB_CONCURRENCY`` would be.
    """
    return [] if env.demo else list(_objections(env, environ))


def _objections(env: "Environment", environ: Mapping[str, str]) -> Iterator[str]:
    if env.debug:
        yield "DESCHEDUI_DEBUG: must be off: its error pages show what the process holds" + _DEMO
    if env.secret_key and (why := weak_key(env.secret_key)):
        yield f"DESCHEDUI_SECRET_KEY: {why}; make one with: python3 -c {_ONE_LINER!r}"
    if any(host.strip(".") in {"*", ""} for host in env.allowed_hosts):
        yield "DESCHEDUI_ALLOWED_HOSTS: must name hosts: * would answer to any Host header"
    yield from sqlite_objection(env.database_url, _web_processes(env, environ))
    if ours := [name for name in env.extender_header_env if name.upper().startswith("DESCHEDUI_")]:
        yield f"DESCHEDUI_EXTENDER_HEADER_ENV: must not let a policy send our own secrets: {', '.join(ours)}"
    for url in filter(without_password, env.broker_url.split(";")):
        yield (
            f"DESCHEDUI_BROKER_URL: the broker at {urlsplit(url).hostname} has no password, and whoever reaches it can "
            "send tasks: write redis://:<password>@host:port/0"
        )


_ONE_LINER: Final = "import secrets; print(secrets.token_urlsafe(48))"


def weak_key(key: str) -> str:
    """Why a key can be guessed, or an empty text. Never repeats the key."""
    if len(key) < LEAST_KEY:
        return f"must have at least {LEAST_KEY} characters, it has {len(key)}"
    if len(set(key)) < LEAST_DIFFERENT:
        return f"must have at least {LEAST_DIFFERENT} different characters"
    if key.lower().startswith(_EXAMPLES):
        return "is one that stands in an example"
    return ""


def _web_processes(env: "Environment", environ: Mapping[str, str]) -> int:
    """As set; uvicorn starts as many as WEB_CONCURRENCY says where it is told nothing else."""
    told = environ.get("WEB_CONCURRENCY", "")
    return max(env.web_processes, int(told) if told.isdecimal() else 0)


def sqlite_objection(database_url: str, web_processes: int) -> Iterator[str]:
    """SQLite takes one writer at a time, and each web process has its own view of who waits."""
    if web_processes > 1 and database_url.startswith("sqlite"):
        yield (
            f"DESCHEDUI_WEB_PROCESSES: {web_processes} web processes (WEB_CONCURRENCY counts too) need PostgreSQL, and "
            "DESCHEDUI_DATABASE_URL names SQLite: run one, or change the database"
        )


def without_password(broker_url: str) -> bool:
    """Whether anybody on the network could use this broker. A certificate of ours is as good as a password."""
    parts = urlsplit(broker_url.strip())
    if parts.scheme not in {"redis", "rediss"} or is_loopback(parts.hostname or ""):
        return False
    certificate = parts.scheme == "rediss" and "ssl_certfile" in parse_qs(parts.query)
    return not parts.password and not certificate


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches it; an empty host is this machine."""
    if host in {"", "localhost"}:
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def secrets_of(env: "Environment") -> list[str]:
    """Values of the environment that must not be logged: the key, and the URLs' passwords as written and as read."""
    urls = [env.database_url, *env.broker_url.split(";")]
    passwords = [password for url in urls if (password := _password(url))]
    return [env.secret_key, *passwords, *map(unquote, passwords)]


def _password(url: str) -> str:
    try:
        return urlsplit(url).password or ""
    except ValueError:
        return ""
