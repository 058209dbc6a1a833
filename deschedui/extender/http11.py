"""One question and its answer over one connection, in HTTP/1.1.

The protocol itself is h11's, the engine below httpx; connections are ours (`network.py`), because httpx gives
no say in which address is connected to, and its pool costs a third of what a fast extender takes to answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import h11

from deschedui.extender.network import CallFailed, Connection
from deschedui.extender.outcomes import FailureMode
from deschedui.extender.texts import clean

RawHeaders = Sequence[tuple[bytes, bytes]]

_READ: Final = 16 * 1024
_LARGEST_HEAD: Final = 64 * 1024
# What may arrive for one answer, framing included: a body of 1 MiB in small chunks, and an end to chatter.
_LARGEST_EXCHANGE: Final = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Head:
    """Status line and headers of an answer."""

    status: int
    headers: RawHeaders


class Exchange:
    """Send one question, read the head, then the body; then `reusable` says whether to keep the connection.

    Raises `CallFailed` for an answer that is no HTTP (`invalid_response`: it talks nonsense) or ends early
    (`connection`), and what the connection raises.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._state = h11.Connection(h11.CLIENT, max_incomplete_event_size=_LARGEST_HEAD)
        self._received = 0

    @property
    def reusable(self) -> bool:
        """The answer was read to its end, and nothing came behind it that the next question could mistake."""
        complete = self._state.our_state is h11.DONE and self._state.their_state is h11.DONE
        return complete and not self._state.trailing_data[0] and self._connection.quiet

    def send(self, method: bytes, target: bytes, headers: RawHeaders, body: bytes) -> None:
        """One write for all of it."""
        request = h11.Request(method=method, target=target, headers=list(headers))
        data = [self._state.send(request), self._state.send(h11.Data(data=body)), b""]
        self._state.send(h11.EndOfMessage())
        self._connection.write(b"".join(part for part in data if part))

    async def head(self) -> Head:
        """The final status; informational answers are passed over."""
        while True:
            event = await self._next()
            if isinstance(event, h11.Response):
                return Head(event.status_code, event.headers.raw_items())
            if not isinstance(event, h11.InformationalResponse):
                raise CallFailed(FailureMode.CONNECTION, "closed early, without an answer")

    async def chunk(self) -> bytes:
        """The next part of the body as it comes, nothing decompressed; empty at its end."""
        event = await self._next()
        return bytes(event.data) if isinstance(event, h11.Data) else b""

    async def _next(self) -> object:
        while True:
            try:
                event = self._state.next_event()
            except h11.RemoteProtocolError as error:
                raise _broken(str(error)) from None
            if event is not h11.NEED_DATA:
                return event
            await self._feed()

    async def _feed(self) -> None:
        data = await self._connection.read(_READ)
        self._received += len(data)
        if self._received > _LARGEST_EXCHANGE:
            raise CallFailed(FailureMode.INVALID_RESPONSE, "the answer does not end: more than 8 MiB came")
        if not data and self._state.their_state is h11.SEND_RESPONSE:
            raise CallFailed(FailureMode.CONNECTION, "closed early, " + self._when())
        self._state.receive_data(data)

    def _when(self) -> str:
        if self._received:
            return "in the middle of the headers"
        return "a kept connection, before the answer" if self._connection.answers else "without an answer"


def _broken(error: str) -> CallFailed:
    if "without a pending proposal" in error:
        return CallFailed(
            FailureMode.HTTP_STATUS, "HTTP 101: it changes the protocol, unasked", http_status=101
        )
    if error.startswith("peer closed"):
        return CallFailed(
            FailureMode.CONNECTION, f"closed early, in the middle of the body: {clean(error, 200)}"
        )
    return CallFailed(FailureMode.INVALID_RESPONSE, f"the answer is not HTTP: {clean(error, 200)}")
