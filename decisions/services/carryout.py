"""Carrying out what was allowed: look, decide, call, write down (design.md section 7, protocols.md section 5).

For one decision: claim, read the pod, its owner and the PDBs of its namespace, decide with pure functions, ask
the database once more directly before the call, call, and write what the answer means. No transaction is open
while the cluster is asked. A worker that dies anywhere in between leaves a lease behind that runs out.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property, lru_cache, partial

from django.db.models import Q, QuerySet
from django.db.models.functions import Coalesce

from decisions.models import (
    Cluster,
    Decision,
    Eviction,
    Executor,
    PolicyVersion,
    Rule,
)
from decisions.queries import installation as query
from decisions.queries.access import decider_still_may
from decisions.services import (
    connections,
    evictions,
    follow,
    freezes,
    installation,
    moment,
    pace,
    policies,
    protections,
    timeline,
    verdicts,
)
from decisions.services.clock import DATABASE, Clock
from deschedui.descheduler.objects import Pod, PodDisruptionBudget
from deschedui.descheduler.policy import Policy, load
from deschedui.descheduler.snapshot import owner_of
from deschedui.kube.client import EVICTION_SECONDS, ClusterClient
from deschedui.kube.errors import (
    BudgetExhausted,
    ConfigError,
    Forbidden,
    InvalidAnswer,
    KubeError,
    Throttled,
    Unauthorized,
)
from deschedui.kube.events import EventRequest
from deschedui.kube.eviction import (
    FIRST_BACKOFF_SECONDS,
    Again,
    EvictionCause,
    EvictionRequest,
    EvictionResult,
    PodLook,
    eviction_annotations,
)
from deschedui.kube.owners import OwnerView

log = logging.getLogger(__name__)

# One task carries out at most so many; the tick starts the next one.
AT_ONCE = 50
CANDIDATES = 200

# A controller counts its Ready pods a moment after they are. So long a replica that seems lost gets the benefit.
COUNTS_WITHIN_SECONDS = 10.0
COUNTED_AFTER_SECONDS = 2.0
NOT_COUNTED_YET = "a sibling's replacement is Ready and its owner has not counted it yet"


# --- what is due ------------------------------------------------------------------------------------------


def due_clusters(*, now: datetime) -> list[int]:
    """Clusters in which something may be due: a queued one whose time has come, or a lease that ran out."""
    queued = Q(eviction=Eviction.QUEUED) & (Q(not_before=None) | Q(not_before__lte=now))
    lost = Q(eviction=Eviction.EVICTING, lease_until__lte=now)
    rows = Decision.objects.filter(queued | lost, open=True).order_by()
    return sorted(set(rows.values_list("cluster_id", flat=True)))


def carry_out(cluster_id: int, *, worker: str, clock: Clock = DATABASE) -> int:
    """Carry out what is due in a cluster. Returns how many were tried.

    May run any number of times at once, for the same cluster too: the claim decides.
    """
    run = Run.of(cluster_id, worker=worker, clock=clock)
    run.recover_leases()
    if run.cluster.stopped:
        installation.withdraw_stopped(now=clock.now())
        return 0
    tried = 0
    while tried < AT_ONCE and (claimed := run.claim_next()) is not None:
        tried += 1
        if not run.carry_out_one(*claimed):
            break
    if tried:
        follow.look_soon(cluster_id, now=clock.now())
    return tried


class NotNow(Exception):  # noqa: N818 - the world changed between the claim and the call
    """The call must not be sent; ``str()`` says why."""


@dataclass(frozen=True)
class Seen:
    """What was read of a pod directly before its eviction."""

    pod: Pod | None
    owner: OwnerView | None = None
    pdbs: Sequence[PodDisruptionBudget] = ()


@dataclass(frozen=True)
class Gone:
    """There is nothing to evict any more."""

    message: str
    cause: EvictionCause


@dataclass(frozen=True)
class AskAgain:
    """The approval's moment is over: a person has to look again."""

    changes: moment.Changes = field(default_factory=dict)
    why: str = ""
    seen: moment.Now | None = None


