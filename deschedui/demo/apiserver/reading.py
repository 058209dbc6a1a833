"""Get, list and watch."""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import msgspec

from . import errors
from .calls import Call, Reply, whole
from .resources import Resource
from .selectors import parse_fields, parse_labels
from .store import Change, Json, Store, Stored
from .views import outgoing, table_of, titled

Wanted = Callable[[Json], bool]
BOOKMARK_SECONDS = 10.0
DEFAULT_WATCH_SECONDS = 1800


@dataclass(frozen=True, slots=True)
class Page:
    """A continue token: the revision that the list shows and the key after which it goes on."""

    revision: int
    start: str

    def token(self) -> str:
        content = msgspec.json.encode(
            {"v": "meta.k8s.io/v1", "rv": self.revision, "start": f"/{self.start}\0"}
        )
        return urlsafe_b64encode(content).rstrip(b"=").decode()

    @staticmethod
    def of(token: str) -> "Page":
        """Read a token. Raises the server's 400 for one that it never gave."""
        try:
            content = msgspec.json.decode(urlsafe_b64decode(token + "=" * (-len(token) % 4)), type=dict)
            return Page(int(content["rv"]), str(content["start"]).strip("/\0"))
        except (binascii.Error, ValueError, KeyError, TypeError, msgspec.MsgspecError) as fault:
            text = "invalid continue token: continue key is not valid: invalid character in it"
            raise errors.bad_request(text) from fault


def get(store: Store, call: Call) -> Reply:
    """One object."""
    stored = found(store, call)
    return Reply(200, titled(call.resource, outgoing(call.resource, stored)[1]))


def found(store: Store, call: Call) -> Stored:
    """The object that the path names. Raises 404."""
    stored = store.get(table_of(call.resource), call.key)
    if stored is None:
        raise errors.not_found(call.resource, call.name)
    return stored


def selection(call: Call) -> Wanted:
    """Namespace, labelSelector and fieldSelector as one test."""
    tests: list[Wanted] = []
    if call.namespace:
        tests.append(lambda obj: obj["metadata"].get("namespace") == call.namespace)
    if text := call.query.get("labelSelector", ""):
        labels = parse_labels(text)
        tests.append(lambda obj: labels(obj["metadata"].get("labels") or {}))
    if text := call.query.get("fieldSelector", ""):
        tests.append(parse_fields(text, call.resource))
    return lambda obj: all(test(obj) for test in tests)


def selected(store: Store, call: Call) -> list[tuple[str, Stored]]:
    """What a collection's path and selectors name now."""
    wanted, table = selection(call), store.table(table_of(call.resource))
    entries = ((key, table.objects[key]) for key in table.keys)
    return [(k, s) for k, s in entries if wanted(outgoing(call.resource, s)[0])]


def list_(store: Store, call: Call) -> Reply:
    """A list, or a page of one, as of one revision."""
    limit = whole(call.query.get("limit") or "0")
    page = _page(store, call)
    entries = store.at(table_of(call.resource), page.revision)
    if entries is None:
        raise errors.expired_page(Page(store.revision, page.start).token())
    wanted = selection(call)
    chosen = [(k, raw) for k, obj, raw in _faces(call, entries, page.start) if wanted(obj)]
    if call.query.get("resourceVersion") == "0":
        limit = 0
    meta: Json = {"resourceVersion": str(page.revision)}
    if limit and len(chosen) > limit:
        meta["continue"] = Page(page.revision, _after(call, chosen[limit - 1][0])).token()
        if not call.query.get("labelSelector") and not call.query.get("fieldSelector"):
            meta["remainingItemCount"] = len(chosen) - limit
        chosen = chosen[:limit]
    title = f'{{"kind":"{call.resource.kind}List","apiVersion":"{call.resource.group_version}","metadata":'.encode()
    return Reply(
        200, title + msgspec.json.encode(meta) + b',"items":[' + b",".join(raw for _, raw in chosen) + b"]}"
    )


def _faces(call: Call, entries: list[tuple[str, Stored]], start: str) -> list[tuple[str, Json, bytes]]:
    after = f"{call.namespace}/{start}" if call.namespace and start else start
    return [(k, *outgoing(call.resource, stored)) for k, stored in entries if k > after or not start]


def _after(call: Call, key: str) -> str:
    return key.removeprefix(f"{call.namespace}/") if call.namespace else key


