"""TCP links of our own between the processes, each of which can be cut off, slowed down or robbed of its answers.

A link stands between one client and one service (``worker-1`` and ``postgresql``), so that a fault can harm one
process's connections or everybody's to one service. All of them live in one thread with an event loop.
"""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import threading
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from tests.campaign.faults import Kind

LOOPBACK: Final = "127.0.0.1"
CHUNK: Final = 64 * 1024
_LOW, _HIGH = 20_000, 32_000

T = TypeVar("T")


def free_port() -> int:
    """A free port that the system gives to nobody by itself: it stays ours while a process is down."""
    while True:
        port = random.randint(_LOW, _HIGH)
        try:
            socket.create_server((LOOPBACK, port)).close()
        except OSError:
            continue
        return port


@dataclass(frozen=True)
class Harm:
    """What a fault does to a link."""

    kind: Kind
    delay: float = 0.0


_WORST: Final = (Kind.REFUSE, Kind.SWALLOW, Kind.LOSE_ANSWERS, Kind.SLOW)


class Loop:
    """A thread with an event loop: a context manager."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="links", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.run(_end_all())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(5)
        self.loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something in it and wait for the result."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(30)


async def _end_all() -> None:
    """End whatever still runs, and let it close its sockets."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.sleep(0)  # a transport closes its socket in the next round


@dataclass
class Link:
    """One client's way to one service.

    Args:
        to: the service's port.
        port: where the client connects.
    """

    client: str
    service: str
    to: int
    port: int = field(default_factory=free_port)
    harms: dict[int, Harm] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._changed = asyncio.Event()
        self._open: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    # --- by the loop's thread

    async def open(self) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._pass, LOOPBACK, self.port, backlog=256)

    async def close(self) -> None:
        """Listen no longer."""
        if self._server is not None:
            self._server.close()
            self._server = None

    async def harm(self, number: int, harm: Harm) -> None:
        """Begin a fault; one that resets is over at once."""
        if harm.kind in {Kind.RESET, Kind.REFUSE}:
            self._reset()
        if harm.kind is not Kind.RESET:
            self.harms[number] = harm
            await self._obey()

    async def heal(self, number: int) -> None:
        """End a fault. What was swallowed meanwhile arrives now, as after a partition."""
        self.harms.pop(number, None)
        await self._obey()

    async def _obey(self) -> None:
        refuses = any(harm.kind is Kind.REFUSE for harm in self.harms.values())
        if refuses:
            await self.close()
        elif self._server is None:
            await self.open()
        self._changed.set()
        self._changed = asyncio.Event()

    def _reset(self) -> None:
        for writer in list(self._open):
            _reset(writer)

    @property
    def _now(self) -> Harm | None:
        return min(self.harms.values(), key=lambda harm: _WORST.index(harm.kind), default=None)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(LOOPBACK, self.to)
        except OSError:
            _reset(writer)
            return
        ours = {writer, far_writer}
        self._open |= ours
        there = asyncio.ensure_future(self._pump(reader, far_writer, answers=False))
        back = asyncio.ensure_future(self._pump(far_reader, writer, answers=True))
        try:
            await asyncio.gather(there, back)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            for each in ours:
                _reset(each)
        finally:
            for pump in (there, back):
                pump.cancel()
            self._open -= ours
            for each in ours:
                each.close()

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answers: bool
    ) -> None:
        while data := await reader.read(CHUNK):
            await self._suffer(answers=answers)
            writer.write(data)
            await writer.drain()
        await self._suffer(answers=False)
        if writer.can_write_eof():
            writer.write_eof()

    async def _suffer(self, *, answers: bool) -> None:
        while (harm := self._now) is not None:
            if harm.kind is Kind.SLOW:
                await asyncio.sleep(harm.delay)
                return
            if harm.kind is Kind.LOSE_ANSWERS:
                if answers:
                    raise ConnectionResetError("the answer is lost")
                return
            await self._changed.wait()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close with a RST instead of a FIN."""
    sock = writer.get_extra_info("socket")
    if sock is not None and sock.fileno() >= 0:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


class Links:
    """All links: made once, harmed by the names at their ends."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._links: dict[tuple[str, str], Link] = {}

    def add(self, client: str, service: str, to: int) -> int:
        """A new link; the port for the client."""
        link = Link(client, service, to)
        self._links[client, service] = link
        self._loop.run(link.open())
        return link.port

    def harm(self, number: int, target: str, harm: Harm) -> None:
        """Begin a fault on every link that ends at this target."""
        for link in self._touching(target):
            self._loop.run(link.harm(number, harm))

    def heal(self, number: int, target: str) -> None:
        """End it."""
        for link in self._touching(target):
            self._loop.run(link.heal(number))

    def close(self) -> None:
        """Listen no longer."""
        for link in self._links.values():
            self._loop.run(link.close())

    def _touching(self, target: str) -> list[Link]:
        return [link for ends, link in self._links.items() if target in ends]