@dataclass(frozen=True)
class Run:
    """One run of carrying out, in one cluster."""

    cluster: Cluster
    client: ClusterClient
    clock: Clock
    worker: str

    @classmethod
    def of(cls, cluster_id: int, *, worker: str, clock: Clock) -> "Run":
        """For this cluster, with this process's client."""
        cluster = Cluster.objects.get(pk=cluster_id)
        return cls(cluster, connections.client_for(cluster), clock, worker)

    @cached_property
    def rules(self) -> pace.Rules:
        """The pace; a cluster that does not answer is tried by one worker at a time."""
        rules = pace.Rules.of(self.cluster.settings)
        return replace(rules, calls=1) if self.cluster.problem else rules

    @cached_property
    def policy(self) -> tuple[PolicyVersion, Policy] | None:
        """The policy that runs."""
        version = policies.last_good(self.cluster.pk)
        policy = policy_of(version) if version else None
        return (version, policy) if version and policy else None

    # --- whose turn it is

    def claim_next(self) -> tuple[Decision, int] | None:
        """Claim the next one that is due, and say who is held or held no longer."""
        now = self.clock.now()
        limits = self.policy[1].limits if self.policy else evictions.NO_LIMITS
        due = self._turn(now).go
        if not (due and self._is_ours(due)):
            return None
        now = self.clock.now()  # Looking at the Lease took its time.
        for pk in due:
            attempt = evictions.claim(pk, worker=self.worker, rules=self.rules, limits=limits, now=now)
            if attempt:
                row = Decision.objects.select_related("cluster", "decided_by", "cycle")
                return row.defer("cycle__document").get(pk=pk), attempt
        return None

    def _is_ours(self, due: Sequence[int]) -> bool:
        """Whether this installation is the one that works here; where that is not certain, what is due says so."""
        try:
            installation.check(self.cluster, self.client, clock=self.clock)
        except installation.NotOurs as why:
            evictions.wait_for_lease(due, why=str(why), now=self.clock.now())
            return False
        return True

    def _turn(self, now: datetime) -> pace.Turn:
        queued, flights = waiting(self.cluster.pk, now), in_flight(self.cluster.pk)
        turn = pace.turn(queued, flights, self.rules, now)
        for pk, why in turn.hold.items():
            evictions.hold(pk, why=f"{why}; it goes on when one is Ready, or by hand", now=now)
        if turn.leave:
            held = evictions.held_for_pace(self.cluster.pk).filter(pk__in=turn.leave)
            evictions.leave(held, why="the replacement is there, or none is wanted", now=now)
        return turn

    # --- leases that ran out

    def recover_leases(self) -> int:
        """Look up the pods of workers that did not come back. Returns how many were settled."""
        settled = 0
        for row in evictions.leases_that_ran_out(self.cluster.pk, now=self.clock.now()):
            try:
                look = self._look(row)
            except KubeError as error:
                log.warning("%s: its lease ran out and the pod cannot be read: %s", row, error)
                if isinstance(error, Forbidden | InvalidAnswer):
                    continue  # About this pod alone: the others do not wait for it.
                return settled
            settled += evictions.recover(row, look, now=self.clock.now()) is not None
        return settled

    def _look(self, row: Decision) -> PodLook:
        with connections.contact(self.cluster.pk, clock=self.clock):
            view = self.client.read_pod(row.namespace, row.pod_name)
        return PodLook("") if view is None else view.look

    # --- one decision

    def carry_out_one(self, row: Decision, attempt: int) -> bool:
        """Carry out one claimed decision. False where the cluster should be left alone for now."""
        try:
            seen = self._read(row)
        except KubeError as error:
            return self._reading_failed(row, attempt, error)
        objection = object_to(row, seen, self._now_of(row, seen))
        if isinstance(objection, Gone):
            self._write(row, attempt, _gone_result(objection))
            return True
        if isinstance(objection, AskAgain):
            if is_not_counted_yet(row, objection, now=self.clock.now()):
                self._step_back(row, attempt, NOT_COUNTED_YET, seconds=COUNTED_AFTER_SECONDS)
            else:
                ask_again(row, attempt, objection, now=self.clock.now())
            return True
        return self._call(row, attempt, seen)

    def _read(self, row: Decision) -> Seen:
        """The pod, its owner and its namespace's PDBs; never a list of the cluster."""
        with connections.contact(self.cluster.pk, clock=self.clock):
            view = self.client.read_pod(row.namespace, row.pod_name)
            if view is None or view.pod.metadata.uid != row.pod_uid or view.look.terminating:
                return Seen(view.pod if view else None)
            owner = owner_of(view.pod)
            return Seen(
                pod=view.pod,
                owner=self.client.read_owner(
                    row.namespace, owner.kind, owner.name, api_version=owner.api_version
                )
                if owner
                else None,
                pdbs=self.client.list_pdbs(row.namespace),
            )

    def _now_of(self, row: Decision, seen: Seen) -> moment.Now:
        if seen.pod is None:
            return moment.Now()
        profile = protections.profile_of(self.policy[1], row.profile) if self.policy else None
        against = (
            protections.protections(profile, seen.pod, owner=seen.owner, pdbs=seen.pdbs, now=self.clock.now())
            if profile
            else ()
        )
        owner = seen.owner
        return moment.Now(
            ready=owner.ready if owner else None,
            desired=owner.desired if owner else None,
            why_unknown=owner.reason if owner else "the pod has no owner any more",
            moved=moved_siblings(row),
            policy=self._policy_change(row),
            policy_id=self.policy[0].pk if self.policy else None,
            protections=against,
        )

    def _policy_change(self, row: Decision) -> tuple[str, str] | None:
        """The versions, where the running policy is another one than was shown and says something else here."""
        shown = row.moment.get("policy")
        if self.policy is None or shown is None or shown == self.policy[0].pk:
            return None
        if row.cycle is not None and row.cycle.policy_id == self.policy[0].pk:
            return None  # A cycle of the running policy nominated it as well.
        before = PolicyVersion.objects.filter(pk=shown).first()
        if protections.same_for(policy_of(before) if before else None, self.policy[1], row.profile):
            return None
        return f"version {before.number if before else 'unknown'}", f"version {self.policy[0].number}"

    # --- the call

    def _call(self, row: Decision, attempt: int, seen: Seen) -> bool:
        request = EvictionRequest(
            namespace=row.namespace,
            name=row.pod_name,
            uid=row.pod_uid,
            grace_period_seconds=row.grace_period_seconds,
            annotations=eviction_annotations(
                profile=row.profile,
                plugin=row.plugin,
                reason=row.reason,
                approved_by=row.decided_by_name,
            ),
        )
        try:
            result = self.client.evict(
                request,
                pdbs=seen.pdbs,
                labels=seen.pod.metadata.labels if seen.pod else {},
                before_send=partial(self._make_sure, row, attempt),
            )
        except NotNow as why:
            self._step_back(row, attempt, str(why))
            return True
        except (BudgetExhausted, ConfigError) as error:
            self._step_back(row, attempt, f"nothing was sent: {error}", seconds=FIRST_BACKOFF_SECONDS)
            return False
        self._write(row, attempt, result)
        return self._heed(result)

    def _make_sure(self, row: Decision, attempt: int) -> None:
        """Directly before the call: one query. Raises NotNow."""
        tested = evictions.may_post(row.pk, attempt, call_seconds=EVICTION_SECONDS, now=self.clock.in_query())
        if tested is None:
            raise NotNow(why_not(row))
        log.info("%s: attempt %s is sent, allowed at %s", row, attempt, tested.isoformat())

    def _write(self, row: Decision, attempt: int, result: EvictionResult) -> None:
        status = evictions.write_result(row.pk, attempt, result, now=self.clock.now())
        if status is None:
            log.warning("%s: the result of attempt %s was not written: %s", row, attempt, result.message)
        if status == Eviction.ACCEPTED:
            self._post_event(row, attempt)

    def _heed(self, result: EvictionResult) -> bool:
        """What an answer means for the cluster as a whole. False: leave it alone for now."""
        now = self.clock.now()
        if result.slows_cluster:
            connections.slow_down(self.cluster.pk, result.retry_after, now=now)
        if result.again is Again.CREDENTIALS:
            connections.record_problem(self.cluster.pk, problem=result.message, now=now)
        lost = result.status == "unknown"
        if lost:
            connections.record_problem(self.cluster.pk, problem=result.message, now=now)
        return not (lost or result.slows_cluster or result.again is Again.CREDENTIALS)

    def _post_event(self, row: Decision, attempt: int) -> None:
        """An event on the pod, for people; without one nothing is missing."""
        who = row.decided_by_name or "deschedui"
        event = EventRequest(
            namespace=row.namespace,
            name=row.pod_name,
            uid=row.pod_uid,
            reason="EvictionApproved",
            action="Evicting",
            note=f"pod evicted from {row.node or 'no node'}: {row.profile}/{row.plugin}: {row.reason}; "
            f"approved by {who} (decision {row.pk})",
            at=self.clock.now(),
            key=f"deschedui-{row.pk}-{attempt}",
            instance=self.worker,
        )
        try:
            self.client.post_event(event)
        except KubeError as error:
            log.info("%s: no event on the pod: %s", row, error)

    # --- when nothing was sent

    def _reading_failed(self, row: Decision, attempt: int, error: KubeError) -> bool:
        if isinstance(error, Forbidden):
            self._write(row, attempt, _forbidden(error))
            return True
        if isinstance(error, Throttled):
            connections.slow_down(self.cluster.pk, error.retry_after, now=self.clock.now())
        why = "credentials refused" if isinstance(error, Unauthorized) else "the cluster cannot be read"
        self._step_back(row, attempt, f"{why}: {error}", seconds=FIRST_BACKOFF_SECONDS)
        return False

    def _step_back(self, row: Decision, attempt: int, why: str, *, seconds: float | None = None) -> None:
        now = self.clock.now()
        later = None if seconds is None else now + timedelta(seconds=seconds)
        evictions.step_back(row.pk, attempt, why=why, not_before=later, now=now)


