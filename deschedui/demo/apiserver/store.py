"""What is stored: objects, one revision counter, and the recent changes that watches and pages read.

Objects are plain JSON trees and never changed in place: a write puts a new tree. All calls come from one event loop, so
each is atomic.
"""

import asyncio
from bisect import bisect_right, insort
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec

from .resources import NEW_EVENTS, RESOURCES, Resource

Json = dict[str, Any]

HISTORY = 4096
_LEFT_OUT_EMPTY = {"labels", "annotations", "finalizers", "ownerReferences"}
_encode = msgspec.json.encode


@dataclass(frozen=True, slots=True)
class Stored:
    """An object as of one revision, with its JSON already made (without kind and apiVersion)."""

    obj: Json
    raw: bytes
    revision: int


@dataclass(frozen=True, slots=True)
class Change:
    """One write: what was there before and after it (None: absent), and for a deletion the object's last appearance."""

    revision: int
    key: str
    before: Stored | None
    after: Stored | None
    last: Stored | None = None


@dataclass
class Table:
    """The objects of one kind by `namespace/name` (or `name`), sorted as etcd sorts them."""

    objects: dict[str, Stored] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)
    changes: deque[Change] = field(default_factory=lambda: deque(maxlen=HISTORY))
    compacted: int = 0
    waiters: set[asyncio.Future[None]] = field(default_factory=set)

    def record(self, change: Change) -> None:
        if len(self.changes) == HISTORY:
            self.compacted = self.changes[0].revision
        self.changes.append(change)
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_result(None)
        self.waiters.clear()

    def changes_after(self, revision: int) -> list[Change]:
        start = bisect_right(self.changes, revision, key=lambda c: c.revision)
        return [self.changes[i] for i in range(start, len(self.changes))]


def key_of(obj: Json) -> str:
    """`namespace/name`, or `name` alone for what has no namespace."""
    meta = obj["metadata"]
    return f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else str(meta["name"])


class Store:
    """Every object of the cluster. `clock` is the time that stamps are made from (aware, UTC)."""

    def __init__(self, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.clock = clock
        self.revision = 1
        self._tables = {r: Table() for r in RESOURCES if r is not NEW_EVENTS}

    def table(self, resource: Resource) -> Table:
        """The table of a kind. Raises KeyError for the second face of events: ask for the first."""
        return self._tables[resource]

    def get(self, resource: Resource, key: str) -> Stored | None:
        return self._tables[resource].objects.get(key)

    def all(self, resource: Resource) -> Iterator[Json]:
        """Every object of a kind, in key order; a copy, so that the caller may write meanwhile."""
        table = self._tables[resource]
        return iter([table.objects[k].obj for k in table.keys])

    def put(self, resource: Resource, obj: Json) -> Stored:
        """Store `obj` under its own name with a new resourceVersion; what it was made from stays untouched."""
        self.revision += 1
        meta = {k: v for k, v in obj["metadata"].items() if v or k not in _LEFT_OUT_EMPTY}
        meta["resourceVersion"] = str(self.revision)
        bare = {k: v for k, v in obj.items() if k not in {"kind", "apiVersion"}} | {"metadata": meta}
        stored = Stored(bare, _encode(bare), self.revision)
        table, key = self._tables[resource], key_of(bare)
        before = table.objects.get(key)
        if before is None:
            insort(table.keys, key)
        table.objects[key] = stored
        table.record(Change(self.revision, key, before, stored))
        return stored

    def remove(self, resource: Resource, key: str, last: Json | None = None) -> None:
        """Take an object away; `last` is how watches see it for the last time (default: as it was)."""
        table = self._tables[resource]
        before = table.objects.pop(key, None)
        if before is None:
            return
        table.keys.remove(key)
        self.revision += 1
        shown = last or before.obj
        bare = shown | {"metadata": shown["metadata"] | {"resourceVersion": str(self.revision)}}
        gone = Stored(bare, _encode(bare), self.revision)
        table.record(Change(self.revision, key, before, None, gone))

    def at(self, resource: Resource, revision: int) -> list[tuple[str, Stored]] | None:
        """The objects as they were at `revision`, sorted; None where that is too long ago."""
        table = self._tables[resource]
        if revision < table.compacted:
            return None
        later = table.changes_after(revision)
        if not later:
            return [(k, table.objects[k]) for k in table.keys]
        past = dict(table.objects)
        for change in reversed(later):
            if change.before is None:
                past.pop(change.key, None)
            else:
                past[change.key] = change.before
        return sorted(past.items())

    def compact(self) -> None:
        """Forget what was before now, as etcd does every few minutes: older watches and pages get a 410."""
        for table in self._tables.values():
            table.changes.clear()
            table.compacted = self.revision

    async def changed(self, resource: Resource, seconds: float) -> bool:
        """Return at the next write of a kind (true), or after so many seconds (false)."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        table = self._tables[resource]
        table.waiters.add(waiter)
        try:
            async with asyncio.timeout(seconds):
                await waiter
        except TimeoutError:
            return False
        finally:
            table.waiters.discard(waiter)
        return True
