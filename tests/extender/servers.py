"""An extender of real sockets in a thread, which misbehaves on demand."""

import asyncio
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from deschedui.extender.client import ExtenderClient
from tests.extender.builders import args

Behaviour = Callable[["Call"], Awaitable[None]]


@dataclass
class Call:
    """One question that has arrived."""

    head: bytes
    body: bytes
    writer: asyncio.StreamWriter

    async def send(self, *pieces: bytes, every: float = 0.0) -> None:
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()
            await asyncio.sleep(every)

    def reset(self) -> None:
        self.writer.transport.abort()


@dataclass
class Server:
    """Where it listens, and what it has seen."""

    port: int
    scheme: str
    calls: list[Call] = field(default_factory=list)
    connections: int = 0
    most_at_once: int = 0
    closed: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"


def response(body: bytes = b'{"allow":true}', status: str = "200 OK", *headers: str) -> bytes:
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def answering(*pieces: bytes, every: float = 0.0) -> Behaviour:
    """Sends these bytes, and goes on listening."""

    async def behave(call: Call) -> None:
        await call.send(*(pieces or (response(),)), every=every)

    return behave


def then_closing(*pieces: bytes) -> Behaviour:
    """Sends these bytes and closes."""

    async def behave(call: Call) -> None:
        await call.send(*pieces)
        call.writer.close()

    return behave


async def silence(call: Call) -> None:
    """Never answers."""
    await asyncio.sleep(30)


@contextmanager
def serving(behave: Behaviour, tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    """The server, running until the block ends."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server = Server(0, "https" if tls else "http")
    listening = asyncio.run_coroutine_threadsafe(_listen(server, behave, tls), loop).result(timeout=5)
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(_end(listening), loop).result(timeout=5)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout=5)
        loop.close()


async def _listen(server: Server, behave: Behaviour, tls: ssl.SSLContext | None) -> asyncio.Server:
    busy = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal busy
        server.connections += 1
        with suppress(asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            while not writer.is_closing():
                call = await _read(reader, writer)
                server.calls.append(call)
                busy += 1
                server.most_at_once = max(server.most_at_once, busy)
                try:
                    await behave(call)
                finally:
                    busy -= 1
        writer.transport.abort()
        asyncio.get_running_loop().call_soon(server.closed.release)

    listening = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    server.port = listening.sockets[0].getsockname()[1]
    return listening


async def _read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Call:
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].partition(b"\r")[0])
    return Call(head, await reader.readexactly(length), writer)


async def _end(listening: asyncio.Server) -> None:
    listening.close()
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


@contextmanager
def sending_the_last() -> Iterator[tuple[list[bytes], ExtenderClient]]:
    """A server that sends the last of a list of bytes and closes, and a client that asks it."""
    sent: list[bytes] = []

    async def behave(call: Call) -> None:
        await call.send(sent[-1])
        call.writer.close()

    with serving(behave) as server:
        given = args(urlPrefix=server.url, ignorable=False, httpTimeout="3s")
        with ExtenderClient([given]) as client:
            yield sent, client