# --- deciding, without the cluster ------------------------------------------------------------------------


def object_to(row: Decision, seen: Seen, now: moment.Now) -> Gone | AskAgain | None:
    """What keeps this eviction from being sent; None: nothing. Pure but for the approver's rights."""
    if gone := _gone(row, seen.pod):
        return gone
    if changes := moment.differences(row.moment, now):
        return AskAgain(changes, moment.sentence(changes), now)
    if lost := approver_lost_right(row):
        return AskAgain({}, lost)
    return None


def _gone(row: Decision, pod: Pod | None) -> Gone | None:
    if pod is None:
        return Gone("the pod was gone before the eviction", EvictionCause.NOT_FOUND)
    if pod.metadata.uid != row.pod_uid:
        return Gone(
            "the pod was replaced before the eviction: its uid is another one, the new pod needs its own decision",
            EvictionCause.REPLACED,
        )
    if pod.metadata.deletion_timestamp is not None:
        return Gone("the pod was terminating already", EvictionCause.OTHER)
    return None


def approver_lost_right(row: Decision) -> str:
    """Why the yes of whoever approved this counts no more; empty where it does (``access.decider_still_may``)."""
    if row.rule != Rule.HUMAN or Decision.objects.filter(decider_still_may(), pk=row.pk).exists():
        return ""
    if row.decided_with is not None and row.decided_with.revoked_at is not None:
        return f"the token of {row.decided_by_name} was revoked"
    return f"{row.decided_by_name} may no longer {'override' if row.override else 'decide'} here"


