"""What was decided: filters that are the address, pages by key, everything streamed where it leaves as a file.

A page is one indexed query: "older than this key" on (created_at, id), never a count. Where a filter has no index,
another query first says how far back this page looks.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlencode

from django.db.models import Q, QuerySet

from decisions.models import Cluster, Decision, Eviction, Permission, Verdict
from decisions.queries.access import Access
from deschedui.extender.outcomes import FailureMode

PAGE: Final = 100
CHUNK: Final = 500
# Where no index finds what a filter asks for (text, a node, a person …), a page looks at so many decisions and no
# more: however rare the matches are, it comes at once, and the next page looks further back.
LOOKED_AT: Final = 25_000
TEXT: Final = 400  # The longest column that a filter compares with, a workload, has 320.

COLUMNS: Final = (
    "id", "created_at", "cluster", "namespace", "pod_name", "pod_uid", "node", "workload", "asker_name", "profile",
    "plugin", "reason", "extender_effect", "failure_mode", "verdict", "decided_by_name", "decided_at",
    "decision_reason", "override", "eviction", "ended_at", "message",
)  # fmt: skip
# A third of a decision's columns: what the table and the files show, and nothing that a row does not need.
_READ: Final = tuple("cluster__name" if name == "cluster" else name for name in COLUMNS)

Key = tuple[datetime, int]
"""A place in the history: when a decision was made, and its id."""


@dataclass(frozen=True)
class HistoryFilter:
    """What is shown. Each field is a parameter of the address of the same name; empty: all."""

    q: str = ""
    cluster: str = ""
    namespace: str = ""
    workload: str = ""
    node: str = ""
    plugin: str = ""
    verdict: str = ""
    eviction: str = ""
    failure: str = ""
    by: str = ""
    asker: str = ""
    since: str = ""
    until: str = ""

    @classmethod
    def of(cls, parameters: Mapping[str, str]) -> "HistoryFilter":
        """From an address. A value that cannot be one is left out, so that an old link still opens."""
        given = {each.name: parameters.get(each.name, "").strip()[:TEXT] for each in fields(cls)}
        checks = {"verdict": Verdict.values, "eviction": Eviction.values, "failure": [*FailureMode, "any"]}
        for name, allowed in checks.items():
            if given[name] not in allowed:
                given[name] = ""
        for name in ("since", "until"):
            if parse_time(given[name]) is None:
                given[name] = ""
        return cls(**given)

    @property
    def chips(self) -> list[tuple[str, str]]:
        """The filters that are set, as (name, value)."""
        return [(each.name, getattr(self, each.name)) for each in fields(self) if getattr(self, each.name)]

    def query(self, **changes: str) -> str:
        """The address of this filter, with changes."""
        return urlencode(replace(self, **changes).chips)

    def indexed(self) -> "HistoryFilter":
        """The part of it that one index answers in the page's order; the rest is tested row by row."""
        kept = HistoryFilter(since=self.since, until=self.until)
        if self.namespace:
            return replace(kept, namespace=self.namespace)
        if self.eviction not in {"", Eviction.NONE}:
            return replace(kept, eviction=self.eviction)
        if self.verdict:
            return replace(kept, verdict=self.verdict)
        return replace(kept, cluster=self.cluster)

    def where(self) -> Q:
        """The condition on decisions."""
        found = Q()
        columns = {
            "namespace": "namespace", "workload": "workload", "node": "node",
            "plugin": "plugin", "verdict": "verdict", "eviction": "eviction", "by": "decided_by_name",
            "asker": "asker_name",
        }  # fmt: skip
        for name, column in columns.items():
            if value := getattr(self, name):
                found &= Q(**{column: value})
        if self.cluster:
            found &= _cluster(self.cluster)
        if self.eviction and self.eviction != Eviction.NONE:
            found &= Q(verdict=Verdict.ALLOWED)  # No other verdict has one; the index begins with it.
        if self.failure == "any":
            found &= ~Q(failure_mode="")
        elif self.failure:
            found &= Q(failure_mode=self.failure)
        if since := parse_time(self.since):
            found &= Q(created_at__gte=since)
        if until := parse_time(self.until):
            found &= Q(created_at__lt=until)
        return found & _text(self.q)


