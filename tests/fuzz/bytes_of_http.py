"""Requests as bytes, more or less broken; and a server's protocol that takes them without a socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from uvicorn.config import Config
from uvicorn.server import ServerState

from decisions.doors.asgi import Application, with_doors
from decisions.doors.protocol import DoorProtocol
from decisions.doors.refusals import refusal

METHODS = ["POST", "GET", "PUT", "HEAD", "OPTIONS", "TRACE", "post", "P OST", "", "\x00", "X" * 50]
PATHS = [
    "/doors/evict",
    "//doors//evict/",
    "/doors",
    "/doors/a/evict",
    "/Doors/evict",
    "/%64oors/x",
    "/doors/%00",
]
PATHS += [
    "/doors/" + "x" * 70_000,
    "/doors/\x7f",
    "/doors/évict",
    "/doors/..",
    "http://h/doors/evict",
    "/doors/a b",
]
VERSIONS = ["HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "HTTP/9", "", "http/1.1"]
HEADERS = [
    "Host: localhost",
    "Host: localhost",
    "Host: evil",
    "Host:",
    "Content-Length: 2",
    "Content-Length: -1",
]
HEADERS += [
    "Content-Length: 99999999999999999999",
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: x",
    "Expect: 100-continue",
]
HEADERS += [
    "Connection: close",
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Authorization: Bearer x",
    ": x",
    "x",
    " x: y",
]
HEADERS += ["X: \x00", "X: " + "y" * 70_000, "Authorization: \xff", "Content-Length: 2, 2", "Cookie: a=b"]
BODIES = [
    b"",
    b"{}",
    b"5\r\n{'a'}\r\n0\r\n\r\n",
    b"zz\r\n",
    b"\x00\xff",
    b"{" * 500,
    b'{"podName":"a"}',
    b"0\r\nX: y\r\n\r\n",
]

_lines = st.builds(
    lambda *parts: " ".join(parts),
    st.sampled_from(METHODS),
    st.sampled_from(PATHS),
    st.sampled_from(VERSIONS),
)


def _request(line: str, headers: Sequence[str], body: bytes, newline: str) -> bytes:
    return newline.join([line, *headers, "", ""]).encode("latin-1", "replace") + body


requests = st.builds(
    _request,
    _lines,
    st.lists(st.sampled_from(HEADERS), max_size=6),
    st.sampled_from(BODIES) | st.binary(max_size=40),
    st.sampled_from(["\r\n", "\r\n", "\r\n", "\n", "\r"]),
)


def _spoilt(request: bytes, at: int, cut: int, new: bytes) -> bytes:
    """Something else in one place of it; its first line still goes to a door."""
    start = len(b"POST /doors/evict") + at % max(len(request), 1)
    return request[:start] + new + request[start + cut :]


spoilt = st.builds(_spoilt, requests, st.integers(0, 400), st.integers(0, 40), st.binary(max_size=8))


class Wire(asyncio.Transport):
    """A connection without a socket."""

    def __init__(self) -> None:
        super().__init__({"peername": ("10.0.0.7", 1), "sockname": ("10.0.0.1", 8000)})
        self.sent, self.closed, self.ended = bytearray(), False, False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += data

    def close(self) -> None:
        self.closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.closed

    def write_eof(self) -> None:
        self.ended = True

    def pause_reading(self) -> None:
        """Nothing is read here."""

    resume_reading = pause_reading


@dataclass
class Told:
    """What a caller saw at last."""

    wire: Wire
    answers: list[tuple[int, Any]] = field(default_factory=list)

    @property
    def is_a_no(self) -> bool:
        """One or more answers, each a well-formed no."""
        return bool(self.answers) and all(
            status == 200 and isinstance(body, dict) and body["allow"] is False and body["reason"]
            for status, body in self.answers
        )


async def _nothing_here(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 404, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


def doors() -> Application:
    """The doors with nobody behind them: every question that is understood hears “asked”."""
    return with_doors(_nothing_here, door=lambda *_args, **_more: refusal("asked"))


def tell(application: Application, pieces: Sequence[bytes], *, then_close: bool = True) -> Told:
    """Send the pieces over a connection, half-close it, and wait for what comes back."""
    return asyncio.run(_tell(application, pieces, then_close))


async def _tell(application: Application, pieces: Sequence[bytes], then_close: bool) -> Told:
    config = Config(application, http=DoorProtocol, log_config=None, access_log=False, lifespan="off")
    config.load()
    state, wire = ServerState(), Wire()
    protocol = DoorProtocol(config=config, server_state=state, app_state={})
    protocol.connection_made(wire)
    for piece in pieces:
        if not wire.closed:
            protocol.data_received(piece)
            await asyncio.sleep(0)
    if then_close and not wire.closed:
        protocol.eof_received()
    while state.tasks:
        await asyncio.wait(state.tasks)
    protocol.connection_lost(None)
    return Told(wire, _answers(bytes(wire.sent)))


def _answers(sent: bytes) -> list[tuple[int, Any]]:
    """The final answers in what was sent. A HEAD's has no body, and is taken for a no."""
    found = []
    while sent:
        head, _, rest = sent.partition(b"\r\n\r\n")
        status = int(head.split(b" ", 2)[1])
        length = _length(head)
        body = rest[:length]
        sent = rest if status == 100 or not body.startswith(b"{") else rest[length:]
        if status != 100:
            found.append((status, _read(body)))
        if not body.startswith(b"{") and status != 100:
            break
    return found


def _length(head: bytes) -> int:
    lengths = [
        line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")
    ]
    return int(lengths[0]) if lengths else 0


def _read(body: bytes) -> Any:
    return json.loads(body) if body.startswith(b"{") else {"allow": False, "reason": "a HEAD has no body"}