def moved_siblings(row: Decision) -> int:
    """Pods of the same owner that their own decision takes or took away since this one's moment."""
    if not row.owner_uid:
        return 0
    # What left before the numbers were read was missing from them already, and must not make up for a crash.
    since = _since(row)
    leaving = Q(eviction__in=(Eviction.DELEGATED, Eviction.EVICTING))
    left = Q(eviction=Eviction.ACCEPTED) | Q(eviction=Eviction.EVICTED, replacement_ready_at=None)
    siblings = siblings_of(row).annotate(left_at=Coalesce("accepted_at", "ended_at"))
    moved = siblings.filter(leaving | (left & Q(left_at__gte=since)))
    return moved.values("pod_uid").distinct().count()


def siblings_of(row: Decision) -> "QuerySet[Decision]":
    """The decisions about other pods of the same owner."""
    siblings = Decision.objects.filter(cluster_id=row.cluster_id, owner_uid=row.owner_uid)
    return siblings.exclude(pod_uid=row.pod_uid).order_by()


def is_not_counted_yet(row: Decision, objection: AskAgain, *, now: datetime) -> bool:
    """Whether a replica only seems to be missing: a sibling's replacement is Ready, but its owner has not said so."""
    if not row.owner_uid or set(objection.changes) != {moment.READY}:
        return False
    lately = now - timedelta(seconds=COUNTS_WITHIN_SECONDS)
    return siblings_of(row).filter(replacement_ready_at__gt=lately).exists()


