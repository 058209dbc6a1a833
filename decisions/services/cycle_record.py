"""What the record says before a cycle plans, and what a cycle puts on record afterwards."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

import msgspec
from django.db.models import Count, Q

from decisions.models import (
    COMMITTED,
    OPEN,
    Cluster,
    Cycle,
    Decision,
    Eviction,
    PolicyVersion,
    Rule,
    Snapshot,
    Verdict,
)
from decisions.models.documents import Nominated
from decisions.services import snapshots, timeline, verdicts
from decisions.services.asks import POLICY_ASKER, Ask
from decisions.services.cycle_asking import Heard, approval_required
from decisions.services.cycle_row import CycleRow
from decisions.services.rules import rule_on
from deschedui.descheduler import objects
from deschedui.descheduler.forecast import Forecaster
from deschedui.descheduler.policy.model import Policy
from deschedui.descheduler.results import Answer, AnswerKind, Answers, Nomination, OpenPod, Plan, QuestionKey
from deschedui.descheduler.snapshot import Snapshot as Moment
from deschedui.kube import redact

# --- before the plan --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Known:
    """What the record says about pods of a cluster, for our policy's next cycle."""

    answers: Answers
    open: Mapping[str, Decision]
    """By pod UID: the open decisions of our policy."""
    refused: Mapping[str, Decision]
    """By pod UID: denied by a human and in the cool-down, or unanswered and within the back-off."""


def known(cluster: Cluster, now: datetime) -> Known:
    """Read it, in three queries however many pods there are."""
    opened = {row.pod_uid: row for row in _open(cluster, now)}
    refused = {row.pod_uid: row for row in _refused(cluster, now) if row.pod_uid not in opened}
    taken = {row.pod_uid: row for row in _being_evicted(cluster) if row.pod_uid not in opened}
    answers = {
        uid: Answer(_refusal_kind(row), verdicts.refusal_sentence(row)) for uid, row in refused.items()
    }
    answers |= {
        uid: Answer(AnswerKind.FILTERED, f"is being evicted already: decision {row.pk} of {row.asker_name}")
        for uid, row in taken.items()
    }
    answers |= {uid: _decided(row) for uid, row in opened.items() if row.verdict != Verdict.PENDING}
    return Known(
        answers=Answers(
            pods=answers,
            open=tuple(
                OpenPod(row.pod_uid, row.node, row.namespace, str(row.pk))
                for row in opened.values()
                if row.eviction != Eviction.BLOCKED
            ),
        ),
        open=opened,
        refused=refused,
    )


def _open(cluster: Cluster, now: datetime) -> Iterator[Decision]:
    live = Q(expires_at=None) | Q(expires_at__gt=now) | Q(eviction__in=COMMITTED)
    yield from Decision.objects.filter(OPEN, live, cluster=cluster, asker=POLICY_ASKER).order_by("id")


def _refused(cluster: Cluster, now: datetime) -> Iterator[Decision]:
    standing = Q(verdict=Verdict.DENIED, rule=Rule.HUMAN) | Q(verdict=Verdict.EXPIRED)
    yield from Decision.objects.filter(
        standing, cluster=cluster, asker=POLICY_ASKER, cooldown_until__gt=now
    ).order_by("id")


def _being_evicted(cluster: Cluster) -> Iterator[Decision]:
    yield from Decision.objects.filter(cluster=cluster, eviction__in=COMMITTED).order_by("id")


def _refusal_kind(row: Decision) -> AnswerKind:
    return AnswerKind.DENIED if row.verdict == Verdict.DENIED else AnswerKind.FILTERED


def _decided(row: Decision) -> Answer:
    """An open decision that somebody allowed: it keeps its place, unless a PDB or a webhook blocks it."""
    by = row.decided_by_name or "nobody"
    if row.eviction == Eviction.BLOCKED:
        return Answer(AnswerKind.FAILED, f"allowed by {by}, blocked: {row.message or row.pdb or row.webhook}")
    return Answer(AnswerKind.ALLOWED, f"allowed by {by}, eviction {row.get_eviction_display()}")


