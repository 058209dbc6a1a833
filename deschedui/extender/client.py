"""Asking extenders: one client for one plugin's extenders in one cycle. The only module that imports httpx.

httpx is the seam (`Request` → transport → `Response`), so that a test, or an installation with needs of its own,
swaps the transport. Ours (`PooledTransport`) keeps one pool of connections, connects only to permitted addresses,
and follows nothing: no redirect, no proxy, no netrc, no retry.
"""

import asyncio
import concurrent.futures
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Final, Self

import httpx

from deschedui.extender.answers import ANSWER_LIMIT
from deschedui.extender.bodies import Bodies, ExtenderRequest
from deschedui.extender.breaker import Breakers
from deschedui.extender.config import ExtenderArgs, format_go_duration
from deschedui.extender.errors import ConfigErrors
from deschedui.extender.files import FileRules, Prepared, prepare
from deschedui.extender.http11 import Exchange
from deschedui.extender.network import CallFailed, Connection, Resolver, SystemResolver, connect, tls_detail
from deschedui.extender.outcomes import (
    ExtenderOutcome,
    Failed,
    FailureMode,
    Observation,
    apply_policy,
    interpret_response,
)
from deschedui.extender.texts import clean, masked_url
from deschedui.masking import Known

__all__ = [
    "ConfigErrors",
    "ExtenderClient",
    "ExtenderRequest",
    "FileRules",
    "Outcomes",
    "PooledTransport",
]

DEFAULT_CONCURRENCY: Final = 32
_KEPT_SECONDS: Final = 4.0  # idle connections; common servers close theirs after 5 s
_ERROR_PAGE: Final = (
    16 * 1024
)  # bytes read of a body that is not an answer, so that small ones keep the connection
_POLL_SECONDS: Final = 0.2

Outcomes = tuple[ExtenderOutcome, ...]


@dataclass(slots=True)
class _Progress:
    """Where an exchange stands, for the text of its timeout."""

    stage: str = "starting"


class _Body(httpx.AsyncByteStream):
    """An answer's body. Closing it keeps the connection, if the answer was read to its end."""

    def __init__(self, exchange: Exchange, release: Callable[[], None]) -> None:
        self._exchange = exchange
        self._release = release

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if chunk := await self._exchange.chunk():
            return chunk
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self._release()


