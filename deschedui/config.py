"""Every setting of this installation that comes from the environment, in one place, with its default.

A setting ``secret_key`` is read from ``DESCHEDUI_SECRET_KEY`` or, for secrets mounted as files, from the
file that ``DESCHEDUI_SECRET_KEY_FILE`` names. A bad value stops the start with a sentence that names the
variable. What differs from cluster to cluster is not here: see ``decisions.models.settings``.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from deschedui import installation, refusals

PREFIX = "DESCHEDUI_"
ROOT = Path(__file__).resolve().parent.parent


def _split(value: object) -> object:
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


Words = Annotated[tuple[str, ...], BeforeValidator(_split)]


class ConfigurationError(Exception):
    """A value of the environment cannot be used; the text names each variable and what is wrong with it."""


class Environment(BaseModel):
    """The settings of one process. Field descriptions are the documentation (``manage.py environment``)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    secret_key: str = Field(
        "",
        repr=False,
        description="Signs sessions and forms. Required unless DEBUG is on; 50 characters or more.",
    )
    debug: bool = Field(default=False, description="Django's debug pages. Refused outside the demo.")
    demo: bool = Field(
        default=False,
        description="A demo or a developer's machine: what is refused at an installation's start is let through.",
    )
    allowed_hosts: Words = Field(
        ("localhost", "127.0.0.1", "[::1]"), description="Host names that pages and API answer to."
    )
    trusted_origins: Words = Field((), description="Origins (https://…) from which forms may be posted.")
    public_url: str = Field(
        "http://localhost:8000",
        pattern=r"^https?://[^/\s]+$",
        description="Where people open deschedui; links in doors' answers begin with it.",
    )
    database_url: str = Field(
        f"sqlite:///{ROOT / 'var' / 'deschedui.sqlite3'}",
        pattern=r"^(sqlite:///|postgres(ql)?://)",
        repr=False,
        description="sqlite:///<path>, or postgresql://user:password@host:port/name.",
    )
    broker_url: str = Field(
        f"filesystem://{ROOT / 'var' / 'broker'}",
        pattern=r"^(redis|rediss|redis\+socket|filesystem|memory)://",
        repr=False,
        description="redis://:password@host:6379/0 in production; filesystem://<folder> for one machine.",
    )
    static_root: str = Field(
        str(ROOT / "staticfiles"),
        description="Where collectstatic puts what pages load; empty there: the sources.",
    )
    behind_https: bool = Field(
        default=False,
        description="A proxy ends TLS and sets X-Forwarded-Proto; cookies get Secure, http is sent on to https.",
    )
    hsts_seconds: int = Field(
        365 * 24 * 3600,
        ge=0,
        description="Behind HTTPS: how long browsers insist on it, for subdomains too; 0: they are not told to.",
    )
    web_processes: int = Field(
        1,
        ge=1,
        le=64,
        description="Web processes on this database, all together; more than one needs PostgreSQL.",
    )
    trusted_proxies: int = Field(
        0,
        ge=0,
        le=8,
        description="Proxies in front of web that append to X-Forwarded-For; 0: that header is not read.",
    )
    session_idle_hours: float = Field(
        8.0, gt=0, le=24, description="A session ends after so long without a person's doing; polls are none."
    )
    session_hours: float = Field(12.0, gt=0, le=168, description="A session ends so long after signing in.")
    time_zone: str = Field("UTC", description="Time zone of people who chose none.")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field("INFO", description="Least level logged.")
    cluster_name: str = Field("", max_length=63, description="Made at the first start: the cluster's name.")
    cluster_in_cluster: bool = Field(
        default=False, description="That cluster is the one we run in (service account)."
    )
    cluster_kubeconfig: str = Field(
        "", description="That cluster's kubeconfig file; empty: the client's default."
    )
    cluster_context: str = Field(
        "", description="That cluster's context in the kubeconfig; empty: the current."
    )
    policy_file: str = Field("", description="That cluster's DeschedulerPolicy file.")
    policy_configmap: str = Field("", description="Or a ConfigMap, as namespace/name/key.")
    installation_id: str = Field(
        "",
        repr=False,
        description="Random, 16 characters or more, the same for web, worker and beat, and never in the database: by "
        "it a copy of the database is told apart. Required; with SQLite a file var/installation-id is made for it.",
    )
    extender_files: str = Field("", description="Folder below which a policy may name TLS and header files.")
    extender_header_env: Words = Field((), description="Environment variables that ${env:NAME} may read.")
    extender_hosts: Words = Field((), description="Hosts that extenders may have; empty: any but link-local.")
    extender_concurrency: int = Field(32, ge=1, le=512, description="Extender calls in flight for one cycle.")
    worker_concurrency: int = Field(8, ge=1, le=64, description="Threads of one worker.")
    tick_seconds: float = Field(
        2.0,
        ge=0.1,
        le=60,
        description="How often beat looks for what is due; pages say a worker is away after 30 s.",
    )
    api_undo_seconds: float = Field(
        0.0,
        ge=0,
        le=60,
        description="Wait between an approval by API and the eviction; pages have the cluster's.",
    )

    @property
    def served_by_https(self) -> bool:
        """Whether people reach the pages by HTTPS: what cookies, their names and redirects depend on."""
        return self.behind_https or self.public_url.startswith("https://")