DRY_FORECASTS = 500


# --- after the plan ---------------------------------------------------------------------------------------


def effective(nominations: Sequence[Nomination]) -> list[Nomination]:
    """One nomination for each pod: the one that would evict it, else the first that was refused.

    Two profiles may want one pod; where the first one's extender says no, the second one's wish stands.
    """
    found: dict[str, Nomination] = {}
    for nomination in nominations:
        uid = nomination.pod.metadata.uid
        if uid not in found or (_evicts(nomination) and not _evicts(found[uid])):
            found[uid] = nomination
    return list(found.values())


def _evicts(nomination: Nomination) -> bool:
    return nomination.answer is None or nomination.answer.evicts


@dataclass
class Room:
    """How many more decisions may wait, counted here so that 50,000 nominations need no 50,000 queries."""

    cluster: Cluster
    waiting: int = 0
    by_owner: Counter[str] = field(default_factory=Counter)
    held_back: Counter[tuple[str, str]] = field(default_factory=Counter)

    @classmethod
    def of(cls, cluster: Cluster) -> "Room":
        """Count what waits now."""
        rows = (
            Decision.objects.filter(cluster=cluster, verdict=Verdict.PENDING)
            .order_by()
            .values_list("owner_uid")
            .annotate(number=Count("pk"))
        )
        by_owner = Counter(dict(rows))
        return cls(cluster, by_owner.total(), by_owner)

    def full(self, owner_uid: str, workload: str) -> str:
        """Why one more cannot wait, and count it; empty where it can."""
        limits = self.cluster.settings
        if self.waiting >= limits.max_waiting:
            self.held_back["waiting", ""] += 1
            return f"not recorded: {self.waiting} decisions wait already"
        if owner_uid and self.by_owner[owner_uid] >= limits.max_waiting_per_owner:
            self.held_back["owner", workload] += 1
            return f"not recorded: {self.by_owner[owner_uid]} decisions of {workload} wait already"
        return ""

    def add(self, owner_uid: str) -> None:
        """One more waits."""
        self.waiting += 1
        self.by_owner[owner_uid] += 1

    def limits(self) -> list[dict[str, Any]]:
        """What was held back, in the form of the cycle's limits."""
        settings = self.cluster.settings
        size = {"waiting": settings.max_waiting, "owner": settings.max_waiting_per_owner}
        return [
            {"kind": kind, "name": name, "limit": size[kind], "heldBack": number, "filledBy": []}
            for (kind, name), number in sorted(self.held_back.items())
        ]


@dataclass(frozen=True)
class Seen:
    """What a cycle works on: the bound policy, its version, and the cluster at one moment."""

    policy: Policy
    version: PolicyVersion
    snapshot: Moment
    raw: Mapping[str, msgspec.Raw]
    """By UID: pods and nodes as the API server sent them, where an extender needs them."""
    read_at: datetime
    """When the cluster had been listed; extenders may have been asked for minutes since."""


