"""What an installation does not start with outside the demo; each sentence begins with the variable's name."""

import secrets
from typing import Any

import pytest

from deschedui.config import ConfigurationError, Environment, load
from deschedui.refusals import secrets_of

KEY = secrets.token_urlsafe(48)
GOOD = {"DESCHEDUI_SECRET_KEY": KEY, "DESCHEDUI_INSTALLATION_ID": secrets.token_hex(16)}


def refused(**variables: str) -> list[str]:
    """What the start says, a sentence each; empty where it starts."""
    try:
        load({**GOOD, **{f"DESCHEDUI_{name}": value for name, value in variables.items()}})
    except ConfigurationError as error:
        return str(error).splitlines()
    return []


def test_an_installation_with_a_good_key_starts() -> None:
    assert refused() == []


@pytest.mark.parametrize("on", ["1", "true", "True"])
def test_debug_is_refused(on: str) -> None:
    [said] = refused(DEBUG=on)
    assert said.startswith("DESCHEDUI_DEBUG: must be off")


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("", "must be set"),
        ("build", "at least 50 characters, it has 5"),
        (secrets.token_urlsafe(36), "at least 50 characters, it has 48"),
        ("ab" * 40, "at least 8 different characters"),
        ("django-insecure-" + secrets.token_urlsafe(48), "stands in an example"),
        ("<50 random characters><50 random characters><50 random characters>", "stands in an example"),
        ("ChangeMe-" + secrets.token_urlsafe(48), "stands in an example"),
    ],
)
def test_a_key_that_can_be_guessed_is_refused_and_not_repeated(key: str, why: str) -> None:
    [said] = refused(SECRET_KEY=key)
    assert said.startswith("DESCHEDUI_SECRET_KEY: ")
    assert why in said
    assert not key or key not in said


@pytest.mark.parametrize("hosts", ["*", "deschedui.example,*", " * ", "."])
def test_the_host_star_is_refused(hosts: str) -> None:
    [said] = refused(ALLOWED_HOSTS=hosts)
    assert said.startswith("DESCHEDUI_ALLOWED_HOSTS: must name hosts")


def test_a_domain_with_its_subdomains_is_a_name() -> None:
    assert refused(ALLOWED_HOSTS=".deschedui.example") == []


def test_several_web_processes_need_postgresql() -> None:
    [said] = refused(WEB_PROCESSES="2", DATABASE_URL="sqlite:////tmp/x.sqlite3")
    assert said.startswith("DESCHEDUI_WEB_PROCESSES: 2 web processes")
    assert "DESCHEDUI_DATABASE_URL" in said
    assert refused(WEB_PROCESSES="2", DATABASE_URL="postgresql://u:p@db/x") == []


def test_what_uvicorn_is_told_by_its_own_variable_counts() -> None:
    with pytest.raises(ConfigurationError, match="4 web processes"):
        load({**GOOD, "WEB_CONCURRENCY": "4"})


@pytest.mark.parametrize(
    "url",
    [
        "redis://redis:6379/0",
        "redis://10.0.0.7/0",
        "redis://user@redis/0",
        "redis://:@redis/0",
        "rediss://redis:6380/0",
        "redis://127.0.0.1/0;redis://redis/0",
        "redis://0.0.0.0:6379/0",
    ],
)
def test_a_broker_that_anybody_on_its_network_can_use_is_refused(url: str) -> None:
    [said] = refused(BROKER_URL=url)
    assert said.startswith("DESCHEDUI_BROKER_URL: ")
    assert "no password" in said


@pytest.mark.parametrize(
    "url",
    [
        "redis://127.0.0.1:6379/0",
        "redis://localhost/0",
        "redis://[::1]:6379/0",
        "redis+socket:///run/redis.sock",
        "redis://:secret@redis:6379/0",
        "rediss://redis/0?ssl_certfile=/etc/tls/tls.crt&ssl_keyfile=/etc/tls/tls.key",
        "filesystem:///var/lib/deschedui/broker",
    ],
)
def test_any_other_broker_is_not(url: str) -> None:
    assert refused(BROKER_URL=url) == []


def test_everything_is_said_at_once_with_what_is_malformed() -> None:
    said = refused(
        DEBUG="1",
        SECRET_KEY="short",
        ALLOWED_HOSTS="*",
        WEB_PROCESSES="3",
        BROKER_URL="redis://redis/0",
        WORKER_CONCURRENCY="many",
    )
    assert {line.partition(":")[0].removeprefix("DESCHEDUI_") for line in said} == {
        *("DEBUG", "SECRET_KEY", "ALLOWED_HOSTS", "WEB_PROCESSES", "BROKER_URL", "WORKER_CONCURRENCY"),
    }


def test_the_demo_may_do_it_all() -> None:
    assert refused(DEMO="1", DEBUG="1", ALLOWED_HOSTS="*", WEB_PROCESSES="2", BROKER_URL="redis://r/0") == []


def test_a_header_may_not_be_made_of_our_own_variables() -> None:
    [said] = refused(EXTENDER_HEADER_ENV="TEAM_TOKEN,DESCHEDUI_SECRET_KEY")
    assert said.startswith("DESCHEDUI_EXTENDER_HEADER_ENV: ")
    assert "DESCHEDUI_SECRET_KEY" in said


# --- and nothing repeats a secret ------------------------------------------------------------------------


def environment(**fields: Any) -> Environment:
    urls = {"database_url": "postgresql://u:p%40ss-word@db/x", "broker_url": "redis://:br0ker-pass@redis/0"}
    return Environment(secret_key=KEY, **urls, **fields)


def test_the_environment_does_not_print_its_secrets() -> None:
    shown = repr(environment()) + str(environment())
    assert not [secret for secret in secrets_of(environment()) if secret in shown]


def test_secrets_are_the_key_and_the_passwords_as_written_and_as_read() -> None:
    assert {"p%40ss-word", "p@ss-word", "br0ker-pass", KEY} == set(secrets_of(environment()))


@pytest.mark.parametrize("name", ["DATABASE_URL", "BROKER_URL"])
def test_a_malformed_url_is_not_repeated(name: str) -> None:
    said = " ".join(refused(**{name: "mysql://u:pa55word@db/x"}))
    assert f"DESCHEDUI_{name}" in said
    assert "pa55word" not in said