class PooledTransport(httpx.AsyncBaseTransport):
    """Connections by extender, last used first. Belongs to one event loop.

    A request carries its `extender` and its `progress` as extensions.
    """

    def __init__(self, resolver: Resolver | None = None, kept_seconds: float = _KEPT_SECONDS) -> None:
        self._resolver = resolver or SystemResolver()
        self._kept_seconds = kept_seconds
        self._idle: dict[Prepared, list[tuple[Connection, float]]] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Up to the headers of the answer. Raises `CallFailed` or what broke the connection."""
        extender: Prepared = request.extensions["extender"]
        progress: _Progress = request.extensions["progress"]
        connection = self._kept(extender) or await self._open(extender, request.url, progress)
        exchange = Exchange(connection)
        try:
            progress.stage = "waiting for the answer"
            body = await request.aread()
            exchange.send(b"POST", request.url.raw_path, request.headers.raw, body)
            head = await exchange.head()
        except BaseException:
            connection.close()
            raise
        progress.stage = f"reading the body of HTTP {head.status}"
        stream = _Body(exchange, lambda: self._release(extender, connection, exchange))
        return httpx.Response(head.status, headers=list(head.headers), stream=stream)

    async def _open(self, extender: Prepared, url: httpx.URL, progress: _Progress) -> Connection:
        port = url.port or (443 if extender.args.https else 80)
        return await connect(extender, port, self._resolver, progress)

    def _kept(self, extender: Prepared) -> Connection | None:
        now = asyncio.get_running_loop().time()
        idle = self._idle.get(extender, [])
        while idle:
            connection, until = idle.pop()
            if connection.quiet and now < until:
                return connection
            connection.close()
        return None

    def _release(self, extender: Prepared, connection: Connection, exchange: Exchange) -> None:
        if not exchange.reusable:
            connection.close()
            return
        connection.answers += 1
        until = asyncio.get_running_loop().time() + self._kept_seconds
        self._idle.setdefault(extender, []).append((connection, until))

    async def aclose(self) -> None:
        """Close what is idle; what is in use is closed by its exchange."""
        for idle in self._idle.values():
            for connection, _ in idle:
                connection.close()
        self._idle.clear()


class _Callee:
    """One extender with everything about a call that does not depend on the pod."""

    def __init__(self, extender: Prepared) -> None:
        args = extender.args
        self.extender = extender
        self.args = args
        self.url = httpx.URL(args.url)
        self.shown_url = masked_url(args.url)
        self.seconds = args.timeout_seconds
        self._known = Known(value for _, value in extender.headers)
        self._headers = _headers(self.url, extender)

    def request(self, question: ExtenderRequest, bodies: Bodies, progress: _Progress) -> httpx.Request:
        reference = self.args.pod_reference_only
        body = bodies.reference(question) if reference else bodies.full(question)
        length = (b"Content-Length", str(len(body)).encode())
        return httpx.Request(
            "POST",
            self.url,
            headers=[*self._headers, length],
            stream=httpx.ByteStream(body),
            extensions={"extender": self.extender, "progress": progress},
        )

    def outcome(self, seen: Observation, latency_ms: float) -> ExtenderOutcome:
        """Its words without the header values that we sent: an error page that echoes them would keep them for good."""
        outcome = apply_policy(
            seen,
            ignorable=self.args.ignorable,
            fail_policy=self.args.fail_policy,
            latency_ms=latency_ms,
            url=self.shown_url,
        )
        if not self._known:
            return outcome
        return replace(
            outcome, reason=self._known.hide(outcome.reason), detail=self._known.hide(outcome.detail)
        )


def _headers(url: httpx.URL, extender: Prepared) -> list[tuple[bytes, bytes]]:
    ours = {"Host": url.netloc.decode("ascii"), "User-Agent": "deschedui", "Accept": "application/json"}
    theirs = dict(extender.headers)
    named = {name.lower() for name in theirs}
    kept = {name: value for name, value in ours.items() if name.lower() not in named}
    fixed = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
    return [(name.encode(), value.encode()) for name, value in {**kept, **fixed, **theirs}.items()]


@dataclass(slots=True)
class _Batch:
    """The questions of one `ask` and what has come back so far."""

    requests: Sequence[ExtenderRequest]
    answers: list[list[ExtenderOutcome | None]]
    bodies: Bodies = field(default_factory=Bodies)
    workers: list[asyncio.Task[None]] = field(default_factory=list)

    def stop(self) -> None:
        """What is under way ends without an outcome. Call it on the loop."""
        for worker in self.workers:
            worker.cancel()

    def results(self) -> list[Outcomes | None]:
        """One tuple for each request that all extenders were asked about, else None."""
        complete = (tuple(outcome for outcome in each if outcome is not None) for each in self.answers)
        return [
            outcomes if len(outcomes) == len(each) else None
            for outcomes, each in zip(complete, self.answers, strict=True)
        ]


class ExtenderClient:
    """Asks the extenders of one plugin about pods. A context manager; `ask` may be called from any thread.

    Building it reads files and variables and raises `ConfigErrors` (`config_error`), everything together. `transport`
    replaces the network, `resolver` the name service. At most `concurrency` calls are in flight.
    """

    def __init__(
        self,
        extenders: Sequence[ExtenderArgs],
        *,
        files: FileRules | None = None,
        concurrency: int = DEFAULT_CONCURRENCY,
        transport: httpx.AsyncBaseTransport | None = None,
        resolver: Resolver | None = None,
    ) -> None:
        self._callees = tuple(map(_Callee, prepare(extenders, files or FileRules())))
        self._transport = transport or PooledTransport(resolver)
        self._concurrency = concurrency
        self._slots = asyncio.Semaphore(concurrency)
        self._thread = _LoopThread()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connections and the thread."""
        self._thread.close(self._transport.aclose)

    def ask(
        self,
        requests: Sequence[ExtenderRequest],
        *,
        deadline_seconds: float,
        should_stop: Callable[[], bool] | None = None,
        breakers: Breakers | None = None,
    ) -> list[Outcomes | None]:
        """Ask every extender about every pod; the outcomes in the order of `requests`.

        None stands for a pod that was not asked about, or whose answer was still under way, when `deadline_seconds`
        had passed or `should_stop` (called in this thread, five times a second) said so: that is no failure.
        An extender whose breaker is open is not called.
        """
        batch = self._batch(requests)
        running = self._thread.submit(self._run(batch, deadline_seconds, breakers))
        try:
            while not concurrent.futures.wait([running], timeout=_POLL_SECONDS).done:
                if should_stop is not None and should_stop():
                    self._thread.call(batch.stop)
        except BaseException:
            self._thread.call(batch.stop)
            raise
        running.result()
        return batch.results()

    async def aask(
        self,
        requests: Sequence[ExtenderRequest],
        *,
        deadline_seconds: float,
        breakers: Breakers | None = None,
    ) -> list[Outcomes | None]:
        """`ask` for a caller with an event loop; one client is used by `ask` or by `aask` on one loop, not both."""
        batch = self._batch(requests)
        await self._run(batch, deadline_seconds, breakers)
        return batch.results()

    def _batch(self, requests: Sequence[ExtenderRequest]) -> _Batch:
        return _Batch(requests, [[None] * len(self._callees) for _ in requests])

    async def _run(self, batch: _Batch, deadline_seconds: float, breakers: Breakers | None) -> None:
        self._fill_open(batch, breakers)
        questions = iter([
            (row, column)
            for row, outcomes in enumerate(batch.answers)
            for column, outcome in enumerate(outcomes)
            if outcome is None
        ])  # fmt: skip
        if deadline_seconds <= 0:
            return
        some = min(self._concurrency, len(batch.requests) * len(self._callees))
        batch.workers = [asyncio.create_task(self._work(batch, questions)) for _ in range(some)]
        await _finish(batch, deadline_seconds)

    def _fill_open(self, batch: _Batch, breakers: Breakers | None) -> None:
        for column, breaker in enumerate(breakers.each if breakers else ()):
            if breaker.is_open:
                outcome = self._callees[column].outcome(breaker.observation(), 0.0)
                for outcomes in batch.answers:
                    outcomes[column] = outcome

    async def _work(self, batch: _Batch, questions: Iterator[tuple[int, int]]) -> None:
        for row, column in questions:
            async with self._slots:
                outcome = await self._call(self._callees[column], batch.requests[row], batch.bodies)
            batch.answers[row][column] = outcome

    async def _call(self, callee: _Callee, question: ExtenderRequest, bodies: Bodies) -> ExtenderOutcome:
        progress = _Progress()
        request = callee.request(question, bodies, progress)
        clock = asyncio.get_running_loop().time
        started = clock()
        try:
            async with asyncio.timeout(callee.seconds) as limit:
                seen = await self._exchange(request)
        except (OSError, CallFailed, httpx.HTTPError) as error:
            seen = _failure(error, callee, progress, clock() - started, expired=limit.expired())
        return callee.outcome(seen, (clock() - started) * 1_000)

    async def _exchange(self, request: httpx.Request) -> Observation:
        response = await self._transport.handle_async_request(request)
        try:
            body = await _read(response)
        finally:
            await response.aclose()
        headers = response.headers
        return interpret_response(
            response.status_code,
            body,
            content_encoding=headers.get("content-encoding", ""),
            location=headers.get("location", ""),
        )