@dataclass
class Recorder:
    """Turns the nominations of a plan into decisions, or, in a dry run, into lines of its document."""

    row: CycleRow
    seen: Seen
    known: Known
    heard: Mapping[QuestionKey, Heard]
    frozen: str
    room: Room
    would_ask: frozenset[QuestionKey] = frozenset()
    unasked: frozenset[QuestionKey] = frozenset()
    lines: list[Nominated] = field(default_factory=list)
    warnings: dict[str, list[str]] = field(default_factory=dict)
    _nodes: dict[str, Snapshot | None] = field(default_factory=dict)

    @property
    def cycle(self) -> Cycle:
        """The cycle that nominated."""
        return self.row.cycle

    def record(self, nominations: Sequence[Nomination]) -> None:
        """All of them, each in a transaction of its own. Raises Lost, Disarmed."""
        for number, nomination in enumerate(nominations, start=1):
            self.row.beat(f"{number} of {len(nominations)} nominations")
            self.lines.append(self._record_one(nomination))

    def _record_one(self, nomination: Nomination) -> Nominated:
        uid, answer = nomination.pod.metadata.uid, nomination.answer
        if nomination.key in self.unasked:
            return self._line(nomination, "unasked", answer.reason if answer else "")
        if (refused := self.known.refused.get(uid)) is not None:
            return self._line(nomination, "denied", answer.reason if answer else "", decision=refused.pk)
        owner_uid, _, _, workload = owner_of(self.seen.snapshot, nomination.pod)
        new = uid not in self.known.open and nomination.key not in self.would_ask
        if new and self._would_wait(nomination) and (full := self.room.full(owner_uid, workload)):
            return self._line(nomination, "held_back", full)
        ask = self._ask(nomination)
        if self.cycle.dry:
            return self._dry_line(nomination, ask)
        with timeline.transaction():
            self.row.hold_armed()
            recorded = verdicts.record(ask=ask, now=self.row.now())
        return self._recorded_line(nomination, ask, recorded, owner_uid)

    def _would_wait(self, nomination: Nomination) -> bool:
        heard = self.heard.get(nomination.key)
        ruling = rule_on(
            heard.outcome if heard else None,
            frozen=bool(self.frozen),
            approval_required=approval_required(self.seen.policy.profiles[nomination.profile_index]),
            unattended=self.cycle.cluster.settings.unattended,
        )
        return ruling.verdict == Verdict.PENDING

    def _recorded_line(
        self, nomination: Nomination, ask: Ask, recorded: verdicts.Record, owner_uid: str
    ) -> Nominated:
        if recorded.decision is None:
            self.room.held_back["waiting", ""] += 1
            return self._line(nomination, "held_back", recorded.sentence)
        row = recorded.decision
        if recorded.what is verdicts.Recorded.CREATED and row.verdict == Verdict.PENDING:
            self.room.add(owner_uid)
        why = nomination.answer.reason if nomination.answer else "waits for a human"
        self._note_warnings(ask)
        return self._line(nomination, _state(row), recorded.sentence or why, decision=row.pk)

    def _dry_line(self, nomination: Nomination, ask: Ask) -> Nominated:
        """What would have become of it: open decisions, a freeze and questions that were not asked, as such."""
        self._note_warnings(ask)
        opened = self.known.open.get(ask.pod_uid)
        answer = nomination.answer
        why = answer.reason if answer else "would wait for a human"
        if opened is not None and opened.verdict == Verdict.PENDING:
            return self._line(
                nomination, "waiting", f"decision {opened.pk} waits already", ask=ask, decision=opened.pk
            )
        if opened is not None:
            return self._line(nomination, _state(opened), why, ask=ask, decision=opened.pk)
        if nomination.key in self.would_ask:
            return self._line(nomination, "would_ask", why, ask=ask)
        if not (answer is not None and not answer.evicts):
            self.room.add(ask.owner_uid)
        if self.frozen and (answer is None or answer.evicts):
            why = f"{why}; {self.frozen}"
        return self._line(nomination, answer.kind.value if answer else "waiting", why, ask=ask)

    def _line(
        self,
        nomination: Nomination,
        state: str,
        why: str,
        *,
        ask: Ask | None = None,
        decision: int | None = None,
    ) -> Nominated:
        meta = nomination.pod.metadata
        return Nominated(
            uid=meta.uid,
            namespace=meta.namespace,
            name=meta.name,
            node=nomination.node,
            profile=nomination.profile,
            plugin=nomination.plugin,
            reason=nomination.reason,
            state=state,
            why=why,
            decision=decision,
            outcome=ask.outcome.as_dict() if ask and ask.outcome else None,
            forecast=dict(ask.forecast) if ask else None,
        )

    def _ask(self, nomination: Nomination) -> Ask:
        pod = nomination.pod
        owner_uid, owner_kind, owner_name, workload = owner_of(self.seen.snapshot, pod)
        heard = self.heard.get(nomination.key)
        dry = self.cycle.dry
        return Ask(
            cluster=self.cycle.cluster,
            pod_uid=pod.metadata.uid,
            namespace=pod.metadata.namespace,
            pod_name=pod.metadata.name,
            node=nomination.node,
            owner_kind=owner_kind,
            owner_name=owner_name,
            owner_uid=owner_uid,
            workload=workload,
            cycle=self.cycle,
            policy=self.seen.version,
            profile=nomination.profile,
            plugin=nomination.plugin,
            reason=nomination.reason,
            grace_period_seconds=self.seen.policy.grace_period_seconds,
            approval_required=approval_required(self.seen.policy.profiles[nomination.profile_index]),
            outcome=heard.outcome if heard else None,
            outcomes=heard.outcomes if heard else (),
            forecast=self._forecast(pod) if self._forecasts else {},
            pod_snapshot=None if dry else snapshots.keep("Pod", self._pod_record(pod)),
            node_snapshot=None if dry else self._node_snapshot(nomination.node),
        )

    def _forecast(self, pod: objects.Pod) -> dict[str, Any]:
        made = self._forecaster.of(pod, reserve=True).as_dict()
        return made | {"read_at": self.seen.read_at.isoformat()}

    @cached_property
    def _forecaster(self) -> Forecaster:
        """One for all, so that a place that one pod would take is not promised to the next."""
        return Forecaster(self.seen.snapshot, self.seen.policy)

    @property
    def _forecasts(self) -> bool:
        """A dry run keeps its forecasts in its document, so only the first ones get one."""
        return not self.cycle.dry or len(self.lines) < DRY_FORECASTS

    def _pod_record(self, pod: objects.Pod) -> dict[str, Any]:
        return redact.pod_record(self._whole(pod))

    def _node_snapshot(self, name: str) -> Snapshot | None:
        if name not in self._nodes:
            node = self.seen.snapshot.node(name)
            self._nodes[name] = (
                snapshots.keep("Node", redact.node_record(self._whole(node))) if node else None
            )
        return self._nodes[name]

    def _whole(self, found: objects.Pod | objects.Node) -> dict[str, Any]:
        raw = self.seen.raw.get(found.metadata.uid)
        made: dict[str, Any] = objects.to_builtins(found) if raw is None else snapshots.decode(bytes(raw))
        return made

    def _note_warnings(self, ask: Ask) -> None:
        for warning in ask.forecast.get("warnings", ()):
            self.warnings.setdefault(warning, []).append(f"{ask.namespace}/{ask.pod_name}")


