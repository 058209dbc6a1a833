"""The doors as an ASGI application of their own, in front of Django.

With ``ignorable: true`` a caller takes any failed call as permission to evict (protocols.md, the first law). So
nothing of the framework may answer in a door's place: no redirect for a missing slash, no size limit that ends
in a 400, no host check that ends in HTML. Whatever happens here, the answer is HTTP 200, well-formed, in time,
and a no unless a yes is on record.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.conf import settings
from django.db import DatabaseError, InterfaceError, close_old_connections, connections
from django.http.request import split_domain_port, validate_host

from decisions.doors import addresses, extender, refusals
from decisions.services.clock import NEAR
from deschedui.forwarded import caller_address
from deschedui.logs import mask_door_tokens

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Decide = Callable[[extender.Knock, bytes], Awaitable[dict[str, Any]]]

# How long a caller waits whose timeout we have not learned (yet): its token is unknown, or was not looked up.
UNKNOWN_CALLER_SECONDS = 1.0
MARGIN_SECONDS = 0.5

log = logging.getLogger(__name__)


class TooLarge(Exception):  # noqa: N818 - it is told to the caller as a reason
    """The body is larger than a door reads."""


class CutOff(Exception):  # noqa: N818 - nobody hears it, as a rule
    """The connection ended before the body did."""


Door = Callable[..., dict[str, Any]]


def with_doors(
    application: Application,
    *,
    threads: int = 16,
    door: Door = extender.answer,
    unknown_caller_seconds: float = UNKNOWN_CALLER_SECONDS,
) -> Application:
    """Serve ``/doors/…`` ourselves and pass everything else on.

    Args:
        threads: questions that use the database at the same time; more wait, until their time is over.
        door: answers a knock with its body; synchronous, called in a thread.
        unknown_caller_seconds: how long a caller waits whose timeout this process does not know yet.
    """
    pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="door")

    def decide(knock: extender.Knock, body: bytes) -> "asyncio.Future[dict[str, Any]]":
        return asyncio.get_running_loop().run_in_executor(pool, _decide, door, knock, body)

    async def route(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await application(scope, receive, send)
        elif addresses.door(scope.get("path", "")) is not None:
            await _serve(scope, receive, send, decide, unknown_caller_seconds)
        elif _is_lost(scope):
            await _send(send, refusals.refusal("this address is no door; ask at /doors/ and your verb"))
        else:
            await application(scope, receive, send)

    return route


def learn_callers() -> None:
    """Learn at the start how long callers wait; with the database away it is learned from each that asks."""
    try:
        extender.learn()
    except Exception as error:  # noqa: BLE001 - the process serves without it too
        log.warning("door: callers' timeouts are not known yet: %s", mask_door_tokens(str(error))[:300])
    finally:
        connections.close_all()


def _is_lost(scope: Scope) -> bool:
    """Whether a caller seems to ask at a wrong address: outside the API nothing else posts JSON or a bearer token.

    Django's 404 or 403 would be its permission to evict.
    """
    if scope["method"] != "POST" or scope.get("path", "").startswith("/api/"):
        return False
    json = "json" in _header(scope, b"content-type").lower()
    return json or _header(scope, b"authorization").lower().startswith("bearer ")


def _values(scope: Scope, wanted: bytes) -> list[str]:
    return [value.decode("latin-1") for name, value in scope["headers"] if name.lower() == wanted]


def _header(scope: Scope, wanted: bytes) -> str:
    return next(iter(_values(scope, wanted)), "")


def _knock(scope: Scope) -> extender.Knock:
    return extender.Knock(
        method=scope["method"],
        segments=addresses.door(scope["path"]) or (),
        authorization=_header(scope, b"authorization"),
        address=caller_address(
            (scope.get("client") or ("", 0))[0],
            ",".join(_values(scope, b"x-forwarded-for")),
            trusted=settings.ENV.trusted_proxies,
        )
        or "",
    )


def _within(caller_waits: float) -> float:
    """Our own limit for an answer: well before the caller's."""
    return max(caller_waits - MARGIN_SECONDS, caller_waits / 2)