async def _read(response: httpx.Response) -> bytes:
    """The raw body up to one byte more than is accepted. Of a failed status whatever can be had."""
    stream = response.stream
    if not isinstance(stream, httpx.AsyncByteStream):
        raise TypeError("the transport answers synchronously")
    wanted = ANSWER_LIMIT if response.status_code == 200 else _ERROR_PAGE
    body = bytearray()
    try:
        async for chunk in stream:
            body += chunk
            if len(body) > wanted:
                break
    except (OSError, CallFailed, httpx.HTTPError):
        if response.status_code == 200:
            raise
    return bytes(body[: wanted + 1])


async def _finish(batch: _Batch, deadline_seconds: float) -> None:
    """Until all is answered, or the deadline; then nothing is left running. A worker's bug is raised."""
    if not batch.workers:
        return
    try:
        await asyncio.wait(batch.workers, timeout=deadline_seconds, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        batch.stop()
        ended = await asyncio.gather(*batch.workers, return_exceptions=True)
    for each in ended:
        if isinstance(each, Exception):
            raise each


def _failure(
    error: Exception, callee: _Callee, progress: _Progress, seconds: float, *, expired: bool
) -> Failed:
    """The failure mode behind an exception. A foreign transport's are judged by what caused them."""
    if expired or isinstance(error, httpx.TimeoutException):
        limit = format_go_duration(callee.args.http_timeout)
        return Failed(
            FailureMode.TIMEOUT, f"{progress.stage} after {seconds:.2f} s; the limit is httpTimeout {limit}"
        )
    for cause in _chain(error):
        if isinstance(cause, CallFailed):
            return cause.failed
        if isinstance(cause, ssl.SSLError):
            return Failed(FailureMode.TLS, tls_detail(cause, callee.extender.server_name))
        if isinstance(cause, socket.gaierror):
            return Failed(FailureMode.DNS, f'"{callee.args.host}" does not resolve: {clean(str(cause), 200)}')
    return _other_failure(error)


def _other_failure(error: Exception) -> Failed:
    text = clean(getattr(error, "strerror", None) or str(error) or type(error).__name__, 300)
    away = text.startswith(("Server disconnected", "peer closed"))
    if isinstance(error, httpx.RemoteProtocolError | httpx.DecodingError) and not away:
        return Failed(FailureMode.INVALID_RESPONSE, f"the answer is not HTTP: {text}")
    return Failed(FailureMode.CONNECTION, text[:1].lower() + text[1:])


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """The exception and what it was raised from, a few levels deep."""
    for _ in range(8):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


class _LoopThread:
    """An event loop in a thread of its own, started when it is first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def submit(self, work: Coroutine[Any, Any, None]) -> "concurrent.futures.Future[None]":
        return asyncio.run_coroutine_threadsafe(work, self._started())

    def call(self, function: Callable[[], None]) -> None:
        self._started().call_soon_threadsafe(function)

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._loop.run_forever, name="extender-client", daemon=True
                )
                self._thread.start()
            return self._loop

    def close(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run `last`, then end loop and thread. Again: nothing happens."""
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is None or thread is None:
            return
        asyncio.run_coroutine_threadsafe(_wind_up(last), loop).result(timeout=10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout=10)
        loop.close()


async def _wind_up(last: Callable[[], Coroutine[Any, Any, None]]) -> None:
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await last()
    await asyncio.sleep(0)  # connections that were aborted say so in the next turn of the loop