def _cluster(name: str) -> Q:
    """By the id itself: with a join or a subquery in its place the databases do not use the index in order."""
    pk = Cluster.objects.filter(name=name).values_list("pk", flat=True).first()
    return Q(pk__in=()) if pk is None else Q(cluster_id=pk)


def _text(text: str) -> Q:
    if not text:
        return Q()
    columns = ("pod_name", "namespace", "workload", "node", "reason", "decision_reason", "message")
    found = Q()
    for column in columns:
        found |= Q(**{f"{column}__icontains": text})
    return found


def parse_time(text: str) -> datetime | None:
    """ISO 8601; without a zone it is UTC."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Page:
    """A page of the history, newest first."""

    rows: list[Decision]
    older: str
    """The key of the next page; empty where there is none."""
    searched_to: datetime | None = None
    """How far back this page looked, where it stopped before it was full; None: as far as it had to."""


def decisions(access: Access, chosen: HistoryFilter) -> "QuerySet[Decision]":
    """What the filter shows to this person, newest first."""
    rows = access.decisions(Permission.VIEW).filter(chosen.where()).select_related("cluster")
    return rows.order_by("-created_at", "-id")


def page(
    access: Access,
    chosen: HistoryFilter,
    before: str = "",
    *,
    size: int = PAGE,
    looked_at: int = LOOKED_AT,
) -> Page:
    """The newest decisions of the filter older than the key ``before``; may hold fewer and still have a next page."""
    key = read_key(before)
    floor = _floor(access, chosen, key, looked_at)
    rows = _older(decisions(access, chosen), key).only(*_READ)
    if floor is not None:
        at, pk = floor
        rows = rows.filter(created_at__gte=at).filter(Q(created_at__gt=at) | Q(pk__gte=pk))
    found = list(rows[: size + 1])
    if len(found) > size:
        return Page(found[:size], key_of(found[size - 1]))
    return Page(found, _text_of(floor), floor[0]) if floor is not None else Page(found, "")


def _older(rows: "QuerySet[Decision]", key: Key | None) -> "QuerySet[Decision]":
    if key is None:
        return rows
    at, pk = key
    # The first condition lets the index seek; the second one orders what has the same time.
    return rows.filter(created_at__lte=at).filter(Q(created_at__lt=at) | Q(pk__lt=pk))


def _floor(access: Access, chosen: HistoryFilter, key: Key | None, looked_at: int) -> Key | None:
    """The last decision that a page may look at; None: as many as there are."""
    indexed = chosen.indexed()
    if indexed == chosen:
        return None
    rows = _older(decisions(access, indexed), key)
    return rows.values_list("created_at", "pk")[looked_at : looked_at + 1].first()


def key_of(decision: Decision) -> str:
    """The place of a decision in the history, for an address."""
    return _text_of((decision.created_at, decision.pk))


def _text_of(key: Key) -> str:
    at, pk = key
    return f"{at.astimezone(UTC).isoformat()}_{pk}"


def read_key(text: str) -> Key | None:
    """A key of an address; None for anything else."""
    when, _, pk = text.rpartition("_")
    at = parse_time(when.replace(" ", "+"))
    return (at, int(pk)) if at and pk.isascii() and pk.isdigit() and len(pk) < 19 else None


# --- files -------------------------------------------------------------------------------------------------


def export(access: Access, chosen: HistoryFilter) -> Iterator[dict[str, object]]:
    """Every decision that the filter shows, in chunks by key: however many, memory holds one chunk."""
    before = ""
    while True:
        found = page(access, chosen, before, size=CHUNK)
        yield from (_record(row) for row in found.rows)
        if not found.older:
            return
        before = found.older


def _record(row: Decision) -> dict[str, object]:
    return {name: _value(row, name) for name in COLUMNS}


def _value(row: Decision, name: str) -> object:
    if name == "cluster":
        return row.cluster.name
    value = getattr(row, name)
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value
