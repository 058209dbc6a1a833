"""The HTTP face: one ASGI application that authenticates, routes and answers."""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, unquote

import msgspec

from . import errors, eviction, reading, writing
from .calls import Call, Reply
from .discovery import documents
from .resources import BY_PATH, GROUPS, PODS, Resource
from .store import Store

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_log = logging.getLogger(__name__)

MAX_BODY = 3 * 1024 * 1024
_OPEN_PATHS = {"/healthz", "/livez", "/readyz", "/version"}
_VERBS = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "POST": "create"}
_SUBRESOURCES = {"eviction": eviction.evict, "binding": eviction.bind}


class App:
    """`tokens` maps bearer tokens to users, who may do everything. No token is system:anonymous, who may nothing."""

    def __init__(self, store: Store, tokens: Mapping[str, str]) -> None:
        self.store = store
        self._tokens = dict(tokens)
        self._documents = {path: msgspec.json.encode(d) for path, d in documents().items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            await self._answer(scope, receive, send)
        except errors.ApiError as refusal:
            await _send(send, Reply.of(refusal.code, refusal.body()), retry_after=refusal.retry_after())

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, method = scope["path"], scope["method"]
        user = self._user(dict(scope["headers"]).get(b"authorization", b""))
        if path in _OPEN_PATHS - {"/version"}:
            await _send(send, Reply(200, b"ok"), media=b"text/plain; charset=utf-8")
            return
        call = (
            route(scope) if path.startswith(("/api/v1/", "/apis/")) and path not in self._documents else None
        )
        if not user and path not in _OPEN_PATHS:
            raise _anonymous(call, method, path)
        if path.rstrip("/") in self._documents:
            await _send(send, Reply(200, self._documents[path.rstrip("/")]))
        elif path == "/demo/compact" and method == "POST":
            self.store.compact()
            await _send(send, Reply.of(200, errors.success(200)))
        elif call is None:
            await _send(send, Reply(404, b"404 page not found\n"), media=b"text/plain; charset=utf-8")
        else:
            await self._serve(method, call, receive, send)

    async def _serve(self, method: str, call: Call, receive: Receive, send: Send) -> None:
        if method == "GET" and call.query.get("watch") in {"true", "1"} and not call.name:
            await self._stream(reading.watch(self.store, call), receive, send)
            return
        body = await _body(receive)
        await _send(send, self._guarded(method, replace(call, body=body)))

    def _guarded(self, method: str, call: Call) -> Reply:
        """The answer; an object of a shape that nobody expected is a 500 of ours, as a panic is there."""
        try:
            return self.answer(method, call)
        except (AttributeError, KeyError, TypeError, ValueError) as fault:
            _log.warning("%s %s: %r", method, call.key, fault)
            text = f"Internal error occurred: {type(fault).__name__}"
            raise errors.ApiError(
                500, text, "InternalError", {"causes": [{"message": str(fault)}]}
            ) from fault

    def answer(self, method: str, call: Call) -> Reply:
        """One verb on one resource; raises ApiError for every refusal."""
        verb = _verb_of(method, call)
        if verb is None:
            raise errors.no_such_method()
        return verb(self.store, call)

    @staticmethod
    async def _stream(lines: AsyncIterator[bytes], receive: Receive, send: Send) -> None:
        """Send watch lines until they end or the client goes."""
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        work = asyncio.create_task(_forward(lines, send))
        gone = asyncio.create_task(_until_gone(receive))
        await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        work.cancel()
        gone.cancel()
        await asyncio.gather(work, gone, return_exceptions=True)
        with contextlib.suppress(OSError, RuntimeError):
            await send({"type": "http.response.body", "body": b""})

    def _user(self, header: bytes) -> str:
        """The user of an Authorization header, '' where there is none. Raises 401 for a token that is nobody's."""
        scheme, _, token = header.decode("latin-1").partition(" ")
        if scheme.lower() != "bearer" or not token:
            return ""
        for known, user in self._tokens.items():
            if secrets.compare_digest(known.encode(), token.encode()):
                return user
        raise errors.unauthorized()


async def _forward(lines: AsyncIterator[bytes], send: Send) -> None:
    async for line in lines:
        await send({"type": "http.response.body", "body": line, "more_body": True})


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _body(receive: Receive) -> bytes:
    """The whole body, at most 3 MiB as a real server takes."""
    parts, size, more = [], 0, True
    while more:
        message = await receive()
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MAX_BODY:
            raise errors.ApiError(413, f"limit is {MAX_BODY}", "RequestEntityTooLarge", {})
        more = message.get("more_body", False)
    return b"".join(parts)


async def _send(
    send: Send, reply: Reply, *, media: bytes = b"application/json", retry_after: int = 0
) -> None:
    headers = [(b"content-type", media), (b"content-length", str(len(reply.body)).encode())]
    headers.append((b"cache-control", b"no-cache, private"))
    if retry_after:
        headers.append((b"retry-after", str(retry_after).encode()))
    await send({"type": "http.response.start", "status": reply.code, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})


def route(scope: Scope) -> Call | None:
    """The resource that a path names, None outside every group. Raises 404 for one that is not served."""
    steps = [unquote(s) for s in scope["path"].strip("/").split("/")]
    group, rest = ("", steps[2:]) if steps[0] == "api" else (steps[1], steps[3:])
    version = steps[1] if steps[0] == "api" else (steps[2] if len(steps) > 2 else "")
    if group and group not in GROUPS:
        return None
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 2 and rest[2] != "status":
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = (*rest, "", "", "")[:3]
    resource = BY_PATH.get((group, version, plural))
    if resource is None or len(rest) > 3 or not _fits(resource, namespace, name, subresource):
        raise errors.no_such_path()
    headers = dict(scope["headers"])
    return Call(
        resource,
        namespace,
        name,
        subresource,
        query=dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)),
        content_type=headers.get(b"content-type", b"").decode("latin-1"),
    )


