"""The document of a cycle: what it nominated and what it filtered out, and why, in one compressed piece.

A row for each pod would be millions of rows a day. What goes beyond the bounds is still counted, by reason
and namespace, so that a reader sees the numbers of the namespaces that are theirs.
"""

import zlib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from deschedui.descheduler.evictor import counted
from deschedui.descheduler.results import FilteredOut

MAX_FILTERED = 60_000
MAX_NOMINATIONS = 10_000
_MAX_BYTES = 64 * 1024 * 1024
_TEXT = 1000


class Filtered(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A pod that was left alone; ``reason`` is a place in the document's ``sentences``."""

    uid: str
    namespace: str
    name: str
    node: str
    profile: str
    plugin: str
    check: str
    reason: int
    more: tuple[int, ...] = ()


class Nominated(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, kw_only=True):
    """A pod that a plugin wants to evict, and what became of that in this cycle."""

    uid: str
    namespace: str
    name: str
    node: str
    profile: str
    plugin: str
    reason: str
    state: str
    """waiting, allowed, blocked, denied, skipped, expired, held_back, unasked, would_ask."""
    why: str = ""
    """Who or what made it so, as a sentence: a cool-down, an open decision, an extender, a freeze."""
    decision: int | None = None
    outcome: dict[str, Any] | None = None
    """What the extenders said together; in a dry run, which leaves no decision to read it from."""
    forecast: dict[str, Any] | None = None


class ReasonCount(msgspec.Struct, frozen=True, gc=False):
    """How many pods were filtered out for one kind of reason, by namespace."""

    check: str
    words: str
    by_namespace: dict[str, int]


class Document(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """All of it."""

    sentences: list[str] = []
    filtered: list[Filtered] = []
    nominations: list[Nominated] = []
    reasons: list[ReasonCount] = []
    states: dict[str, dict[str, int]] = {}
    """How many nominations ended in each state, by namespace."""
    left_out: int = 0
    """Pods that are counted but not listed."""


def build(filtered: Iterable[FilteredOut], nominations: Iterable[Nominated]) -> Document:
    """Make the document, within its bounds."""
    places: dict[str, int] = {}
    counts: dict[str, dict[str, int]] = {}
    rows: list[Filtered] = []
    left_out = 0
    # A pod is left alone by each plugin of each profile that looked at it: people count pods, so each once a reason.
    counted_already: set[tuple[str, str]] = set()
    for pod in filtered:
        if (pod.check, pod.uid) not in counted_already:
            counted_already.add((pod.check, pod.uid))
            _count(counts, pod.check, pod.namespace)
        if len(rows) < MAX_FILTERED:
            rows.append(_filtered(pod, places))
        else:
            left_out += 1
    listed = list(nominations)
    states: dict[str, dict[str, int]] = {}
    for line in listed:
        _count(states, line.state, line.namespace)
    return Document(
        sentences=list(places),
        filtered=rows,
        nominations=listed[:MAX_NOMINATIONS],
        reasons=_reasons(counts),
        states=states,
        left_out=left_out + max(0, len(listed) - MAX_NOMINATIONS),
    )


def _count(counts: dict[str, dict[str, int]], what: str, namespace: str) -> None:
    by_namespace = counts.setdefault(what, {})
    by_namespace[namespace] = by_namespace.get(namespace, 0) + 1


def _filtered(pod: FilteredOut, places: dict[str, int]) -> Filtered:
    def place(sentence: str) -> int:
        return places.setdefault(sentence[:_TEXT], len(places))

    return Filtered(
        pod.uid,
        pod.namespace,
        pod.name,
        pod.node,
        pod.profile,
        pod.plugin,
        pod.check,
        place(pod.reason),
        tuple(place(objection.reason) for objection in pod.more),
    )


def _reasons(counts: Mapping[str, dict[str, int]]) -> list[ReasonCount]:
    found = [ReasonCount(check, counted(check), by_namespace) for check, by_namespace in counts.items()]
    return sorted(found, key=lambda reason: (-sum(reason.by_namespace.values()), reason.check))


def pack(document: Document) -> bytes:
    """For the column."""
    return zlib.compress(msgspec.json.encode(document))


def unpack(packed: bytes | memoryview) -> Document:
    """From the column; empty where nothing was stored yet."""
    if not packed:
        return Document()
    body = zlib.decompressobj().decompress(bytes(packed), _MAX_BYTES)
    return msgspec.json.decode(body, type=Document)
