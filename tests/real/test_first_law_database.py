"""The first law while a real PostgreSQL is away, hangs, is locked or is full: a no, before the caller stops waiting."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from time import monotonic

import psycopg
import pytest

from tests.doors.edges import pod_body
from tests.doors.ignorable import Heard, question, said
from tests.doors.installed import Web, environment_of, install
from tests.real.first_law import Database, stopped
from tests.real.services import Missing, postgresql, skip

pytestmark = pytest.mark.real


@contextmanager
def a_database() -> Iterator[Database]:
    """A PostgreSQL of our own, since it is stopped and ended."""
    try:
        with postgresql() as url:
            server = Database.of(url)
            yield server
            server.go_on()
    except Missing as missing:
        skip(str(missing))


@contextmanager
def serving(database: Database, folder: Path) -> Iterator[tuple[Web, str]]:
    """A web process on it, and a caller's token."""
    environment = environment_of(folder, DESCHEDUI_DATABASE_URL=database.url)
    token = install(environment)["plain"]
    with Web(folder, environment) as web:
        yield web, token


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with a_database() as server:
        yield server


@pytest.fixture(scope="module")
def served(database: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Web, str]]:
    with serving(database, tmp_path_factory.mktemp("first-law-database")) as web:
        yield web


def ask(web: Web, token: str, number: int = 0) -> Heard:
    return said(web.port, question(pod_body(f"uid-{number}", name=f"web-{number}"), token=token))


def crowd(web: Web, token: str, callers: int = 60) -> list[str]:
    """Many callers at once; what made them evict."""
    with ThreadPoolExecutor(callers) as pool:
        return [
            str(heard)
            for heard in pool.map(lambda number: ask(web, token, number), range(callers))
            if heard.evicts
        ]


def serves_again(web: Web, token: str, seconds: float = 20) -> Heard:
    """Ask until the answer comes from the database again; every answer on the way is a no as well."""
    deadline = monotonic() + seconds
    while True:
        heard = ask(web, token)
        assert not heard.evicts, heard
        if "waiting for approval" in heard.why or monotonic() > deadline:
            return heard


def test_a_database_that_hangs(served: tuple[Web, str], database: Database) -> None:
    web, token = served
    assert "waiting for approval" in ask(web, token).why
    with stopped(database):
        assert crowd(web, token) == []
        assert "in time" in ask(web, token).why
        assert "in time" in ask(web, "nobody").why
    assert "waiting for approval" in serves_again(web, token).why


def test_a_process_that_was_started_while_the_database_hung(
    served: tuple[Web, str], database: Database, tmp_path: Path
) -> None:
    _, token = served
    with (
        stopped(database),
        Web(tmp_path, environment_of(tmp_path, DESCHEDUI_DATABASE_URL=database.url)) as web,
    ):
        heard = ask(web, token)
        assert not heard.evicts, heard
        assert heard.seconds < 1


@pytest.mark.parametrize(
    "lock",
    ["LOCK TABLE decisions_decision", "LOCK TABLE decisions_callertoken", "LOCK TABLE decisions_cluster"],
)
def test_a_table_that_is_locked(served: tuple[Web, str], database: Database, lock: str) -> None:
    web, token = served
    with psycopg.connect(database.url) as connection:
        connection.execute(f"{lock} IN ACCESS EXCLUSIVE MODE")
        assert crowd(web, token) == []
        connection.rollback()
    assert "waiting for approval" in serves_again(web, token).why


def test_no_connection_left(served: tuple[Web, str], database: Database) -> None:
    web, token = served
    with ExitStack() as taken:
        for _ in range(2):  # all there are; then also those that web had
            ours = _take_all(taken, database.url)
            _end_all_but(ours)
        assert crowd(web, token) == []
    assert "waiting for approval" in serves_again(web, token).why


def _take_all(taken: ExitStack, url: str) -> psycopg.Connection:
    """Connect until it is refused; gives one of the connections."""
    last = taken.enter_context(psycopg.connect(url, application_name="test", autocommit=True))
    with suppress(psycopg.OperationalError):
        while True:
            taken.enter_context(psycopg.connect(url, application_name="test", autocommit=True))
    return last


def _end_all_but(ours: psycopg.Connection) -> None:
    ours.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE backend_type = 'client backend' AND application_name <> 'test'"
    )


def test_a_database_that_was_ended(tmp_path: Path) -> None:
    with a_database() as database, serving(database, tmp_path) as (web, token):
        assert "waiting for approval" in ask(web, token).why
        database.end()
        assert crowd(web, token) == []
        heard = ask(web, token)
    assert "cannot reach its database" in heard.why or "in time" in heard.why