# --- the balancer in front of the two web processes ---------------------------------------------------------


Report = Callable[[str], None]


class Balancer:
    """What stands before two web processes: HTTP/1.1, one request a connection, passive health.

    A question at a door that one process did not answer is asked at the other, three times in all
    (``proxy_next_upstream`` with ``non_idempotent`` of nginx): it may be repeated. A person's click is repeated only
    where the connection was refused, so nothing of it was heard.
    """

    def __init__(self, ports: dict[str, int], *, per_try: float, note: Report) -> None:
        self.port, self._note = free_port(), note
        self._ports, self._per_try = ports, per_try
        self._bad_until: dict[str, float] = {}
        self._turn = 0
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._serve, LOOPBACK, self.port, backlog=256)

    async def close(self) -> None:
        """Listen no longer."""
        if self._server is not None:
            self._server.close()

    def _order(self) -> list[str]:
        self._turn += 1
        now = asyncio.get_running_loop().time()
        names = sorted(self._ports, key=lambda name: name != sorted(self._ports)[self._turn % 2])
        return sorted(names, key=lambda name: self._bad_until.get(name, 0.0) > now)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await _request(reader)
            writer.write(await self._answer(request))
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError, ValueError):
            writer.transport.abort()
        finally:
            writer.close()

    async def _answer(self, request: bytes) -> bytes:
        again = request.split(b" ", 2)[1].startswith((b"/doors", b"/healthz"))
        order = self._order()
        for name in (*order, order[0]):
            heard = False
            try:
                async with asyncio.timeout(self._per_try):
                    reader, writer = await asyncio.open_connection(LOOPBACK, self._ports[name])
                    heard = True
                    answer = await _exchange(reader, writer, request)
            except (OSError, TimeoutError) as error:
                line = request.split(b"\r\n", 1)[0].decode("latin-1")
                self._note(f"{time.time():.3f} {name}: {line}: {type(error).__name__} {error}")
                self._bad_until[name] = asyncio.get_running_loop().time() + 3
                if heard and not again:
                    return _gateway("the web process did not answer")
            else:
                return answer
        return _gateway("no web process answered")


async def _request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    lines = [line for line in head[:-4].split(b"\r\n") if not line.lower().startswith(b"connection:")]
    length = next(
        (int(line.split(b":")[1]) for line in lines if line.lower().startswith(b"content-length:")), 0
    )
    return b"\r\n".join([*lines, b"Connection: close", b"", b""]) + await reader.readexactly(length)


async def _exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> bytes:
    try:
        writer.write(request)
        answer = await reader.read(-1)
        if not _whole(answer):
            raise ConnectionResetError("half an answer")
        return answer
    finally:
        writer.transport.abort()


def _whole(answer: bytes) -> bool:
    """Whether an answer is complete."""
    head, found, body = answer.partition(b"\r\n\r\n")
    if not found:
        return False
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return len(body) == int(line.split(b":")[1])
    return body.endswith(b"0\r\n\r\n") if b"chunked" in head.lower() else True


def _gateway(why: str) -> bytes:
    body = why.encode()
    return b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (
        len(body),
        body,
    )
