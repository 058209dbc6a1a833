"""For the first law with real components: a PostgreSQL that is stopped, a proxy as a Service or an ingress is one."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from tests.doors.ignorable import Heard, question, said


@dataclass
class Database:
    """The processes of a PostgreSQL server."""

    url: str
    pid: int

    @classmethod
    def of(cls, url: str) -> Database:
        """The server behind a URL on this machine, once it has started up."""
        with _connected(url) as connection:
            row = connection.execute("SELECT pg_backend_pid()").fetchone()
            assert row is not None
            return cls(url, _parent(row[0]))

    def stop(self) -> None:
        """Stop it and all its backends: connections are taken by the kernel, and nothing comes back."""
        for pid in self._pids():
            os.kill(pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it go on."""
        for pid in self._pids():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def end(self) -> None:
        """End it at once: connections are refused."""
        os.kill(self.pid, signal.SIGQUIT)
        deadline = time.monotonic() + 10
        while _children(self.pid) and time.monotonic() < deadline:
            time.sleep(0.05)

    def _pids(self) -> list[int]:
        return [self.pid, *_children(self.pid)]


def _connected(url: str, seconds: float = 30.0) -> psycopg.Connection:
    deadline = time.monotonic() + seconds
    while True:
        try:
            return psycopg.connect(url)
        except psycopg.OperationalError:  # it listens before it takes anybody
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[1])


def _children(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError, IndexError):
            if entry.name.isdecimal() and _parent(int(entry.name)) == pid:
                found.append(int(entry.name))
    return found


@contextmanager
def stopped(database: Database) -> Iterator[None]:
    """A database that hangs for the length of the block."""
    database.stop()
    try:
        yield
    finally:
        database.go_on()


# --- a proxy


@dataclass
class Proxy:
    """Forwards connections to backends in turns; to the next one where the first does not take it, as kube-proxy
    with readiness and every ingress do. What was taken is never tried again: a POST is not repeated.
    """

    backends: list[int]
    port: int = 0
    ready: set[int] = field(default_factory=set)
    _turn: int = 0

    def __post_init__(self) -> None:
        self.ready = set(self.backends)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(5)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        backend = await self._connect()
        if backend is None:
            writer.transport.abort()
            return
        theirs, to_them = backend
        try:
            with suppress(asyncio.CancelledError):  # the end of the test; asyncio's streams would log it
                await asyncio.wait(
                    [asyncio.ensure_future(_pipe(*way)) for way in ((reader, to_them), (theirs, writer))],
                    return_when=asyncio.FIRST_EXCEPTION,
                )
        finally:
            to_them.transport.abort()
            writer.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        self._turn += 1
        ready = [port for port in self.backends if port in self.ready]
        first = self._turn % max(len(ready), 1)
        for port in [*ready[first:], *ready[:first]]:
            with suppress(OSError):
                return await asyncio.open_connection("127.0.0.1", port)
        return None

    def close(self) -> None:
        """End it, and every connection."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(5)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Raises OSError where one side is reset, so that the other one hears of it."""
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()
    writer.write_eof()


# --- a caller that keeps asking


class Asking:
    """Callers that ask without a pause in threads of their own, until the block ends; keeps what they heard."""

    def __init__(self, port: int, token: str, bodies: list[bytes]) -> None:
        self._asked = [question(body, token=token, headers=["Connection: close"]) for body in bodies]
        self._port, self._over = port, threading.Event()
        self.heard: list[Heard] = []
        self._threads = [threading.Thread(target=self._ask, args=(asked,)) for asked in self._asked]

    def __enter__(self) -> Asking:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _ask(self, asked: bytes) -> None:
        while not self._over.wait(0.01):
            self.heard.append(said(self._port, asked))

    def evictions(self) -> list[str]:
        """What made them evict."""
        return [str(heard) for heard in self.heard if heard.evicts]
