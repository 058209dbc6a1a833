"""HTTP below ASGI. What the server would answer with 400 or 431, or with a closed connection, is a no at a door.

uvicorn is started with ``--http decisions.doors.protocol:DoorProtocol``. To its own protocol this adds, for doors:

- a request that is no HTTP (no Host or two, a header without an end, a wrong length, a broken chunk, bytes that do
  not belong there) is a no; so is one whose head does not arrive;
- a caller that has sent its question and closes its half of the connection still hears the answer;
- an answer that is given before the question was read to its end is not lost: a socket that is closed with unread
  bytes in it resets the connection, so the rest is read and thrown away first;
- a connection is kept for longer than callers keep theirs (Go: 90 s), so that none asks on one that just closes,
  and one that is kept when the process ends is closed a moment later, after a last question.

Left to whoever stands in front: TLS, HTTP/2, a listener that is closed (a second instance), a host that is gone.
Imported before Django is set up.
"""

import asyncio
import re
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from decisions.doors import addresses, refusals

HEAD_BYTES: Final = 64 * 1024
HEAD_SECONDS: Final = 1.0  # of a question; a caller that is registered may wait no longer than that
OTHER_HEAD_SECONDS: Final = 30.0
KEPT_SECONDS: Final = 120
LAST_QUESTION_SECONDS: Final = 2.0
LINGER_SECONDS: Final = 30.0
LINGER_BYTES: Final = 256 * 1024 * 1024

_CLOSE: Final = (b"connection", b"close")
# Loose on purpose: it reads request lines that are none.
_DOOR_LINE: Final = re.compile(rb"[^\r\n]*?/(doors|%64oors)\b", re.IGNORECASE)


class _Lingering:
    """A transport whose ``close`` first reads what is still on its way, where ``unread()`` says that there is some."""

    def __init__(self, transport: asyncio.Transport, protocol: "DoorProtocol") -> None:
        self._transport, self._protocol = transport, protocol
        self.lingers = False
        self._thrown_away = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        return self.lingers or self._transport.is_closing()

    def close(self) -> None:
        if self.is_closing() or not self._protocol.has_unread():
            self._transport.close()
            return
        self.lingers = True
        self._transport.write_eof()
        self._transport.resume_reading()
        asyncio.get_running_loop().call_later(LINGER_SECONDS, self._transport.close)

    def throw_away(self, data: bytes) -> None:
        """Count what nobody reads; there is an end to that."""
        self._thrown_away += len(data)
        if self._thrown_away > LINGER_BYTES:
            self._transport.close()


class DoorProtocol(H11Protocol):
    """uvicorn's HTTP/1.1, with a no in the place of every refusal of its own at a door."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn = h11.Connection(h11.SERVER, HEAD_BYTES)
        self.timeout_keep_alive = KEPT_SECONDS
        self.ws_protocol_class = None
        # uvicorn asks whether its logger has a handler, and the root's, which masks, is one.
        self.access_log = self.access_log and self.config.access_log
        self._first = b""  # of the request whose head is being read
        self._ended = False  # the other side sends nothing more
        self._last_question = False
        self._head_timer: asyncio.TimerHandle | None = None

    # --- what uvicorn or the event loop call

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        self._lingering = _Lingering(transport, self)
        super().connection_made(self._lingering)  # type: ignore[arg-type]  # it passes on what it is not
        self._expect_head(KEPT_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_head_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._lingering.lingers:
            self._lingering.throw_away(data)
            return
        if self.conn.their_state is h11.IDLE:
            self._note_first(data)
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._first = b""
            self._stop_head_timer()
        if self._last_question:
            self._say_close()

    def eof_received(self) -> bool | None:  # type: ignore[override]  # asyncio asks whether to stay open
        """Stay open for the answer, where the other side has only finished speaking."""
        self._ended = True
        if self._lingering.lingers or not self._at_door():
            return None
        if not self._is_asking():
            return self._refuse("the connection ended before the request did") if self._first else None
        if self.cycle.more_body:
            return self._refuse("the connection ended before the body did")
        self.cycle.keep_alive = False
        return True

    def send_400_response(self, msg: str) -> None:
        if self._at_door() or self._may_become_a_door():
            self._refuse("this is no HTTP request that can be read (its Host, a header or the body's length)")
        elif self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            super().send_400_response(msg)
        else:
            self.transport.close()

    def shutdown(self) -> None:
        """The process ends: answer what was asked, and one more question on a connection that was kept."""
        self._last_question = True
        if self._is_asking():
            self._say_close()
            super().shutdown()
        else:
            self.loop.call_later(LAST_QUESTION_SECONDS, self._close_if_silent)

    # --- ours

    def has_unread(self) -> bool:
        """Whether the other side may still be sending."""
        return not self._ended and self.conn.their_state not in {h11.DONE, h11.MUST_CLOSE, h11.CLOSED}

    def _is_asking(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle  # uvicorn says that there always is one
        return cycle is not None and not cycle.response_complete

    def _at_door(self) -> bool:
        """Whether what is being read now is, or seems to be, a question at a door."""
        if self._first or not self._is_asking():
            return bool(_DOOR_LINE.match(self._first))
        return addresses.door(self.scope["path"]) is not None

    def _may_become_a_door(self) -> bool:
        """Whether not even the first line is there: h11 gives up at its first wrong byte."""
        return bool(self._first) and b"\n" not in self._first

    def _note_first(self, data: bytes) -> None:
        if not self._first:
            data = data.lstrip(b"\r\n")
        begins = not self._first and bool(data)
        self._first = (self._first + data)[:HEAD_BYTES]
        if begins:
            self._expect_head(HEAD_SECONDS if self._at_door() else OTHER_HEAD_SECONDS)

    def _expect_head(self, seconds: float) -> None:
        self._stop_head_timer()
        self._head_timer = self.loop.call_later(seconds, self._head_is_late)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_is_late(self) -> None:
        if self._at_door():
            self._refuse("the head of the request did not arrive in time")
        else:
            self.transport.close()

    def _say_close(self) -> None:
        """Let the answer to this question say that it is the last one on its connection."""
        if self._is_asking() and not self.cycle.response_started and _CLOSE not in self.headers:
            self.headers.append(_CLOSE)  # uvicorn looks for it among the request's

    def _close_if_silent(self) -> None:
        if not self._is_asking() and not self._first:
            self.transport.close()

    def _refuse(self, reason: str) -> bool:
        """Say no in the application's place, unless it has begun to answer; then the connection ends with that."""
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            asking = self._is_asking()
            self._stop_application()
            body = refusals.encode(refusals.refusal(reason))
            head = h11.Response(status_code=200, headers=[*refusals.headers(body), _CLOSE], reason=b"OK")
            shown = b"" if asking and self.scope["method"] == "HEAD" else body
            for event in (head, h11.Data(data=shown), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
        return True

    def _stop_application(self) -> None:
        if self._is_asking():
            self.cycle.disconnected = True
            self.cycle.message_event.set()
