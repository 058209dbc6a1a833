"""A small API server of the tests' own: scripted answers over real sockets, and slow or broken ones."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

Handler = Callable[["Request"], "Answer"]


@dataclass(frozen=True)
class Request:
    """What came in."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Answer:
    """What goes out. ``raw`` replaces everything and then hangs up; ``drip`` waits so long after each byte."""

    status: int = 200
    body: Any = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    drip: float = 0.0
    silent: bool = False

    def bytes(self) -> bytes:
        if self.raw is not None:
            return self.raw
        body = self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()
        headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), **self.headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"HTTP/1.1 {self.status} X\r\n{head}\r\n".encode() + body


class ScriptedServer:
    """Answers each request by its handler, remembers it, one thread a connection."""

    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.requests: list[Request] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._closing = threading.Event()
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def close(self) -> None:
        self._closing.set()
        self._listener.close()
        for connection in self._open:
            connection.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while not self._closing.is_set():
                connection, _ = self._listener.accept()
                self._open.append(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError, ValueError), connection, connection.makefile("rb") as reader:
            while request := _read_request(reader):
                self.requests.append(request)
                answer = self.handler(request)
                if answer.silent:
                    self._closing.wait(30)
                    return
                self._send(connection, answer)
                if answer.raw is not None:
                    return

    def _send(self, connection: socket.socket, answer: Answer) -> None:
        data = answer.bytes()
        if not answer.drip:
            connection.sendall(data)
            return
        for index in range(len(data)):
            connection.sendall(data[index : index + 1])
            if self._closing.wait(answer.drip):
                return


def _read_request(reader: Any) -> Request | None:
    line = reader.readline().decode()
    if not line.strip():
        return None
    method, target, _ = line.split()
    headers: dict[str, str] = {}
    while header := reader.readline().decode().strip():
        name, _, value = header.partition(":")
        headers[name.lower()] = value.strip()
    return Request(method, target, headers, reader.read(int(headers.get("content-length", "0"))))


@contextmanager
def serving(*answers: Answer | Handler) -> Iterator[ScriptedServer]:
    """A server that gives these answers one after the other, and the last one for ever."""
    server = ScriptedServer(_script(answers))
    try:
        yield server
    finally:
        server.close()


def _script(answers: Sequence[Answer | Handler]) -> Handler:
    left = list(answers)
    lock = threading.Lock()

    def handler(request: Request) -> Answer:
        with lock:
            answer = left.pop(0) if len(left) > 1 else left[0]
        return answer(request) if callable(answer) else answer

    return handler


def status(code: int, message: str = "", reason: str = "", **more: Any) -> Answer:
    """An answer with a ``Status``."""
    body = {"kind": "Status", "status": "Failure", "message": message, "reason": reason, "code": code}
    return Answer(code, body | {"details": more.pop("details", None)}, **more)


def page(*names: str, following: str = "", version: str = "7") -> Answer:
    """A page of pods."""
    items = [{"metadata": {"name": name, "namespace": "shop", "uid": f"uid-{name}"}} for name in names]
    return Answer(body={"metadata": {"resourceVersion": version, "continue": following}, "items": items})