async def _serve(scope: Scope, receive: Receive, send: Send, decide: Decide, unknown: float) -> None:
    try:
        answer = await _in_time(scope, receive, decide, unknown)
    except TimeoutError:
        answer = refusals.refusal("deschedui could not answer in time; nothing is allowed")
    except (TooLarge, CutOff) as error:
        answer = refusals.refusal(str(error))
    except asyncio.CancelledError:
        await _send(send, refusals.refusal("deschedui is shutting down; nothing is allowed"))
        raise
    except Exception:
        log.exception("door: an error of ours before the question was read")
        answer = refusals.refusal(refusals.OURS)
    await _send(send, answer)


async def _in_time(scope: Scope, receive: Receive, decide: Decide, unknown: float) -> dict[str, Any]:
    """The answer, before the caller stops waiting. How long it waits is often learned only meanwhile.

    Raises:
        TimeoutError: there is no answer yet, and the caller's time is nearly over.
    """
    clock = asyncio.get_running_loop().time
    begun, knock = clock(), _knock(scope)
    work = asyncio.ensure_future(_answer(scope, knock, receive, decide))
    try:
        while not work.done():
            left = begun + _within(extender.seconds_for(knock, unknown)) - clock()
            if left <= 0:
                raise TimeoutError
            await asyncio.wait({work}, timeout=left)
        return work.result()
    finally:
        work.cancel()


async def _answer(scope: Scope, knock: extender.Knock, receive: Receive, decide: Decide) -> dict[str, Any]:
    if not _host_is_ours(_header(scope, b"host")):
        return refusals.refusal("this host name is not one of deschedui's (DESCHEDUI_ALLOWED_HOSTS)")
    if not _is_one(_values(scope, b"authorization")):
        return refusals.refusal("two different Authorization headers: it is not clear who asks")
    body = await _body(receive, _header(scope, b"content-length"))
    return await decide(knock, body)


def _is_one(values: Iterable[str]) -> bool:
    return len(set(values)) <= 1


def _decide(door: Door, knock: extender.Knock, body: bytes) -> dict[str, Any]:
    """In a thread: the database is used synchronously. Never raises."""
    _tidy()
    try:
        answer = door(knock, body, now=NEAR.now())
    except (DatabaseError, InterfaceError) as error:
        log.warning("door: the database is away: %s", mask_door_tokens(str(error))[:300])
        return refusals.refusal("deschedui cannot reach its database; nothing is allowed")
    except Exception:
        log.exception("door: an error of ours")
        return refusals.refusal(refusals.OURS)
    else:
        _listen()
        return answer
    finally:
        _tidy()


def _listen() -> None:
    """Hear what time it is by the database. An answer that is ready is not lost over it."""
    try:
        NEAR.listen()
    except (DatabaseError, InterfaceError) as error:
        log.info("door: the database does not say what time it is: %s", mask_door_tokens(str(error))[:300])


def _tidy() -> None:
    """Close what is broken. An answer that is ready is not lost over it."""
    try:
        close_old_connections()
    except Exception:
        log.exception("door: a connection to the database could not be closed")


def _host_is_ours(host: str) -> bool:
    domain, _ = split_domain_port(host)
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)


async def _body(receive: Receive, content_length: str) -> bytes:
    limit: int = settings.DOOR_MAX_BODY_BYTES
    if content_length.isdecimal() and len(content_length) < 20 and int(content_length) > limit:
        raise TooLarge(_too_large(limit))
    chunks = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise CutOff("the connection ended before the body did")
        chunks += message.get("body", b"")
        if len(chunks) > limit:
            raise TooLarge(_too_large(limit))
        if not message.get("more_body"):
            return bytes(chunks)


def _too_large(limit: int) -> str:
    return f"the body is larger than {limit} bytes; nothing was recorded"


async def _send(send: Send, answer: dict[str, Any]) -> None:
    body = refusals.encode(answer)
    await send({"type": "http.response.start", "status": 200, "headers": refusals.headers(body)})
    await send({"type": "http.response.body", "body": body})
