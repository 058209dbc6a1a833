"""What waits for a person: pending decisions in groups, and what was approved and is not gone yet."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from django.db.models import Min, Q, QuerySet

from decisions.models import (
    OPEN,
    RECALLABLE,
    Cluster,
    Cycle,
    CycleKind,
    CycleState,
    Decision,
    Eviction,
    Permission,
    Rule,
    Verdict,
)
from decisions.queries import sentences
from decisions.queries.access import Access
from decisions.queries.cycles import limit_sentence
from decisions.queries.people import Place, who_may_in
from decisions.queries.sentences import Advice, Chip, Look

Grouping = Literal["workload", "node", "cycle"]
GROUPINGS: tuple[Grouping, ...] = ("workload", "node", "cycle")
MOST_ROWS = 200
MOST_ON_THEIR_WAY = 50
FAILED_STAYS = timedelta(hours=24)


@dataclass(frozen=True)
class Filter:
    """What of the inbox is shown, as the address says it."""

    group: Grouping = "workload"
    q: str = ""
    namespace: str = ""
    node: str = ""
    plugin: str = ""
    cluster: Cluster | None = None

    def where(self) -> Q:
        """The condition on decisions."""
        found = Q(cluster=self.cluster) if self.cluster else Q()
        for name in ("namespace", "node", "plugin"):
            if value := getattr(self, name):
                found &= Q(**{name: value})
        if self.q:
            found &= (
                Q(pod_name__icontains=self.q) | Q(reason__icontains=self.q) | Q(workload__icontains=self.q)
            )
        return found

    @property
    def narrowed(self) -> bool:
        """Whether it hides anything."""
        return bool(self.q or self.namespace or self.node or self.plugin)


@dataclass(frozen=True)
class Row:
    """One decision as the inbox shows it to one person."""

    decision: Decision
    may_decide: bool
    may_override: bool
    now: datetime
    others: tuple[Decision, ...] = ()
    since: datetime | None = None
    approvers: tuple[str, ...] = ()

    @property
    def pending(self) -> bool:
        """Whether it can be answered: pending, and its time is not over."""
        row = self.decision
        return row.verdict == Verdict.PENDING and (row.expires_at is None or row.expires_at > self.now)

    @property
    def question(self) -> str:
        """The head, as one sentence."""
        return sentences.question(self.decision)

    @property
    def look(self) -> Look:
        """Icon, word, colour."""
        if self.decision.verdict == Verdict.PENDING and not self.pending:
            return sentences.VERDICTS[Verdict.EXPIRED]
        return sentences.look(self.decision)

    @property
    def outcome(self) -> str:
        """What became of it, as a sentence."""
        if self.decision.verdict == Verdict.PENDING and not self.pending:
            return "Nobody answered in time."
        return sentences.outcome(self.decision)

    @property
    def chips(self) -> tuple[Chip, ...]:
        """The forecast."""
        return sentences.chips(self.decision)

    @property
    def extender(self) -> str:
        """What the extender said, in a few words."""
        return sentences.extender_short(self.decision)

    @property
    def asking(self) -> int:
        """How many wait for this pod, itself included; 0 where it is not the first of several."""
        waiting = [other.pk for other in self.others if other.verdict == Verdict.PENDING]
        first = self.pending and self.may_decide and bool(waiting) and self.decision.pk < min(waiting)
        return len(waiting) + 1 if first else 0

    @property
    def nth(self) -> str:
        """ "3rd time", where nobody answered before."""
        times = self.decision.unanswered
        return f"{sentences.ordinal(times + 1)} time" if times and self.pending else ""

    @property
    def share_left(self) -> float:
        """0 to 1."""
        return sentences.share_left(self.decision, self.now)

    @property
    def undo_until(self) -> datetime | None:
        """Until when it can be undone; None where it cannot."""
        until = sentences.undo_until(self.decision)
        return until if until and until > self.now and self.may_decide else None

    @property
    def moves(self) -> bool:
        """Whether something may happen within seconds: it is open, or its replacement is still to come."""
        row = self.decision
        replacing = row.eviction == Eviction.EVICTED and not (row.replacement_ready_at or row.settled_at)
        return row.is_open or replacing

    @property
    def final(self) -> bool:
        """Whether nothing can change any more: nobody can override it or try it again, no replacement is to come."""
        row = self.decision
        return not (self.moves or row.verdict == Verdict.DENIED or row.eviction == Eviction.FAILED)

    @property
    def recallable(self) -> bool:
        """Whether the approval can still be taken back."""
        row = self.decision
        return self.may_decide and row.verdict == Verdict.ALLOWED and row.eviction in RECALLABLE

    @property
    def overridable(self) -> bool:
        """Whether the denial can be overridden by this person."""
        return self.may_override and self.decision.verdict == Verdict.DENIED

    @property
    def retryable(self) -> bool:
        """Whether a failed eviction can be tried again by hand."""
        row = self.decision
        return self.may_decide and row.verdict == Verdict.ALLOWED and row.eviction == Eviction.FAILED

    @property
    def releasable(self) -> bool:
        """Whether a held eviction can be told to go on."""
        return self.may_decide and self.decision.eviction == Eviction.QUEUED and bool(self.decision.held)

    @property
    def advice(self) -> Advice:
        """What the API server said last about the eviction, and the next step."""
        return sentences.eviction_advice(self.decision)

    @property
    def token(self) -> str:
        """Changes when the row has to be drawn anew."""
        row = self.decision
        parts = [
            row.version, row.verdict, row.eviction, row.updated_at, row.held, row.message, row.nominated_count,
            self.undo_until, self.pending, self.may_decide, [other.pk for other in self.others],
        ]  # fmt: skip
        return _short(parts)


@dataclass
class Group:
    """Rows that stand together, with what a reviewer wants to know of all of them."""

    key: str
    kind: str
    name: str
    namespace: str = ""
    cluster: str = ""
    rows: list[Row] = field(default_factory=list)
    by: Grouping = "workload"

    @property
    def id(self) -> str:
        """Stable over updates."""
        return "g-" + _short([self.key])

    @property
    def waiting(self) -> list[Row]:
        """The rows that wait for an answer."""
        return [row for row in self.rows if row.pending]

    @property
    def ready(self) -> str:
        """ "2 of 3 Ready" of the newest forecast; empty where the group is no workload or nothing is known."""
        forecast = self._forecast
        if self.by != "workload" or forecast.get("desired") is None:
            return ""
        return f"{forecast.get('ready')} of {forecast['desired']} Ready"

    @property
    def pdbs(self) -> list[Chip]:
        """What its PDBs allow now."""
        return sentences.pdb_chips(self._forecast) if self.by == "workload" else []

    @property
    def _forecast(self) -> dict[str, Any]:
        newest = max(self.rows, key=lambda row: row.decision.nominated_at)
        return newest.decision.forecast or {}

    @property
    def pods(self) -> int:
        """How many distinct pods are asked for."""
        return len({row.decision.pod_uid for row in self.waiting})

    @property
    def shortest(self) -> datetime | None:
        """When the first of it expires."""
        ends = [row.decision.expires_at for row in self.waiting if row.decision.expires_at]
        return min(ends) if ends else None

    @property
    def token(self) -> str:
        """Changes when the head has to be drawn anew."""
        return _short(
            [self.ready, self.pdbs, self.pods, self.shortest, [row.decision.pk for row in self.waiting]]
        )


@dataclass(frozen=True)
class Inbox:
    """The whole page."""

    filter: Filter
    groups: tuple[Group, ...]
    on_their_way: tuple[Row, ...]
    failed: tuple[Row, ...]
    total: int
    notes: tuple[str, ...]

    @property
    def shown(self) -> int:
        """How many decisions the list shows."""
        return sum(len(group.rows) for group in self.groups)


def _short(parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:8]


def token_of(pks: Sequence[int]) -> str:
    """Changes when other rows wait behind the bar."""
    return _short(sorted(pks))


def related(rows: "QuerySet[Decision]") -> "QuerySet[Decision]":
    """With what a row shows, in the same query, and without what it does not."""
    return rows.select_related("cluster").defer("extenders", "moment")


def waiting(access: Access, chosen: Filter, now: datetime) -> "QuerySet[Decision]":
    """The pending decisions of this person and filter, by time left."""
    rows = access.decisions(Permission.VIEW).filter(
        chosen.where(), verdict=Verdict.PENDING, expires_at__gt=now
    )
    return related(rows).order_by("expires_at", "pk")


def inbox(access: Access, chosen: Filter, now: datetime) -> Inbox:
    """Everything the inbox shows to one person. A fixed number of queries, however many rows."""
    pending = list(waiting(access, chosen, now)[: MOST_ROWS + 1])
    on_their_way, failed = after_approval(access, chosen, now)
    rows = as_rows([*pending[:MOST_ROWS], *on_their_way, *failed], access, now)
    first, last = len(pending[:MOST_ROWS]), len(pending[:MOST_ROWS]) + len(on_their_way)
    total = len(pending) if len(pending) <= MOST_ROWS else waiting(access, chosen, now).count()
    return Inbox(
        filter=chosen,
        groups=tuple(grouped(rows[:first], chosen.group)),
        on_their_way=tuple(rows[first:last]),
        failed=tuple(rows[last:]),
        total=total,
        notes=held_back(access, chosen.cluster),
    )


def after_approval(access: Access, chosen: Filter, now: datetime) -> tuple[list[Decision], list[Decision]]:
    """What was approved and is not gone yet, and what failed in the last day."""
    mine = access.decisions(Permission.VIEW).filter(chosen.where())
    # Both are allowed by what is said of them; to say so would lead SQLite to every approval there ever was.
    under_way = mine.filter(
        Q(expires_at__gt=now) | ~Q(eviction=Eviction.NONE), ~Q(verdict=Verdict.PENDING), open=True
    )
    failed = mine.filter(eviction=Eviction.FAILED, updated_at__gt=now - FAILED_STAYS)
    return (
        list(related(under_way).order_by("-decided_at", "-pk")[:MOST_ON_THEIR_WAY]),
        list(related(failed).order_by("-updated_at", "-pk")[:MOST_ON_THEIR_WAY]),
    )


def as_rows(decisions: Sequence[Decision], access: Access, now: datetime) -> list[Row]:
    """Decisions with what a person may do, who else asks for the same pod, and since when nobody answers."""
    others = _others(decisions, access)
    since = _first_asked(decisions)
    approvers = _approvers(decisions, access)
    return [
        Row(
            decision=decision,
            may_decide=access.may_decision(Permission.DECIDE, decision),
            may_override=access.may_decision(Permission.OVERRIDE, decision),
            now=now,
            others=tuple(o for o in others[decision.cluster_id, decision.pod_uid] if o.pk != decision.pk),
            since=since.get((decision.cluster_id, decision.pod_uid, decision.asker)),
            approvers=approvers.get((decision.cluster_id, decision.namespace), ()),
        )
        for decision in decisions
    ]


def row_of(decision: Decision, access: Access, now: datetime) -> Row:
    """One decision as a row."""
    return as_rows([decision], access, now)[0]


def _others(decisions: Sequence[Decision], access: Access) -> dict[tuple[int, str], list[Decision]]:
    """Every open decision for these pods, by pod: who else waits is never hidden."""
    found: dict[tuple[int, str], list[Decision]] = defaultdict(list)
    if decisions:
        uids = {decision.pod_uid for decision in decisions}
        rows = access.decisions(Permission.VIEW).filter(OPEN, pod_uid__in=uids).order_by()
        clusters = {decision.cluster_id for decision in decisions}
        for row in rows.filter(cluster_id__in=clusters).only(
            "pk", "cluster_id", "pod_uid", "asker_name", "verdict", "eviction", "version", "asker"
        ):
            found[row.cluster_id, row.pod_uid].append(row)
    return found


def _first_asked(decisions: Iterable[Decision]) -> dict[tuple[int, str, str], datetime]:
    """Since when an asker asks in vain, for pods that nobody answered about before."""
    again = [decision for decision in decisions if decision.unanswered]
    if not again:
        return {}
    rows = (
        Decision.objects.filter(
            cluster_id__in={decision.cluster_id for decision in again},
            pod_uid__in={decision.pod_uid for decision in again},
            verdict=Verdict.EXPIRED,
            rule=Rule.TIME,
        )
        .values("cluster_id", "pod_uid", "asker")
        .annotate(first=Min("created_at"))
        .order_by()
    )
    return {(row["cluster_id"], row["pod_uid"], row["asker"]): row["first"] for row in rows}


def _approvers(decisions: Sequence[Decision], access: Access) -> dict[Place, tuple[str, ...]]:
    """Who may decide where this person may not."""
    places: set[Place] = {
        (decision.cluster_id, decision.namespace)
        for decision in decisions
        if not access.may_decision(Permission.DECIDE, decision)
    }
    return who_may_in(Permission.DECIDE, places)


def grouped(rows: Iterable[Row], by: Grouping) -> list[Group]:
    """Groups by time left; rows for the same pod stand together, in the place of the most urgent of them."""
    groups: dict[str, Group] = {}
    for row in rows:
        group = _group_of(row.decision, by)
        groups.setdefault(group.key, group).rows.append(row)
    for group in groups.values():
        _stand_together(group)
    return sorted(groups.values(), key=_urgency)


def _urgency(group: Group) -> tuple[float, str]:
    return (group.shortest.timestamp() if group.shortest else float("inf"), group.key)


def _stand_together(group: Group) -> None:
    ends: dict[str, float] = {}
    for row in group.rows:
        end = row.decision.expires_at.timestamp() if row.decision.expires_at else float("inf")
        ends[row.decision.pod_uid] = min(end, ends.get(row.decision.pod_uid, float("inf")))
    group.rows.sort(key=lambda row: (ends[row.decision.pod_uid], row.decision.pod_uid, row.decision.pk))


def _group_of(decision: Decision, by: Grouping) -> Group:
    cluster = decision.cluster.name
    if by == "node":
        name = decision.node or "not scheduled"
        return Group(f"{cluster}/{name}", "Node", name, cluster=cluster, by=by)
    if by == "cycle":
        if decision.caller_id is not None or decision.cycle_id is None:
            return Group(
                f"{cluster}/{decision.asker}", "Asked by", decision.asker_name, cluster=cluster, by=by
            )
        return Group(f"cycle/{decision.cycle_id}", "Cycle", str(decision.cycle_id), cluster=cluster, by=by)
    kind, _, name = decision.workload.partition("/")
    if not name:
        kind, name = decision.owner_kind or "Pod", decision.owner_name or decision.pod_name
    key = f"{cluster}/{decision.namespace}/{kind}/{name}"
    return Group(key, kind, name, namespace=decision.namespace, cluster=cluster, by=by)


def last_cycle(access: Access, cluster: Cluster | None) -> Cycle | None:
    """The newest cycle that ran, dry runs aside."""
    rows = access.cycles().exclude(kind=CycleKind.DRY_RUN).exclude(state=CycleState.SKIPPED)
    rows = rows.filter(cluster=cluster) if cluster else rows
    return rows.select_related("cluster").defer("document").order_by("-started_at", "-pk").first()


def held_back(access: Access, cluster: Cluster | None) -> tuple[str, ...]:
    """What limits held back in the last cycle of each cluster: a line, not a thousand rows."""
    clusters = [cluster] if cluster else list(access.clusters())[:20]
    return tuple(line for each in clusters for line in _held_back(access, each))


def _held_back(access: Access, cluster: Cluster) -> list[str]:
    cycle = last_cycle(access, cluster)
    return [f"{cluster.name}: {limit_sentence(limit)}" for limit in cycle.limits] if cycle else []
