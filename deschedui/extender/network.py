"""From a URL to an open connection: resolve, look at the address, connect to that very address, TLS.

A name is resolved once for a connection and what is connected to is what was looked at, so a name that
changes its address in between (DNS rebinding) gains nothing. Only asyncio and the standard library.
"""

import asyncio
import ipaddress
import os
import select
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Protocol

from deschedui.extender.addresses import is_link_local
from deschedui.extender.files import Prepared
from deschedui.extender.outcomes import Failed, FailureMode
from deschedui.extender.texts import clean

SocketAddress = tuple[Any, ...]  # (host, port) or (host, port, flow info, scope)
FoundAddress = tuple[int, SocketAddress]  # address family, where to
Resolver = Callable[[str, int], Awaitable[Sequence[FoundAddress]]]

_PAUSE_ABOVE: Final = 128 * 1024  # bytes that wait unread before the peer is slowed down
_FOREVER: Final = 7 * 24 * 3600.0  # asyncio's own handshake limit must not come before the exchange's


class CallFailed(Exception):  # noqa: N818 - carries the observation
    """One exchange failed; `failed` says how."""

    def __init__(self, mode: FailureMode, detail: str, http_status: int | None = None) -> None:
        super().__init__(detail)
        self.failed = Failed(mode, detail, http_status=http_status)


class Progress(Protocol):
    """Where an exchange stands, for the text of a timeout."""

    stage: str


class SystemResolver:
    """`getaddrinfo` in a thread of its own, one look-up for all who wait for the same name.

    Not asyncio's executor: a name server that never answers would keep its few threads and block the end.
    """

    def __init__(self, look_up: Callable[[str, int], Sequence[FoundAddress]] | None = None) -> None:
        self._look_up = look_up or _getaddrinfo
        self._running: dict[tuple[str, int], asyncio.Future[Sequence[FoundAddress]]] = {}

    async def __call__(self, host: str, port: int) -> Sequence[FoundAddress]:
        """Raises OSError (`socket.gaierror`) where the name has no address."""
        running = self._running.get((host, port))
        if running is None:
            running = self._start(host, port)
        return await asyncio.shield(running)

    def _start(self, host: str, port: int) -> asyncio.Future[Sequence[FoundAddress]]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Sequence[FoundAddress]] = loop.create_future()
        self._running[host, port] = future
        future.add_done_callback(lambda done: self._forget(host, port, done))
        worker = threading.Thread(
            target=self._work, args=(loop, future, host, port), name="extender-dns", daemon=True
        )
        worker.start()
        return future

    def _forget(self, host: str, port: int, done: asyncio.Future[Sequence[FoundAddress]]) -> None:
        self._running.pop((host, port), None)
        if not done.cancelled():
            done.exception()  # looked at: everybody who waited may be gone by now

    def _work(
        self,
        loop: asyncio.AbstractEventLoop,
        future: asyncio.Future[Sequence[FoundAddress]],
        host: str,
        port: int,
    ) -> None:
        try:
            found: Sequence[FoundAddress] | OSError = self._look_up(host, port)
        except OSError as error:
            found = error
        except UnicodeError as error:
            found = socket.gaierror(socket.EAI_NONAME, str(error))
        try:
            loop.call_soon_threadsafe(_settle, future, found)
        except RuntimeError:
            return  # the loop ended while the name server thought about it


def _getaddrinfo(host: str, port: int) -> Sequence[FoundAddress]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return [(family, address) for family, _, _, _, address in found]


def _settle(future: asyncio.Future[Sequence[FoundAddress]], found: Sequence[FoundAddress] | OSError) -> None:
    if future.done():
        return
    if isinstance(found, OSError):
        future.set_exception(found)
    else:
        future.set_result(found)


class Connection(asyncio.Protocol):
    """One connection: bytes in, bytes out, and whether the other side has ended it."""

    def __init__(self) -> None:
        self.ended = False
        self.answers = 0  # how many answers it has brought: none means that it is new
        self._buffer = bytearray()
        self._error: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._transport: asyncio.Transport | None = None
        self._paused = False

    @property
    def quiet(self) -> bool:
        """Open, and nothing has come that nobody asked for, not even what the loop has not seen yet."""
        return not self.ended and not self._buffer and not self._readable()

    def _readable(self) -> bool:
        sock = self._transport.get_extra_info("socket") if self._transport else None
        if sock is None or sock.fileno() < 0:
            return True
        poll = select.poll()
        poll.register(sock.fileno(), select.POLLIN)
        return bool(poll.poll(0))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - for the type checker
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if len(self._buffer) > _PAUSE_ABOVE and self._transport and not self._paused:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        self.ended = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended = True
        self._error = self._error or exc
        self._wake()

    def _wake(self) -> None:
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)

    def write(self, data: bytes) -> None:
        """Hand bytes to the kernel, or keep them for it; the exchange's own limit bounds how long."""
        if self._transport:
            self._transport.write(data)

    async def read(self, most: int) -> bytes:
        """The next bytes, empty at the end. Raises what broke the connection. Always lets others run."""
        if self._buffer or self.ended:
            await asyncio.sleep(0)
        else:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        if not self._buffer and self._error:
            raise self._error
        return self._take(most)

    def _take(self, most: int) -> bytes:
        data = bytes(self._buffer[:most])
        del self._buffer[:most]
        if self._paused and len(self._buffer) < _PAUSE_ABOVE and self._transport:
            self._paused = False
            self._transport.resume_reading()
        return data

    def close(self) -> None:
        """At once, without a farewell: what the other side still has to say is not wanted."""
        self.ended = True
        if self._transport:
            self._transport.abort()