def _state(row: Decision) -> str:
    if row.verdict == Verdict.PENDING:
        return "waiting"
    return "blocked" if row.eviction == Eviction.BLOCKED else row.verdict


def owner_of(snapshot: Moment, pod: objects.Pod) -> tuple[str, str, str, str]:
    """UID, kind and name of a pod's controller, and the workload that an SRE knows: ``Deployment/web``."""
    owner = snapshot.owner_of(pod)
    if owner is None:
        return "", "", "", f"Pod/{pod.metadata.name}"
    above = snapshot.workload(owner)
    deployment = (
        next((each for each in above.metadata.owner_references if each.controller), None) if above else None
    )
    known = deployment or owner
    return owner.uid, owner.kind, owner.name, f"{known.kind}/{known.name}"


# --- what is no longer wanted -----------------------------------------------------------------------------

_AT_ONCE = 500


def withdraw_unwanted(*, row: CycleRow, plan: Plan, opened: Mapping[str, Decision]) -> int:
    """Withdraw our policy's open decisions that no plugin nominates any more; overrides stay. Returns how many."""
    wanted = {nomination.pod.metadata.uid for nomination in plan.nominations}
    gone = [decision.pk for uid, decision in opened.items() if uid not in wanted and not decision.override]
    withdrawn = 0
    for start in range(0, len(gone), _AT_ONCE):
        row.write(progress="withdrawing what is not nominated any more")
        withdrawn += verdicts.withdraw(
            decisions=Decision.objects.filter(pk__in=gone[start : start + _AT_ONCE], override=False),
            why=f"no plugin nominates it any more (cycle {row.cycle.pk})",
            now=row.now(),
        )
    return withdrawn
