"""What the extender door answers, row by row of protocols.md section 2. HTTP stays outside.

The first law: everything that is not a recorded yes is a no, and a first yes is committed before it is said.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Any

from django.conf import settings
from django.db.models import Q, QuerySet

from decisions.models import COMMITTED, OPEN, Caller, Cluster, Decision, Eviction, Executor, Rule, Verdict
from decisions.queries import installation
from decisions.services import carryout, evictions, freezes, holds, moment, snapshots, timeline, verdicts
from decisions.services.actors import Actor
from decisions.services.asks import Ask
from decisions.services.clock import DATABASE
from decisions.services.lookups import Looked, PodEdge, Sight, claimed

# What an answer that is known already rests on: a caller asks about every pod in every round, so it is read lightly.
_READ = (
    "cluster_id", "asker", "executor", "pod_uid", "namespace", "pod_name", "owner_kind", "owner_name", "owner_uid",
    "verdict", "rule", "decided_by_name", "decided_at", "decision_reason", "cooldown_until", "expires_at",
    "unanswered", "moment", "eviction",
)  # fmt: skip


class State(StrEnum):
    """What the answer rests on; the door's ``state`` field."""

    NO_UID = "no_uid"
    GONE = "gone"
    FROZEN = "frozen"
    OBSERVING = "observing"
    BEING_EVICTED = "being_evicted"
    ALLOWED = "allowed"
    OURS = "ours"
    UNCHECKED = "unchecked"
    DENIED = "denied"
    SKIPPED = "skipped"
    PENDING = "pending"
    UNANSWERED = "unanswered"
    TOO_MANY = "too_many"


@dataclass(frozen=True)
class PodQuestion:
    """Which pod a caller asks about. ``uid`` is empty where it only gave a name."""

    namespace: str
    name: str
    uid: str
    node: str
    pod: Mapping[str, Any]

    @cached_property
    def claims(self) -> Looked:
        """What the caller's own body says of it; read only where the API server says nothing."""
        return claimed(self.pod)


@dataclass(frozen=True)
class Answer:
    """What the caller is told."""

    allow: bool
    reason: str
    state: State
    decision_id: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """The body of the answer; ``error`` is never sent."""
        url = f"{settings.ENV.public_url}/d/{self.decision_id}/" if self.decision_id else ""
        return {
            "allow": self.allow,
            "reason": self.reason,
            "decision": self.decision_id,
            "state": self.state.value,
            "url": url,
        }


def no(reason: str, state: State, decision_id: int | None = None) -> Answer:
    """A no, and why."""
    return Answer(allow=False, reason=reason, state=state, decision_id=decision_id)


OBSERVES = no("this cluster only observes: nobody armed it, nothing is recorded", State.OBSERVING)


def answer(*, question: PodQuestion, caller: Caller, edge: PodEdge, now: datetime) -> Answer:
    """Answer one question of one caller; records a pending decision where nothing is known.

    Args:
        edge: the API server's view of this one pod.
    """
    seen = edge.look(max_age=5.0)
    uid = question.uid or seen.uid
    if not uid and seen.sight is Sight.GONE:
        return no(f"pod {question.namespace}/{question.name} is gone", State.GONE)
    if not uid:
        return no("pod.metadata.uid is missing, and the pod could not be looked up by name", State.NO_UID)
    question = replace(question, uid=uid)
    if ended := _ended(question, seen):
        return no(ended, State.GONE)
    if refused := _refused_by_cluster(caller.cluster):
        return refused
    rows = Decision.objects.filter(cluster=caller.cluster, pod_uid=uid).only(*_READ)
    open_ones = list(rows.filter(OPEN).order_by())
    if taken := next((row for row in open_ones if row.eviction in COMMITTED), None):
        return no(f"is being evicted already (decision {taken.pk})", State.BEING_EVICTED, taken.pk)
    mine = (row for row in open_ones if row.asker == caller.asker)
    known = next((row for row in mine if _holds(row, now)), None) or _refusal(rows, caller, now)
    if known is not None:
        return _known_answer(known, caller, edge, now)
    return _record(question, seen, caller, edge, now)


def _refused_by_cluster(cluster: Cluster) -> Answer | None:
    if frozen := freezes.active(cluster.pk):
        since = f"frozen by {frozen.set_by} since {frozen.set_at:%F %H:%M} UTC"
        return no(f"{since}: {frozen.reason}", State.FROZEN)
    return _refused_by_state(cluster)


def _refused_by_state(cluster: Cluster) -> Answer | None:
    if not cluster.armed:
        return OBSERVES
    if cluster.stopped:
        return no(installation.closed_sentence(cluster), State.FROZEN)
    return None


def _ended(question: PodQuestion, seen: Looked) -> str:
    """Why this pod cannot be evicted any more, by what the API server says or else by the caller's own body."""
    if seen.sight is Sight.GONE or (seen.sight is Sight.FOUND and seen.uid != question.uid):
        return f"pod {question.namespace}/{question.name} with this UID is gone"
    view = question.claims if seen.sight is Sight.UNKNOWN else seen
    if view.terminating:
        return f"pod {question.namespace}/{question.name} is terminating"
    if view.phase in {"Succeeded", "Failed"}:
        return f"pod {question.namespace}/{question.name} is finished ({view.phase})"
    return ""


def _holds(row: Decision, now: datetime) -> bool:
    return row.expires_at is None or row.expires_at > now