async def connect(extender: Prepared, port: int, resolver: Resolver, progress: Progress) -> Connection:
    """Open a connection to one extender. Raises `CallFailed`."""
    host = extender.args.host
    progress.stage = f"resolving {host}"
    addresses = _permitted(host, await _resolve(host, port, resolver))
    progress.stage = f"connecting to {host}"
    sock = await _connect_any(addresses, extender.args.timeout_seconds)
    if extender.tls is None:
        return await _wrap(sock, None, None)
    progress.stage = f"the TLS handshake with {extender.server_name}"
    return await _handshake(sock, extender.tls, extender.server_name)


async def _resolve(host: str, port: int, resolver: Resolver) -> Sequence[FoundAddress]:
    try:
        literal = ipaddress.ip_address(host)
    except ValueError:
        pass
    else:
        return [(socket.AF_INET if literal.version == 4 else socket.AF_INET6, (host, port))]
    try:
        found = await resolver(host, port)
    except OSError as error:
        why = clean(error.strerror or str(error), 200)
        raise CallFailed(FailureMode.DNS, f'"{host}" does not resolve: {why}') from None
    if not found:
        raise CallFailed(FailureMode.DNS, f'"{host}" does not resolve: it has no address')
    return found


def _permitted(host: str, found: Sequence[FoundAddress]) -> list[FoundAddress]:
    permitted = [each for each in found if not is_link_local(ipaddress.ip_address(each[1][0]))]
    if permitted:
        return permitted
    where = found[0][1][0]
    raise CallFailed(
        FailureMode.CONNECTION, f'"{host}" is the link-local address {where}: such addresses are refused'
    )


async def _connect_any(addresses: Sequence[FoundAddress], seconds: float) -> socket.socket:
    """The first address that takes the connection; all but the last get a share of the time only."""
    refusals: list[str] = []
    for place, (family, address) in enumerate(addresses):
        last = place == len(addresses) - 1
        try:
            async with asyncio.timeout(None if last else seconds / len(addresses)):
                return await _connect_socket(family, address)
        except OSError as error:  # TimeoutError, of the share, is one too
            refusals.append(f"{address[0]} port {address[1]}: {_why_not(error)}")
    raise CallFailed(FailureMode.CONNECTION, "; ".join(refusals[:4]))


def _why_not(error: OSError) -> str:
    if error.errno is None:
        return "no answer" if isinstance(error, TimeoutError) else clean(str(error), 200)
    return os.strerror(error.errno).lower()


async def _connect_socket(family: int, address: SocketAddress) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)  # noqa: FBT003 - the standard library's
        await asyncio.get_running_loop().sock_connect(sock, address)
    except BaseException:
        sock.close()
        raise
    return sock


async def _wrap(sock: socket.socket, tls: ssl.SSLContext | None, server_name: str | None) -> Connection:
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(
        Connection,
        sock=sock,
        ssl=tls,
        server_hostname=server_name,
        ssl_handshake_timeout=_FOREVER if tls else None,
        ssl_shutdown_timeout=1.0 if tls else None,
    )
    return connection


async def _handshake(sock: socket.socket, tls: ssl.SSLContext, server_name: str) -> Connection:
    try:
        return await _wrap(sock, tls, server_name)
    except OSError as error:  # ssl.SSLError is one
        raise CallFailed(FailureMode.TLS, tls_detail(error, server_name)) from None


def tls_detail(error: OSError, server_name: str) -> str:
    """Which check failed, on which name."""
    if isinstance(error, ssl.SSLCertVerificationError):
        why = getattr(error, "verify_message", None) or str(error)
        return f'the certificate of "{server_name}" was refused: {clean(why, 300)}'
    reason = getattr(error, "reason", None) or error.strerror or "the other side ended the handshake"
    return f'TLS with "{server_name}" failed: {clean(str(reason), 300).replace("_", " ").lower()}'
