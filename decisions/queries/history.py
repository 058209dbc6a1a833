"""What was decided: filters that are the address, pages by key, everything streamed where it leaves as a file.

A page is one indexed query: "older than this key" on (created_at, id), never an offset and never a count.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlencode

from django.db.models import Q, QuerySet

from decisions.models import Decision, Eviction, Permission, Verdict
from decisions.queries.access import Access
from deschedui.extender.outcomes import FailureMode

PAGE: Final = 100
CHUNK: Final = 500
TEXT: Final = 200


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

    def where(self) -> Q:
        """The condition on decisions."""
        found = Q()
        columns = {
            "cluster": "cluster__name", "namespace": "namespace", "workload": "workload", "node": "node",
            "plugin": "plugin", "verdict": "verdict", "eviction": "eviction", "by": "decided_by_name",
            "asker": "asker_name",
        }  # fmt: skip
        for name, column in columns.items():
            if value := getattr(self, name):
                found &= Q(**{column: value})
        if self.failure == "any":
            found &= ~Q(failure_mode="")
        elif self.failure:
            found &= Q(failure_mode=self.failure)
        if since := parse_time(self.since):
            found &= Q(created_at__gte=since)
        if until := parse_time(self.until):
            found &= Q(created_at__lt=until)
        return found & _text(self.q)


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


def decisions(access: Access, chosen: HistoryFilter) -> "QuerySet[Decision]":
    """What the filter shows to this person, newest first."""
    rows = access.decisions(Permission.VIEW).filter(chosen.where()).select_related("cluster")
    return rows.order_by("-created_at", "-id")


def page(access: Access, chosen: HistoryFilter, before: str = "", *, size: int = PAGE) -> Page:
    """The newest decisions of the filter older than the key ``before``."""
    rows = decisions(access, chosen).defer("forecast", "extenders", "moment")
    key = read_key(before)
    if key is not None:
        at, pk = key
        # The first condition lets the index seek; the second one orders what has the same time.
        rows = rows.filter(created_at__lte=at).filter(Q(created_at__lt=at) | Q(pk__lt=pk))
    found = list(rows[: size + 1])
    older = key_of(found[size - 1]) if len(found) > size else ""
    return Page(found[:size], older)


def key_of(decision: Decision) -> str:
    """The place of a decision in the history, for an address."""
    return f"{decision.created_at.astimezone(UTC).isoformat()}_{decision.pk}"


def read_key(text: str) -> tuple[datetime, int] | None:
    """A key of an address; None for anything else."""
    when, _, pk = text.rpartition("_")
    at = parse_time(when.replace(" ", "+"))
    return (at, int(pk)) if at and pk.isascii() and pk.isdigit() and len(pk) < 19 else None


# --- files -------------------------------------------------------------------------------------------------

COLUMNS: Final = (
    "id", "created_at", "cluster", "namespace", "pod_name", "pod_uid", "node", "workload", "asker_name", "profile",
    "plugin", "reason", "extender_effect", "failure_mode", "verdict", "decided_by_name", "decided_at",
    "decision_reason", "override", "eviction", "ended_at", "message",
)  # fmt: skip


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


def safe_cell(value: object) -> str:
    """A CSV cell that no spreadsheet takes for a formula (names and reasons come from outside)."""
    text = "" if value is None else str(value)
    return f"'{text}" if text[:1] in {"=", "+", "-", "@", "\t", "\r", "\n"} or text.lstrip()[:1] in {"=", "+", "@"} else text