def _page(store: Store, call: Call) -> Page:
    version = call.query.get("resourceVersion", "")
    if token := call.query.get("continue", ""):
        if version not in {"", "0"}:
            raise errors.bad_request("specifying resource version is not allowed when using continue")
        page = Page.of(token)
        return Page(page.revision if page.revision > 0 else store.revision, page.start)
    asked = revision_of(version, "invalid resource version: ")
    if asked > store.revision:
        raise errors.too_new(asked, store.revision)
    exact = call.query.get("resourceVersionMatch") == "Exact"
    return Page(asked if exact and asked else store.revision, "")


def revision_of(text: str, prefix: str = "") -> int:
    """A resourceVersion of a query; 0 where there is none. Raises the server's 400."""
    if text and not text.isdigit():
        parse = f'strconv.ParseUint: parsing "{text}": invalid syntax'
        raise errors.bad_request(f'{prefix}resourceVersion: Invalid value: "{text}": {parse}')
    return int(text or 0)


def watch(store: Store, call: Call) -> AsyncIterator[bytes]:
    """The changes of a kind from a revision on, one JSON line each, until the client's timeout.

    Raises the refusals of a bad query. An error after the start is an event of its own: the status is 200 by then.
    """
    seconds = whole(call.query.get("timeoutSeconds") or str(DEFAULT_WATCH_SECONDS))
    try:
        seen = revision_of(call.query.get("resourceVersion", ""))
    except errors.ApiError as refusal:
        raise errors.ApiError(500, refusal.message) from refusal
    return _changes(store, call, selection(call), seen, seconds)


async def _changes(
    store: Store, call: Call, wanted: Wanted, seen: int, seconds: float
) -> AsyncIterator[bytes]:
    resource, table = call.resource, store.table(table_of(call.resource))
    ends = store.clock().timestamp() + seconds
    bookmarks, lists = _is_true(call, "allowWatchBookmarks"), _is_true(call, "sendInitialEvents")
    idle = False
    if seen == 0 or lists:
        seen = store.revision
        for line in _initial(store, call, complete=lists and bookmarks):
            yield line
    while True:
        if seen < table.compacted:
            yield _error_line(errors.expired_watch(seen, table.compacted))
            return
        changes = table.changes_after(seen)
        for change in changes:
            seen = change.revision
            if line := _event(resource, change, wanted):
                yield line
        left = ends - store.clock().timestamp()
        if not changes and bookmarks and (idle or left <= 0):
            seen = max(seen, store.revision)
            yield _bookmark(resource, seen)
        if left <= 0:
            return
        idle = not await store.changed(table_of(resource), min(left, BOOKMARK_SECONDS))


def _is_true(call: Call, option: str) -> bool:
    return call.query.get(option) in {"true", "1"}


def _initial(store: Store, call: Call, *, complete: bool) -> list[bytes]:
    """What is there now as ADDED events; for a watch that replaces a list also the bookmark that ends them."""
    lines = [_line("ADDED", call.resource, outgoing(call.resource, s)[1]) for _, s in selected(store, call)]
    if complete:
        lines.append(_bookmark(call.resource, store.revision, {"k8s.io/initial-events-end": "true"}))
    return lines


def _event(resource: Resource, change: Change, wanted: Wanted) -> bytes:
    """One change as this watch sees it: an object that leaves the selection is a deletion for it."""
    before, after = change.before, change.after
    was = before is not None and wanted(outgoing(resource, before)[0])
    if after is not None and wanted(outgoing(resource, after)[0]):
        return _line("MODIFIED" if was else "ADDED", resource, outgoing(resource, after)[1])
    if not was or before is None:
        return b""
    last = change.last or Stored(*_moved(before, change.revision))
    return _line("DELETED", resource, outgoing(resource, last)[1])


def _moved(stored: Stored, revision: int) -> tuple[Json, bytes, int]:
    obj = stored.obj | {"metadata": stored.obj["metadata"] | {"resourceVersion": str(revision)}}
    return obj, msgspec.json.encode(obj), revision


def _line(kind: str, resource: Resource, raw: bytes) -> bytes:
    return b'{"type":"' + kind.encode() + b'","object":' + titled(resource, raw) + b"}\n"


def _error_line(error: errors.ApiError) -> bytes:
    return b'{"type":"ERROR","object":' + msgspec.json.encode(error.body()) + b"}\n"


def _bookmark(resource: Resource, revision: int, annotations: dict[str, str] | None = None) -> bytes:
    meta: Json = {"resourceVersion": str(revision), "creationTimestamp": None}
    return _line("BOOKMARK", resource, msgspec.json.encode({"metadata": meta | _annotated(annotations)}))


def _annotated(annotations: dict[str, str] | None) -> Json:
    return {"annotations": annotations} if annotations else {}
