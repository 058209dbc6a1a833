"""An event loop whose servers, when they close, first take everybody who is connected already.

uvicorn is started with ``--loop decisions.doors.loop:DoorLoop``. The kernel completes a connection before a process
accepts it, and resets those that nobody has accepted when the listener closes: for a caller with ``ignorable: true``
that is permission to evict, and no proxy repeats a POST that it has sent. Whoever connects after the close is
refused, which a proxy with a second instance does repeat.
"""

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

Factory = Callable[[], asyncio.BaseProtocol]


class DoorLoop(asyncio.SelectorEventLoop):
    """asyncio's own, but for the end of its servers."""

    async def create_server(self, protocol_factory: Factory, *args: Any, **kwargs: Any) -> Any:
        """A server as asyncio's, whose ``close`` loses nobody."""
        server = await super().create_server(protocol_factory, *args, **kwargs)
        return _TakesAll(self, server, protocol_factory)


class _TakesAll:
    def __init__(self, loop: DoorLoop, server: asyncio.Server, factory: Factory) -> None:
        self._loop, self._server, self._factory = loop, server, factory
        self._taking: set[asyncio.Task[None]] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)

    def close(self) -> None:
        """Take those who wait, and stop listening, with nothing in between that takes time."""
        listeners = [listener.dup() for listener in self._server.sockets]
        waiting = [connection for listener in listeners for connection in _waiting(listener)]
        self._server.close()
        for listener in listeners:
            listener.close()
        for connection in waiting:
            task = self._loop.create_task(self._serve(connection))
            self._taking.add(task)
            task.add_done_callback(self._taking.discard)

    async def _serve(self, connection: socket.socket) -> None:
        protocol = self._factory()
        await self._loop.connect_accepted_socket(lambda: protocol, connection)
        if isinstance(protocol, H11Protocol):
            protocol.shutdown()


def _waiting(listener: socket.socket) -> list[socket.socket]:
    found = []
    listener.settimeout(0)
    with suppress(OSError):
        while True:
            connection, _ = listener.accept()
            connection.settimeout(0)
            found.append(connection)
    return found
