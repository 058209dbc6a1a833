"""The doors as an ASGI application of their own, in front of Django.

With ``ignorable: true`` a caller takes any failed call as permission to evict (protocols.md, the first law). So
nothing of the framework may answer in a door's place: no redirect for a missing slash, no size limit that ends
in a 400, no host check that ends in HTML. Whatever happens here, the answer is HTTP 200, well-formed, in time,
and a no unless a yes is on record.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.db import DatabaseError, InterfaceError, close_old_connections
from django.http.request import split_domain_port, validate_host

from decisions.doors import extender
from deschedui.logs import mask_door_tokens

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Decide = Callable[[extender.Knock, bytes], Awaitable[dict[str, Any]]]

# How long a caller waits whose timeout we do not know: an unknown token, or its first call here.
UNKNOWN_CALLER_SECONDS = 3.0
MARGIN_SECONDS = 0.5

log = logging.getLogger(__name__)


class TooLarge(Exception):  # noqa: N818 - it is told to the caller as a reason
    """The body is larger than a door reads."""


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
        if scope["type"] == "http" and _segments(scope)[:1] == ("doors",):
            await _serve(scope, receive, send, decide, unknown_caller_seconds)
        else:
            await application(scope, receive, send)

    return route


def _headers(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}


def _segments(scope: Scope) -> tuple[str, ...]:
    return tuple(part for part in scope.get("path", "").split("/") if part)


def _knock(scope: Scope) -> extender.Knock:
    return extender.Knock(
        method=scope["method"],
        segments=_segments(scope)[1:],
        authorization=_headers(scope).get("authorization", ""),
        address=(scope.get("client") or ("", 0))[0],
    )


def _within(caller_waits: float) -> float:
    """Our own limit for an answer: well before the caller's."""
    return max(caller_waits - MARGIN_SECONDS, caller_waits / 2)


async def _serve(scope: Scope, receive: Receive, send: Send, decide: Decide, unknown: float) -> None:
    knock = _knock(scope)
    try:
        async with asyncio.timeout(_within(extender.seconds_for(knock, unknown))):
            answer = await _answer(knock, _headers(scope), receive, decide)
    except TimeoutError:
        answer = extender.refusal("deschedui could not answer in time; nothing is allowed")
    except TooLarge as error:
        answer = extender.refusal(str(error))
    except Exception:
        log.exception("door: an error of ours before the question was read")
        answer = extender.refusal("deschedui had an error of its own; nothing is allowed")
    except asyncio.CancelledError:
        await _send(send, extender.refusal("deschedui is shutting down; nothing is allowed"))
        raise
    await _send(send, answer)


async def _answer(
    knock: extender.Knock, headers: dict[str, str], receive: Receive, decide: Decide
) -> dict[str, Any]:
    if not _host_is_ours(headers.get("host", "")):
        return extender.refusal("this host name is not one of deschedui's (DESCHEDUI_ALLOWED_HOSTS)")
    body = await _body(receive, headers.get("content-length", ""))
    return await decide(knock, body)


def _decide(door: Door, knock: extender.Knock, body: bytes) -> dict[str, Any]:
    """In a thread: the database is used synchronously. Never raises."""
    close_old_connections()
    try:
        return door(knock, body, now=datetime.now(UTC))
    except (DatabaseError, InterfaceError) as error:
        log.warning("door: the database is away: %s", mask_door_tokens(str(error))[:300])
        return extender.refusal("deschedui cannot reach its database; nothing is allowed")
    except Exception:
        log.exception("door: an error of ours")
        return extender.refusal("deschedui had an error of its own; nothing is allowed")
    finally:
        close_old_connections()


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
            return bytes(chunks)
        chunks += message.get("body", b"")
        if len(chunks) > limit:
            raise TooLarge(_too_large(limit))
        if not message.get("more_body"):
            return bytes(chunks)


def _too_large(limit: int) -> str:
    return f"the body is larger than {limit} bytes; nothing was recorded"


async def _send(send: Send, answer: dict[str, Any]) -> None:
    body = json.dumps(answer).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