def _raw_values(environ: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    values: dict[str, str] = {}
    problems: list[str] = []
    for name in Environment.model_fields:
        variable = PREFIX + name.upper()
        file_name = environ.get(f"{variable}_FILE")
        if file_name:
            try:
                values[name] = Path(file_name).read_text(encoding="utf-8").strip()
            except OSError as error:
                problems.append(f"{variable}_FILE: {error.strerror or error} ({file_name})")
        elif variable in environ:
            values[name] = environ[variable]
    return values, problems


def _sentence(error: Mapping[str, Any]) -> str:
    variable = PREFIX + str(error["loc"][0]).upper()
    shown = (
        ""
        if "secret" in variable.lower() or "url" in variable.lower()
        else f" (it is {error['input']!r:.80})"
    )
    return f"{variable}: {error['msg']}{shown}"


_ONE_LINER = "import secrets; print(secrets.token_hex(16))"


def _installation_problems(env: Environment) -> list[str]:
    variable = f"{PREFIX}INSTALLATION_ID"
    if env.installation_id:
        fits = re.fullmatch(installation.PATTERN, env.installation_id)
        return [] if fits else [f"{variable}: must be 16 to 128 letters, digits, dots, dashes or underscores"]
    if env.database_url.startswith("sqlite") or env.debug or env.demo:
        return []
    missing = (
        f"must be set (or {variable}_FILE) to a random value that is kept beside the database, not in it"
    )
    why = "without it a restored or copied database could evict again"
    return [f"{variable}: {missing}: {why}; make one with: python3 -c {_ONE_LINER!r}"]


def kept_installation_id() -> str:
    """The id of an installation on one machine, kept in a file.

    Raises:
        ConfigurationError: the file cannot be made or read, or holds no id.
    """
    path, variable = ROOT / "var" / "installation-id", f"{PREFIX}INSTALLATION_ID"
    try:
        found = installation.kept_in(path)
    except OSError as error:
        raise ConfigurationError(f"{variable}: set it, or let {path} be made: {error.strerror}") from error
    if not re.fullmatch(installation.PATTERN, found):
        raise ConfigurationError(
            f"{variable}: {path} does not hold an id; delete it, and an admin confirms the new one"
        )
    return found


def load(environ: Mapping[str, str]) -> Environment:
    """Read the environment; all bad values together.

    Raises:
        ConfigurationError: names every variable that cannot be used and why.
    """
    values, problems = _raw_values(environ)
    try:
        env = Environment.model_validate(values)
    except ValidationError as failure:
        problems += [_sentence(error) for error in failure.errors()]
        bad = {error["loc"][0] for error in failure.errors()}
        env = Environment.model_validate({name: values[name] for name in values if name not in bad})
    if not env.secret_key and not env.debug and not any("SECRET_KEY" in problem for problem in problems):
        problems.append(
            f"{PREFIX}SECRET_KEY: must be set (or {PREFIX}SECRET_KEY_FILE) unless {PREFIX}DEBUG is on"
        )
    problems += _installation_problems(env)
    problems += refusals.objections(env, environ)
    if problems:
        raise ConfigurationError("\n".join(problems))
    return env