def _refusal(rows: "QuerySet[Decision]", caller: Caller, now: datetime) -> Decision | None:
    """A human's denial in its cool-down, or nobody's answer within its back-off."""
    standing = Q(verdict=Verdict.DENIED, rule=Rule.HUMAN) | Q(verdict=Verdict.EXPIRED)
    return rows.filter(standing, asker=caller.asker, cooldown_until__gt=now).order_by("-id").first()


def _known_answer(row: Decision, caller: Caller, edge: PodEdge, now: datetime) -> Answer:
    if row.verdict == Verdict.ALLOWED and row.executor == Executor.US:
        return no("allowed, and deschedui carries it out itself", State.OURS, row.pk)
    if row.verdict == Verdict.ALLOWED:
        return _say_yes(row, caller, edge, now)
    if row.verdict == Verdict.PENDING:
        return no(f"waiting for approval, see {settings.ENV.public_url}/d/{row.pk}/", State.PENDING, row.pk)
    state = State.DENIED if row.verdict == Verdict.DENIED else State.UNANSWERED
    return no(verdicts.refusal_sentence(row), state, row.pk)


def _say_yes(row: Decision, caller: Caller, edge: PodEdge, now: datetime) -> Answer:
    """A yes needs a fresh look: a caller that evicts by name would otherwise hit the pod's successor."""
    first = row.eviction == Eviction.NONE
    seen = edge.look(max_age=0.0 if first else 5.0)
    if seen.sight is Sight.UNKNOWN:
        return no(f"approved, but the pod cannot be looked up now: {seen.problem}", State.UNCHECKED, row.pk)
    if seen.sight is Sight.GONE or seen.uid != row.pod_uid or seen.terminating:
        return no(f"pod {row.pod} with this UID is gone or terminating", State.GONE, row.pk)
    if first and (over := _moment_is_over(row, edge)):
        carryout.back_to_pending(row, over, now=now)
        return no(f"waiting for approval again: {over.why}", State.PENDING, row.pk)
    if not evictions.tell(row.pk, by=Actor(name=caller.name), now=now):
        return _not_told(row, now)
    return Answer(
        allow=True, reason=f"approved by {row.decided_by_name}", state=State.ALLOWED, decision_id=row.pk
    )


def _moment_is_over(row: Decision, edge: PodEdge) -> carryout.AskAgain | None:
    """The approval's moment, read once before its caller hears the yes (design.md section 5)."""
    seen = edge.moment(row)
    if changes := moment.differences(row.moment, seen):
        return carryout.AskAgain(changes, moment.sentence(changes), seen)
    if lost := carryout.approver_lost_right(row):
        return carryout.AskAgain(why=lost)
    return None


def _not_told(row: Decision, now: datetime) -> Answer:
    """A right is tested with every yes, not only the first: a caller that asks again has not acted yet."""
    lost = carryout.approver_lost_right(row)
    if lost and verdicts.back_to_pending(decision_id=row.pk, why=lost, changes={}, now=now):
        return no(f"waiting for approval again: {lost}", State.PENDING, row.pk)
    cluster = Cluster.objects.get(pk=row.cluster_id)
    if refused := _refused_by_cluster(cluster):
        return replace(refused, decision_id=row.pk)
    if not Cluster.objects.filter(installation.in_order(DATABASE.in_query()), pk=cluster.pk).exists():
        why = installation.unchecked_sentence(cluster)
        return no(f"approved, but it is not certain that we may say so: {why}", State.UNCHECKED, row.pk)
    return no("no longer allowed", State.DENIED, row.pk)


def _record(question: PodQuestion, seen: Looked, caller: Caller, edge: PodEdge, now: datetime) -> Answer:
    ask = _ask(question, seen, caller, edge)
    with timeline.transaction():
        # Asked again, and held: whoever disarms or stops it withdraws what is on record, and this would come after it.
        if refused := _refused_by_state(holds.cluster(caller.cluster_id)):
            return refused
        recorded = verdicts.record(ask=ask, now=now)
    row = recorded.decision
    if row is None:
        return no(recorded.sentence, State.TOO_MANY)
    if row.verdict == Verdict.PENDING:
        return no(f"waiting for approval, see {settings.ENV.public_url}/d/{row.pk}/", State.PENDING, row.pk)
    state = State.UNANSWERED if row.verdict == Verdict.EXPIRED else State.DENIED
    return no(recorded.sentence or verdicts.settled_sentence(row), state, row.pk)


def _ask(question: PodQuestion, seen: Looked, caller: Caller, edge: PodEdge) -> Ask:
    found = seen.sight is Sight.FOUND
    view = seen if found else question.claims
    workload, forecast = edge.around(view) if found else (view.workload, {})
    return Ask(
        cluster=caller.cluster,
        pod_uid=question.uid,
        namespace=question.namespace,
        pod_name=question.name,
        node=view.node or question.node,
        asker=caller.asker,
        asker_name=caller.name,
        caller=caller,
        executor=Executor.ASKER,
        owner_kind=view.owner_kind,
        owner_name=view.owner_name,
        owner_uid=view.owner_uid,
        workload=workload,
        verified=found,
        reason=f"{caller.name} wants to evict it; the extender protocol carries no reason",
        forecast=forecast,
        pod_snapshot=snapshots.keep("Pod", view.record) if view.record else None,
    )