def _since(row: Decision) -> datetime:
    shown = row.moment.get("at")
    return datetime.fromisoformat(shown) if shown else row.decided_at or row.created_at


def why_not(row: Decision) -> str:
    """Why a claimed eviction may not be sent any more, for its timeline."""
    frozen = freezes.active(row.cluster_id)
    if frozen is not None:
        return f"frozen by {frozen.set_by}: {frozen.reason}"
    cluster = Cluster.objects.get(pk=row.cluster_id)
    if not cluster.armed:
        return "the cluster was disarmed"
    if cluster.stopped:
        return query.closed_sentence(cluster)
    if not Cluster.objects.filter(query.in_order(DATABASE.in_query()), pk=cluster.pk).exists():
        return query.unchecked_sentence(cluster)
    if lost := approver_lost_right(row):
        return lost
    return "too little of its time was left for the call"


def ask_again(row: Decision, attempt: int, objection: AskAgain, *, now: datetime) -> bool:
    """evicting → queued → none, and the verdict back to pending, in one transaction."""
    with timeline.transaction():
        if not evictions.step_back(row.pk, attempt, why=objection.why, now=now):
            return False
        return back_to_pending(row, objection, now=now)


def back_to_pending(row: Decision, objection: AskAgain, *, now: datetime) -> bool:
    """The verdict back to pending, with the difference and with the numbers as they are now."""
    fresh = moment.shown_again(row.forecast, objection.seen, now) if objection.seen else None
    return verdicts.back_to_pending(
        decision_id=row.pk, why=objection.why, changes=objection.changes, forecast=fresh, now=now
    )


# --- rows as the pace sees them ---------------------------------------------------------------------------


def waiting(cluster_id: int, now: datetime) -> list[pace.Queued]:
    """What is queued, in the order of the approvals."""
    rows = Decision.objects.filter(
        open=True,
        cluster_id=cluster_id,
        eviction=Eviction.QUEUED,
        executor=Executor.US,
        expires_at__gt=now,
    ).order_by("decided_at", "id")
    fields = rows.values_list("pk", "owner_uid", "held", "cause", "not_before")
    return [
        pace.Queued(
            id=pk,
            owner=owner,
            held=bool(held),
            held_for_pace=bool(held) and cause != EvictionCause.RBAC,
            due=not_before is None or not_before <= now,
        )
        for pk, owner, held, cause, not_before in fields[: 10 * CANDIDATES]
    ]


def in_flight(cluster_id: int) -> list[pace.Flight]:
    """What is on its way, or evicted without a Ready replacement yet."""
    rows: QuerySet[Decision] = evictions.in_flight(cluster_id)
    return [
        pace.Flight(owner=row.owner_uid, pod=row.pod, eviction=row.eviction, since=row.accepted_at)
        for row in rows.only("owner_uid", "namespace", "pod_name", "eviction", "accepted_at")
    ]


# --- small things -----------------------------------------------------------------------------------------


def policy_of(version: PolicyVersion) -> Policy | None:
    """The policy of a version; None where it is not understood any more."""
    return _parsed(version.pk, version.text)


@lru_cache(maxsize=64)
def _parsed(_pk: int, text: str) -> Policy | None:
    loaded = load(text)
    return None if loaded.errors else loaded.policy


def _gone_result(gone: Gone) -> EvictionResult:
    return EvictionResult("gone", gone.cause, gone.message, Again.NO)


def _forbidden(error: Forbidden) -> EvictionResult:
    return EvictionResult(
        "failed",
        EvictionCause.RBAC,
        str(error),
        Again.BY_HAND,
        verb=error.verb,
        resource=error.resource,
        http_status=403,
        holds_namespace=True,
    )
