"""A caller that implements ``ignorable: true``: a failed call is its permission to evict. It speaks raw HTTP."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

# Its httpTimeout, in the tests: an answer after that is no answer.
CALLER_SECONDS: Final = 3.0

Pieces = Iterable[bytes | float]


@dataclass(frozen=True)
class Heard:
    """What came back, and what the caller makes of it."""

    evicts: bool
    why: str
    seconds: float
    closes: bool = False

    def __str__(self) -> str:
        return f"{'EVICTS' if self.evicts else 'leaves it'} after {self.seconds:.2f} s: {self.why}"


def said(port: int, *pieces: bytes | float, method: str = "POST", half_close: bool = False) -> Heard:
    """Open a connection, send the pieces (a number is a pause in seconds) and listen meanwhile.

    As Go's client does: an answer counts even where the question could not be sent to its end.
    """
    begun = time.monotonic()
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=CALLER_SECONDS) as connection:
            sender = threading.Thread(target=_send, args=(connection, pieces, half_close), daemon=True)
            sender.start()
            return hear(connection, begun, method)
    except (OSError, http.client.HTTPException, ValueError) as error:
        return Heard(True, f"{type(error).__name__}: {error}", time.monotonic() - begun)


def said_first(port: int, *pieces: bytes | float) -> Heard:
    """The same, but nothing is read before all is sent, as many simple clients do; a broken pipe is the end."""
    begun = time.monotonic()
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=CALLER_SECONDS) as connection:
            for piece in pieces:
                _say(connection, piece)
            return hear(connection, begun, "POST")
    except (OSError, http.client.HTTPException, ValueError) as error:
        return Heard(True, f"{type(error).__name__}: {error}", time.monotonic() - begun)


def answered(connection: socket.socket, asked: bytes) -> Heard:
    """Ask on a connection that is there; what breaks is permission."""
    begun = time.monotonic()
    try:
        connection.sendall(asked)
        return hear(connection, begun)
    except (OSError, http.client.HTTPException, ValueError) as error:
        return Heard(True, f"{type(error).__name__}: {error}", time.monotonic() - begun)


def hear(connection: socket.socket, begun: float, method: str = "POST") -> Heard:
    """Read the answer. Raises OSError, HTTPException, ValueError."""
    connection.settimeout(max(CALLER_SECONDS - (time.monotonic() - begun), 0.01))
    response = http.client.HTTPResponse(connection, method=method)
    response.begin()
    body = response.read()
    seconds = time.monotonic() - begun
    if method == "HEAD":
        body = b'{"allow": false, "reason": "a HEAD has no body"}'
    evicts, why = judge(response.status, body)
    if seconds > CALLER_SECONDS:
        evicts, why = True, f"after {seconds:.2f} s: {why}"
    return Heard(evicts, why, seconds, closes=response.will_close)


def judge(status: int, body: bytes) -> tuple[bool, str]:
    """Whether a caller with ``ignorable: true`` evicts, and why. Raises ValueError for what is no JSON."""
    if status != 200:
        return True, f"HTTP {status}: {body[:100]!r}"
    answer = json.loads(body)
    if not isinstance(answer, dict) or not isinstance(answer.get("allow"), bool):
        return True, f"malformed: {body[:100]!r}"
    if answer.get("error"):
        return True, f"error: {answer['error']}"
    return answer["allow"], str(answer.get("reason"))


def _send(connection: socket.socket, pieces: Pieces, half_close: bool) -> None:
    with suppress(OSError):  # whoever listens learns of it
        for piece in pieces:
            _say(connection, piece)
        if half_close:
            connection.shutdown(socket.SHUT_WR)


def _say(connection: socket.socket, piece: bytes | float) -> None:
    if isinstance(piece, bytes):
        connection.sendall(piece)
    else:
        time.sleep(piece)


# --- questions as bytes


def question(
    body: bytes = b"",
    *,
    token: str = "",
    path: str = "/doors/evict",
    method: str = "POST",
    version: str = "1.1",
    headers: Sequence[str] = (),
    host: str | None = "localhost",
    length: int | None = -1,
) -> bytes:
    """One request as it goes over the wire; ``length`` None leaves Content-Length out."""
    lines = [f"{method} {path} HTTP/{version}"]
    lines += [f"Host: {host}"] if host is not None else []
    lines += [f"Authorization: Bearer {token}"] if token else []
    lines += [f"Content-Length: {len(body) if length == -1 else length}"] if length is not None else []
    head = "\r\n".join([*lines, "Content-Type: application/json", *headers])
    return head.encode("latin-1") + b"\r\n\r\n" + body


def chunked(body: bytes, *, size: int = 65_536) -> Iterator[bytes]:
    """A body in chunks."""
    for at in range(0, len(body), size):
        part = body[at : at + size]
        yield f"{len(part):x}\r\n".encode() + part + b"\r\n"
    yield b"0\r\n\r\n"