def _fits(resource: Resource, namespace: str, name: str, subresource: str) -> bool:
    if resource.namespaced is False and namespace:
        return False
    if resource.namespaced and name and not namespace:
        return False
    return subresource in {
        "",
        *(("status",) if resource.status else ()),
        *(_SUBRESOURCES if resource is PODS else ()),
    }


Verb = Callable[[Store, Call], Reply]
_COLLECTION: dict[str, Verb] = {
    "GET": reading.list_,
    "POST": writing.create,
    "DELETE": writing.delete_collection,
}
_OBJECT: dict[str, Verb] = {
    "GET": reading.get,
    "PUT": writing.update,
    "PATCH": writing.patch,
    "DELETE": writing.delete,
}


def _verb_of(method: str, call: Call) -> Verb | None:
    if call.subresource in _SUBRESOURCES:
        return _SUBRESOURCES[call.subresource] if method == "POST" else None
    if call.subresource == "status":
        return _OBJECT.get(method) if method != "DELETE" else None
    if call.name:
        return _OBJECT.get(method)
    if call.resource.namespaced and not call.namespace and method != "GET":
        return None
    return _COLLECTION.get(method)


def _anonymous(call: Call | None, method: str, path: str) -> errors.ApiError:
    who = 'User "system:anonymous" cannot'
    if call is None:
        text = f'forbidden: {who} {_VERBS.get(method, method.lower())} path "{path}"'
        return errors.ApiError(403, text, "Forbidden", {})
    verb = _VERBS.get(method, method.lower())
    if not call.name and method in {"GET", "DELETE"}:
        verb = {
            "GET": "watch" if call.query.get("watch") in {"true", "1"} else "list",
            "DELETE": "deletecollection",
        }[method]
    resource = f"{call.resource.plural}/{call.subresource}" if call.subresource else call.resource.plural
    where = f' in the namespace "{call.namespace}"' if call.namespace else " at the cluster scope"
    why = f'{who} {verb} resource "{resource}" in API group "{call.resource.group}"{where}'
    return errors.forbidden(call.resource, call.name, why)
