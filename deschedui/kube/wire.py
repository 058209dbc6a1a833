"""One HTTP call to an API server, with a true end.

urllib3 times each read, the resolver has no timeout at all, and an exec plugin may hang. So every call runs
in a thread of its own: the caller waits for it until the deadline, then shuts the call's socket and goes on.
What was left behind can send nothing any more. Nothing is retried here, no redirect is followed, and bodies
are read up to a bound.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import HTTPError

from deschedui.kube.answers import RawAnswer
from deschedui.kube.config import Access
from deschedui.kube.errors import InvalidAnswer, TimedOut, Unreachable
from deschedui.kube.text import mask_urls, sentence

CONNECT_SECONDS: Final = 5.0
ABANDONED_LIMIT: Final = 64
RELOAD_SECONDS: Final = 10.0
USER_AGENT: Final = "deschedui"
_CHUNK: Final = 256 * 1024
_GRACE_SECONDS: Final = 0.05
_NO_RETRIES: Final = urllib3.Retry(total=False, redirect=False)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call:
    """One request. ``seconds`` covers all of it: credentials, name, connection, TLS, first byte to last."""

    method: str
    path: str
    seconds: float
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    max_bytes: int = 8 * 1024 * 1024

    @property
    def target(self) -> str:
        """Path and query."""
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path


class Wire:
    """Sends calls to one API server. Thread-safe.

    Args:
        load: gives the connection's access; called at the first call, and again after it was refused.
    """

    def __init__(
        self,
        load: Callable[[], Access],
        *,
        clock: Callable[[], float] = time.monotonic,
        connect_seconds: float = CONNECT_SECONDS,
    ) -> None:
        self._load, self._clock, self._connect_seconds = load, clock, connect_seconds
        self._access: Access | None = None
        self._loaded_at = 0.0
        self._lock = threading.Lock()
        self._abandoned = _Abandoned(ABANDONED_LIMIT)

    def send(self, call: Call) -> RawAnswer:
        """Send the call and read its answer, whatever its status.

        Raises:
            TimedOut: the answer was not complete in time.
            Unreachable: there was no answer.
            InvalidAnswer: it was larger than the bound, or ended early.
            ConfigError: the connection cannot be loaded.
        """
        self._abandoned.check()
        deadline = self._clock() + call.seconds
        line = _Line()
        future: Future[RawAnswer] = Future()
        work = partial(self._exchange, call, line, deadline)
        threading.Thread(target=_complete, args=(future, work), name="kube-call", daemon=True).start()
        try:
            return future.result(timeout=call.seconds + _GRACE_SECONDS)
        except FutureTimeoutError:
            raise TimedOut(f"no complete answer within {call.seconds:g} s") from None
        finally:
            if not future.done():
                self._abandoned.add(future)
                line.cut()

    def reload(self) -> None:
        """Load the connection anew before the next call, at most every 10 s: its credentials were refused."""
        if self._clock() - self._loaded_at >= RELOAD_SECONDS:
            self._forget()

    def close(self) -> None:
        """Close idle connections; the next call loads the connection anew."""
        access = self._forget()
        if access is not None:
            access.pool.clear()

    def _forget(self) -> Access | None:
        # Somebody who hangs in loading holds the lock; then there is nothing to forget yet.
        if not self._lock.acquire(timeout=0.1):
            return None
        try:
            access, self._access = self._access, None
            return access
        finally:
            self._lock.release()

    def _exchange(self, call: Call, line: _Line, deadline: float) -> RawAnswer:
        access, authorization = self._ready(deadline)
        headers = {"Accept": "application/json", "User-Agent": USER_AGENT, **call.headers}
        if authorization:
            headers["Authorization"] = authorization
        if call.body is not None:
            headers.setdefault("Content-Type", "application/json")
        _LINES.current = line
        try:
            return self._read(self._request(access, call, headers, deadline), call, deadline)
        except (HTTPError, OSError) as error:
            raise self._explained(error, access, call, deadline) from None
        finally:
            _LINES.current = None

    def _ready(self, deadline: float) -> tuple[Access, str]:
        if not self._lock.acquire(timeout=max(0.0, self._remaining(deadline))):
            raise TimedOut("the credentials were not ready in time")
        try:
            if self._access is None:
                self._access, self._loaded_at = self._load(), self._clock()
                _watch(self._access.pool)
            return self._access, self._access.authorization()
        finally:
            self._lock.release()

    def _request(
        self, access: Access, call: Call, headers: Mapping[str, str], deadline: float
    ) -> urllib3.BaseHTTPResponse:
        remaining = self._remaining(deadline)
        if remaining <= 0:
            raise TimedOut("the time was over before anything was sent")
        timeout = urllib3.Timeout(connect=min(self._connect_seconds, remaining), read=remaining)
        return access.pool.urlopen(
            call.method,
            access.host + call.target,
            redirect=False,
            body=call.body,
            headers=headers,
            retries=_NO_RETRIES,
            timeout=timeout,
            preload_content=False,
        )

    def _read(self, response: urllib3.BaseHTTPResponse, call: Call, deadline: float) -> RawAnswer:
        chunks: list[bytes] = []
        size = 0
        for chunk in response.stream(_CHUNK):
            size += len(chunk)
            if size > call.max_bytes or self._remaining(deadline) <= 0:
                response.close()
                raise _too_large(call) if size > call.max_bytes else _too_late(call)
            chunks.append(chunk)
        response.release_conn()
        return RawAnswer(response.status, dict(response.headers), b"".join(chunks))

    def _explained(self, error: Exception, access: Access, call: Call, deadline: float) -> Exception:
        late = isinstance(error, (urllib3.exceptions.ReadTimeoutError, TimeoutError))
        if late or self._remaining(deadline) <= 0:
            return _too_late(call)
        return Unreachable(f"no answer from {mask_urls(access.host)}: {_cause(error)}")

    def _remaining(self, deadline: float) -> float:
        return deadline - self._clock()


def _too_large(call: Call) -> InvalidAnswer:
    return InvalidAnswer(f"the answer is larger than {call.max_bytes} bytes")


def _too_late(call: Call) -> TimedOut:
    return TimedOut(f"no complete answer within {call.seconds:g} s")


def _cause(error: Exception) -> str:
    if isinstance(error, urllib3.exceptions.NameResolutionError):
        return "the name does not resolve"
    if isinstance(error, (urllib3.exceptions.SSLError, ssl.SSLError)):
        return f"TLS: {sentence(mask_urls(str(error)), 300)}"
    if isinstance(error, urllib3.exceptions.NewConnectionError):
        return sentence(str(error).rpartition(": ")[2], 200)
    if isinstance(error, urllib3.exceptions.ConnectTimeoutError):
        return "the connection timed out"
    return sentence(mask_urls(str(error)), 300) or type(error).__name__


def _complete(future: Future[T], work: Callable[[], T]) -> None:
    try:
        result = work()
    except BaseException as error:  # noqa: BLE001 - whatever it was belongs to the caller who waits
        future.set_exception(error)
    else:
        future.set_result(result)


class _Abandoned:
    """Calls whose callers have gone on. When too many hang, new ones are refused instead of piling up."""

    def __init__(self, limit: int) -> None:
        self._limit, self._count, self._lock = limit, 0, threading.Lock()

    def check(self) -> None:
        if self._count >= self._limit:
            raise Unreachable(f"{self._count} earlier calls still hang; nothing was sent")

    def add(self, future: Future[Any]) -> None:
        with self._lock:
            self._count += 1
        future.add_done_callback(lambda _: self._ended())

    def _ended(self) -> None:
        with self._lock:
            self._count -= 1


class _Line:
    """The socket that a call uses, so that somebody else can cut it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: HTTPConnection | None = None
        self._raw: socket.socket | None = None
        self._is_cut = False

    def note(self, connection: HTTPConnection, raw: socket.socket | None) -> None:
        with self._lock:
            self._connection, self._raw = connection, raw
        if self._is_cut:
            self.cut()

    def cut(self) -> None:
        """End whatever the call waits for, now or as soon as it has a socket."""
        with self._lock:
            self._is_cut = True
            sockets = (self._connection.sock if self._connection else None, self._raw)
        for sock in sockets:
            if sock is not None:
                _shut(sock)


def _shut(sock: socket.socket) -> None:
    # Not ``SSLSocket.shutdown``: that pulls the TLS session away under a thread that reads.
    try:
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
    except (OSError, ValueError):
        return


class _Lines(threading.local):
    current: _Line | None = None


_LINES: Final = _Lines()


class _Watched(HTTPConnection):
    """A connection that tells the call of its thread which socket it uses."""

    def _new_conn(self) -> socket.socket:
        sock = super()._new_conn()
        if _LINES.current is not None:
            _LINES.current.note(self, sock)
        return sock

    def request(self, *args: Any, **kwargs: Any) -> None:
        if _LINES.current is not None:
            _LINES.current.note(self, self.sock)
        super().request(*args, **kwargs)


class _WatchedTls(_Watched, HTTPSConnection):
    """The same over TLS."""


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Watched


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _WatchedTls


def _watch(pool: urllib3.PoolManager) -> None:
    pool.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}
