"""The one module that changes an eviction status (design.md sections 5 and 7).

Each change is one conditional UPDATE together with its timeline entry; zero rows mean that somebody else was
first. What the cluster is asked, and in which order, is ``services.carryout``'s business; this module only moves
states, so that every arrow can be tested against the database's own constraints.

Verdicts and evictions are the two halves of one state machine and call each other: taking a verdict back recalls
the eviction, and the end of an eviction withdraws whatever else was open for that pod.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError
from django.db.models import DateTimeField, Exists, F, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Coalesce, Now

from decisions.models import (
    COMMITTED,
    OCCUPYING,
    OPEN,
    Cluster,
    Decision,
    Event,
    Eviction,
    Executor,
    Freeze,
    Verdict,
)
from decisions.queries import installation
from decisions.queries.access import decider_still_may
from decisions.services import holds, nudge, pace, timeline, verdicts
from decisions.services.actors import SYSTEM, Actor
from decisions.services.clock import DATABASE, Clock
from decisions.services.errors import Conflict
from deschedui.descheduler.policy.model import Limits
from deschedui.kube.eviction import Again, EvictionCause, EvictionResult, PodLook, next_try_after

TOLD_NOTE_EVERY = timedelta(minutes=1)
LEASE = timedelta(seconds=120)
# A claim is looked up and called within this time, as a rule. After it, it is taken for one whose worker died: it keeps
# its pod and its owner's turn until its lease runs out, but not the whole cluster's calls.
CALLING_AT_MOST = timedelta(seconds=45)
LIMIT_PAUSE = timedelta(seconds=30)
LEASE_PAUSE = timedelta(seconds=10)
LEASE_CAUSE = "lease"
NO_LIMITS = Limits()
ANY = Q()

Moment = datetime | Now


# --- between none and queued or delegated -----------------------------------------------------------------


def queue(decision_id: int, *, not_before: datetime, now: datetime) -> bool:
    """none → queued, for an allowed decision that is ours to carry out; its pod is held (:mod:`holds`).

    False where another decision occupies this pod UID: this one then waits for it.
    """
    try:
        return _move(
            decision_id,
            Eviction.NONE,
            Eviction.QUEUED,
            only=Q(verdict=Verdict.ALLOWED, executor=Executor.US, expires_at__gt=now),
            event=Event.QUEUED,
            now=now,
            not_before=not_before,
            waits_for=None,
            held="",
        )
    except IntegrityError:
        row = Decision.objects.get(pk=decision_id)
        taken = _occupying(row.cluster_id, row.pod_uid).first()
        Decision.objects.filter(pk=decision_id).update(waits_for=taken, not_before=not_before, updated_at=now)
        return False


def recall(decision_id: int, *, now: datetime) -> str:
    """queued | blocked | delegated → none, before the verdict leaves allowed. Returns what it was, or ''."""
    for status in (Eviction.QUEUED, Eviction.BLOCKED, Eviction.DELEGATED):
        won = Decision.objects.filter(pk=decision_id, eviction=status).update(
            eviction=Eviction.NONE,
            not_before=None,
            held="",
            waits_for=None,
            released_at=None,
            updated_at=now,
        )
        if won:
            return status
    return ""


def queue_who_waits_for(decision_id: int, *, now: datetime) -> int:
    """Queue the allowed decisions of ours that waited for this one, now that it ended as none or failed."""
    waiting = Decision.objects.filter(
        waits_for_id=decision_id, verdict=Verdict.ALLOWED, eviction=Eviction.NONE
    )
    return sum(queue(row.pk, not_before=now, now=now) for row in waiting.order_by("id"))


def queue_stranded(*, now: datetime, limit: int = 100) -> int:
    """Queue allowed decisions of ours that nothing keeps at none: whoever they waited for is out of the way."""
    stranded = Decision.objects.filter(
        ~Exists(_occupying(OuterRef("cluster_id"), OuterRef("pod_uid"))),
        open=True,
        verdict=Verdict.ALLOWED,
        eviction=Eviction.NONE,
        executor=Executor.US,
        expires_at__gt=now,
    ).order_by("expires_at")
    return sum(_queue_stranded(row, now) for row in stranded[:limit])


def _queue_stranded(row: Decision, now: datetime) -> bool:
    with timeline.transaction():
        holds.pod(row.cluster_id, row.pod_uid)
        return queue(row.pk, not_before=row.not_before or now, now=now)


def tell(decision_id: int, *, by: Actor, now: datetime, clock: Clock = DATABASE) -> bool:
    """none → delegated: commit the first yes before its asker hears it; count the repeats.

    True where the asker may be told yes. The first yes starts the time in which a told yes holds. A yes rests on a
    check of the Lease within the last 25 s of the database's clock: a copy of this database never had one.
    """
    may_hear = Decision.objects.filter(
        _acts(clock.in_query()),
        ~_frozen(),
        decider_still_may(),
        pk=decision_id,
        verdict=Verdict.ALLOWED,
        expires_at__gt=now,
    )
    # A repeat comes first: an asker comes back in every round, and one UPDATE is then all that waits its turn.
    return (
        _tell_again(decision_id, may_hear, by, now)
        or _tell_first(decision_id, may_hear, by, now)
        or _tell_again(decision_id, may_hear, by, now)  # Another call of the same asker was first.
    )


def _tell_first(decision_id: int, may_hear: "QuerySet[Decision]", by: Actor, now: datetime) -> bool:
    with timeline.transaction():
        cluster = Cluster.objects.get(decisions=decision_id)
        first = may_hear.filter(eviction=Eviction.NONE, executor=Executor.ASKER).update(
            eviction=Eviction.DELEGATED,
            told_at=now,
            told_noted_at=now,
            told_count=1,
            expires_at=now + timedelta(seconds=cluster.settings.delegated_seconds),
            updated_at=now,
        )
        if first:
            timeline.append(decision_id, Event.TOLD, at=now, by=by)
        return bool(first)


def _tell_again(decision_id: int, may_hear: "QuerySet[Decision]", by: Actor, now: datetime) -> bool:
    """Count a repeat; a line in the timeline at most once a minute."""
    told = may_hear.filter(eviction=Eviction.DELEGATED)
    noted_lately = Q(told_noted_at__gt=now - TOLD_NOTE_EVERY)
    count = {"told_count": F("told_count") + 1}
    if told.filter(noted_lately).update(**count):
        return True
    with timeline.transaction():
        if told.exclude(noted_lately).update(**count, told_noted_at=now):
            times = Decision.objects.values_list("told_count", flat=True).get(pk=decision_id)
            timeline.append(decision_id, Event.TOLD, at=now, by=by, detail={"times": times})
            return True
    return bool(told.filter(noted_lately).update(**count))  # Another call of the same asker wrote the line.


# --- the claim --------------------------------------------------------------------------------------------


def claim(
    decision_id: int, *, worker: str, rules: pace.Rules, limits: Limits = NO_LIMITS, now: datetime
) -> int:
    """queued → evicting, with a lease. Returns the attempt's number, 0 where it was not to be had.

    One UPDATE tests everything that must hold. The cluster's row is locked first, so that two workers cannot
    take two places where the pace leaves one.

    Args:
        worker: who claims.
        limits: of the policy that runs; over one of them it stays queued and says which.
        now: the database's time: the lease is on that clock.
    """
    with timeline.transaction():
        Cluster.objects.select_for_update(no_key=True, of=("self",)).get(decisions=decision_id)
        # Read behind the lock: whoever held it may have tried this one meanwhile.
        row = Decision.objects.select_related("cluster").get(pk=decision_id)
        over = over_limit(row, limits)
        if over and not row.override:
            _wait_at_limit(row, over, now)
            return 0
        won = _claimable(decision_id, rules, now).update(
            eviction=Eviction.EVICTING,
            attempt=F("attempt") + 1,
            lease_until=now + LEASE,
            claimed_by=worker[:200],
            held="",
            released_at=Coalesce("released_at", now),
            updated_at=now,
        )
        if not won:
            return 0
        if row.released_at is None:
            verdicts.start_approval_time(decision_id, now=now)
        detail: dict[str, Any] = {"attempt": row.attempt + 1, "worker": worker}
        if over:
            detail["limit"] = f"{over}; an override is exempt"
        timeline.append(decision_id, Event.TRIED, at=now, detail=detail, reason=detail.get("limit", ""))
    return row.attempt + 1


def _claimable(decision_id: int, rules: pace.Rules, now: datetime) -> "QuerySet[Decision]":
    same_owner = in_flight(OuterRef("cluster_id")).filter(owner_uid=OuterRef("owner_uid"))
    filling = in_flight(OuterRef("cluster_id")).filter(eviction__in=COMMITTED)
    filling = filling.filter(Q(eviction=Eviction.EVICTING) | Q(accepted_at__gt=now - rules.still_there))
    calling = Decision.objects.filter(
        open=True,
        eviction=Eviction.EVICTING,
        cluster_id=OuterRef("cluster_id"),
        lease_until__gt=now + LEASE - CALLING_AT_MOST,
    )
    return Decision.objects.filter(
        Q(not_before=None) | Q(not_before__lte=now),
        _acts(now, throttled_at=now),
        ~_frozen(),
        Q(owner_uid="") | ~Exists(_nth(same_owner, rules.per_owner)),
        ~Exists(_nth(filling, rules.per_cluster)),
        ~Exists(_nth(calling, rules.calls)),
        pk=decision_id,
        verdict=Verdict.ALLOWED,
        eviction=Eviction.QUEUED,
        executor=Executor.US,
        expires_at__gt=now,
        held="",
    )


def _nth(rows: "QuerySet[Decision]", number: int) -> "QuerySet[Decision]":
    """The ``number``-th of these rows: it exists where there are at least so many."""
    return rows.order_by("pk")[number - 1 : number]


def in_flight(cluster_id: Any) -> "QuerySet[Decision]":
    """What the pace counts: on its way, or evicted without a Ready replacement yet."""
    going = Q(open=True, eviction__in=COMMITTED)
    return Decision.objects.filter(
        going | Q(eviction=Eviction.EVICTED),
        cluster_id=cluster_id,
        settled_at=None,
        executor=Executor.US,
    )


def _acts(now: Moment, *, throttled_at: datetime | None = None) -> Exists:
    """The cluster is armed, and this installation is for certain the one that works on it."""
    clusters = Cluster.objects.filter(installation.in_order(now), pk=OuterRef("cluster_id"), armed=True)
    if throttled_at is not None:
        clusters = clusters.filter(Q(throttled_until=None) | Q(throttled_until__lte=throttled_at))
    return Exists(clusters)


def _frozen() -> Exists:
    return Exists(
        Freeze.objects.filter(Q(cluster_id=OuterRef("cluster_id")) | Q(cluster=None), lifted_at=None)
    )


def may_post(decision_id: int, attempt: int, *, call_seconds: float, now: Moment) -> datetime | None:
    """When this attempt was seen to be allowed to send its call; None: it may not. One query, directly before it.

    Args:
        call_seconds: the call's total timeout; the lease must outlast it.
        now: the time, or ``Clock.in_query()`` to let the database say it in the same query.
    """
    allowed = Decision.objects.filter(
        _acts(now),
        ~_frozen(),
        decider_still_may(),
        pk=decision_id,
        attempt=attempt,
        eviction=Eviction.EVICTING,
        verdict=Verdict.ALLOWED,
        lease_until__gt=now + timedelta(seconds=call_seconds),
    )
    tested_at = now if isinstance(now, Now) else Value(now, DateTimeField())
    return allowed.annotate(tested_at=tested_at).values_list("tested_at", flat=True).first()


def step_back(
    decision_id: int, attempt: int, *, why: str, not_before: datetime | None = None, now: datetime
) -> bool:
    """evicting → queued, nothing having been sent: a freeze, a cluster that does not answer, no time left."""
    return _move(
        decision_id,
        Eviction.EVICTING,
        Eviction.QUEUED,
        only=Q(attempt=attempt),
        event=Event.REQUEUED,
        now=now,
        reason=why,
        message=why,
        lease_until=None,
        not_before=not_before,
    )


def wait_for_lease(ids: Iterable[int], *, why: str, now: datetime) -> None:
    """What is due stays queued for a moment and says why nothing is claimed."""
    for pk in ids:
        with timeline.transaction():
            waits = Decision.objects.filter(pk=pk, eviction=Eviction.QUEUED)
            said = waits.filter(cause=LEASE_CAUSE).exists()
            won = waits.update(message=why, cause=LEASE_CAUSE, not_before=now + LEASE_PAUSE, updated_at=now)
            if won and not said:
                timeline.append(pk, Event.REQUEUED, at=now, reason=why)


# --- limits -----------------------------------------------------------------------------------------------


def over_limit(row: Decision, limits: Limits) -> str:
    """Which limit of its own cycle is full without this decision; '' where none is.

    Those that are being called count as well: each of them may be accepted in the next second.
    """
    taken = _of_this_cycle(row)
    for limit, name, where in (
        (limits.total, "a cycle", Q()),
        (limits.per_node if row.node else None, f"node {row.node}", Q(node=row.node)),
        (limits.per_namespace, f"namespace {row.namespace}", Q(namespace=row.namespace)),
    ):
        if limit is None:
            continue
        count = taken.filter(where).values("pod_uid").distinct().count()
        if count >= limit:
            return f"over the limit of {limit} evictions for {name}: {count} were accepted"
    return ""


def _of_this_cycle(row: Decision) -> "QuerySet[Decision]":
    if row.cycle_id is None:
        return Decision.objects.none()
    accepted = Q(eviction__in=COMMITTED) | Q(eviction=Eviction.EVICTED, accepted_at__isnull=False)
    return Decision.objects.filter(accepted, cycle_id=row.cycle_id).exclude(pod_uid=row.pod_uid)


def _wait_at_limit(row: Decision, why: str, now: datetime) -> None:
    Decision.objects.filter(pk=row.pk, eviction=Eviction.QUEUED).update(
        message=why, cause="limit", not_before=now + LIMIT_PAUSE, updated_at=now
    )
    if row.message != why:
        timeline.append(row.pk, Event.REQUEUED, at=now, reason=why)


# --- the result of a call ---------------------------------------------------------------------------------


def write_result(decision_id: int, attempt: int, result: EvictionResult, *, now: datetime) -> Eviction | None:
    """evicting → what the answer means, for this attempt only. Returns the new status.

    None where nothing was written: somebody else took over (the lease had run out), or nobody knows what became
    of the call; then the lease runs out and the pod is looked up again.
    """
    with timeline.transaction():
        holds.pod_of(decision_id)
        row = Decision.objects.get(pk=decision_id)
        target = _target(row, result)
        if target is None:
            return None
        won = _move(
            decision_id,
            Eviction.EVICTING,
            target,
            only=Q(attempt=attempt),
            event=_EVENTS[target],
            now=now,
            reason=_reason(target, row, result),
            detail={"attempt": attempt, **result.as_dict()},
            **_columns(row, target, result, now),
        )
        if won:
            _after(row, target, result, now)
    return target if won else None


_EVENTS = {
    Eviction.ACCEPTED: Event.ACCEPTED,
    Eviction.EVICTED: Event.EVICTED,
    Eviction.GONE: Event.GONE,
    Eviction.BLOCKED: Event.BLOCKED,
    Eviction.QUEUED: Event.REQUEUED,
    Eviction.FAILED: Event.FAILED,
    Eviction.IN_BACKGROUND: Event.IN_BACKGROUND,
}
_ENDINGS = (Eviction.EVICTED, Eviction.GONE, Eviction.FAILED)


def _target(row: Decision, result: EvictionResult) -> Eviction | None:
    if result.status == "unknown":
        return None
    target = Eviction(result.status)
    if target == Eviction.QUEUED and _next_try(row, result) is None:
        return Eviction.FAILED
    return target


def _next_try(row: Decision, result: EvictionResult) -> timedelta | None:
    """After how long it is tried again by itself."""
    blocked = row.events.filter(kind=Event.BLOCKED).count() if result.status == "blocked" else 0
    seconds = next_try_after(result, tries=max(blocked, row.failures) + 1)
    return None if seconds is None else timedelta(seconds=seconds)


def _reason(target: Eviction, row: Decision, result: EvictionResult) -> str:
    if target == Eviction.FAILED and result.again is Again.LIMITED:
        return f"given up after {row.failures + 1} tries: {result.message}"
    return result.message


def _columns(row: Decision, target: Eviction, result: EvictionResult, now: datetime) -> dict[str, Any]:
    pause = _next_try(row, result) if target in {Eviction.BLOCKED, Eviction.QUEUED} else None
    columns: dict[str, Any] = {
        "lease_until": None,
        "not_before": now + pause if pause is not None else None,
        "failures": row.failures + 1 if result.again is Again.LIMITED else 0,
        "cause": result.code.value,
        "message": result.message,
        "pdb": result.pdb,
        "webhook": result.webhook,
        "unconfirmed": result.unconfirmed,
    }
    if target in {Eviction.ACCEPTED, Eviction.IN_BACKGROUND, Eviction.EVICTED}:
        columns |= {"accepted_at": now, "server_accepted_at": result.server_time}
    if target in _ENDINGS:
        columns["ended_at"] = now
    if target == Eviction.EVICTED and not row.owner_uid:
        columns["settled_at"] = now
    return columns


def _after(row: Decision, target: Eviction, result: EvictionResult, now: datetime) -> None:
    if target == Eviction.FAILED:
        queue_who_waits_for(row.pk, now=now)
    if target == Eviction.EVICTED or result.code in {EvictionCause.NOT_FOUND, EvictionCause.REPLACED}:
        pod_is_gone(row.cluster_id, row.pod_uid, why=result.message, now=now)
    if result.holds_namespace:
        hold_namespace(row.cluster_id, row.namespace, why=result.message, now=now)
    if target == Eviction.ACCEPTED:
        _leave_namespace(row.cluster_id, row.namespace, now=now)


# --- by time, and by what the cluster shows ---------------------------------------------------------------


def requeue_blocked(*, now: datetime, limit: int = 500) -> int:
    """blocked → queued, by time. Returns how many."""
    blocked = Decision.objects.filter(open=True, eviction=Eviction.BLOCKED)
    due = blocked.filter(not_before__lte=now).order_by().values_list("pk", flat=True)
    return sum(
        _move(
            pk,
            Eviction.BLOCKED,
            Eviction.QUEUED,
            only=Q(not_before__lte=now),
            event=Event.REQUEUED,
            now=now,
            reason="tried again",
        )
        for pk in list(due[:limit])
    )


def leases_that_ran_out(cluster_id: int, *, now: datetime) -> "QuerySet[Decision]":
    """Evictions whose worker has not come back in its time: killed, or cut off."""
    return Decision.objects.filter(
        open=True, eviction=Eviction.EVICTING, cluster_id=cluster_id, lease_until__lte=now
    ).order_by()


def recover(row: Decision, look: PodLook, *, now: datetime) -> Eviction | None:
    """evicting → what the pod shows, where the lease ran out: the call may have been carried out or not."""
    if look.uid != row.pod_uid:
        target, why = Eviction.EVICTED, "the pod is gone (unconfirmed): its worker did not come back"
    elif look.terminating:
        target, why = Eviction.ACCEPTED, "the pod is ending (unconfirmed): its worker did not come back"
    else:
        target, why = Eviction.QUEUED, "its worker did not come back, and the pod is untouched"
    columns: dict[str, Any] = {"lease_until": None, "not_before": None, "message": why}
    if target != Eviction.QUEUED:
        columns |= {"accepted_at": now, "unconfirmed": True}
    if target == Eviction.EVICTED:
        columns |= {"ended_at": now, "settled_at": None if row.owner_uid else now}
    with timeline.transaction():
        holds.pod(row.cluster_id, row.pod_uid)
        won = _move(
            row.pk,
            Eviction.EVICTING,
            target,
            only=Q(attempt=row.attempt, lease_until__lte=now),
            event=Event.LEASE_LOST,
            now=now,
            reason=why,
            detail={"attempt": row.attempt, "worker": row.claimed_by, "status": target.value},
            **columns,
        )
        if won and target == Eviction.EVICTED:
            pod_is_gone(row.cluster_id, row.pod_uid, why=why, now=now)
    return target if won else None


def pod_is_gone(cluster_id: int, pod_uid: str, *, why: str, now: datetime) -> int:
    """The pod of this UID is gone: whatever is open for it ends. Returns how many decisions that were.

    accepted | in_background | delegated → evicted; queued | blocked → gone, the verdict stays allowed; what is
    pending, or allowed and neither queued nor told, is withdrawn. One that is being called right now finds out
    by its own answer.
    """
    rows = Decision.objects.filter(OPEN, cluster_id=cluster_id, pod_uid=pod_uid).order_by("id")
    with timeline.transaction():
        holds.pod(cluster_id, pod_uid)
        return sum(_pod_went(row, why, now) for row in rows)


def _pod_went(row: Decision, why: str, now: datetime) -> bool:
    if row.eviction in {Eviction.ACCEPTED, Eviction.IN_BACKGROUND, Eviction.DELEGATED}:
        settled = now if not row.owner_uid else None
        return _end(row, Eviction.EVICTED, why="", now=now, settled_at=settled)
    if row.eviction in {Eviction.QUEUED, Eviction.BLOCKED}:
        return _end(row, Eviction.GONE, why=why, now=now, held="", not_before=None)
    if row.eviction == Eviction.NONE:
        return bool(verdicts.withdraw(decisions=Decision.objects.filter(pk=row.pk), why=why, now=now))
    return False


def _end(row: Decision, target: Eviction, *, why: str, now: datetime, **columns: Any) -> bool:
    return _move(
        row.pk,
        row.eviction,
        target,
        event=_EVENTS[target],
        now=now,
        reason=why,
        ended_at=now,
        **columns,
    )


def background_ended(row: Decision, *, nobody_started: bool, now: datetime) -> bool:
    """in_background → failed where nobody started it, or → queued where its mark was seen and has gone."""
    mine = Q(attempt=row.attempt)
    if not nobody_started:
        return _move(
            row.pk,
            Eviction.IN_BACKGROUND,
            Eviction.QUEUED,
            only=mine,
            event=Event.REQUEUED,
            now=now,
            reason="whoever was moving it in the background gave up",
            accepted_at=None,
            server_accepted_at=None,
            not_before=None,
        )
    with timeline.transaction():
        holds.pod(row.cluster_id, row.pod_uid)
        won = _move(
            row.pk,
            Eviction.IN_BACKGROUND,
            Eviction.FAILED,
            only=mine,
            event=Event.FAILED,
            now=now,
            reason="nobody started it: no mark of an eviction in progress appeared on the pod",
            ended_at=now,
        )
        if won:
            queue_who_waits_for(row.pk, now=now)
    return won


def note_mark(row: Decision, *, now: datetime) -> bool:
    """Remember that somebody's mark of an eviction in progress was seen on the pod."""
    if mark_was_seen(row):
        return False
    timeline.append(
        row.pk,
        Event.IN_BACKGROUND,
        at=now,
        reason="somebody has begun to move it",
        detail={"mark": True, "attempt": row.attempt},
    )
    return True


def mark_was_seen(row: Decision) -> bool:
    """Whether, in this attempt, somebody's mark of an eviction in progress was seen."""
    return row.events.filter(
        kind=Event.IN_BACKGROUND, detail__mark=True, detail__attempt=row.attempt
    ).exists()


def note_still_there(row: Decision, *, why: str, now: datetime) -> bool:
    """Say once, for each time it was accepted or told, that the pod is still there although it should have gone."""
    since = row.told_at if row.eviction == Eviction.DELEGATED else row.accepted_at
    said = row.events.filter(kind=Event.STILL_THERE, reason=why)
    if (said.filter(at__gte=since) if since else said).exists():
        return False
    with timeline.transaction():
        won = Decision.objects.filter(pk=row.pk, eviction=row.eviction).update(message=why, updated_at=now)
        if won:
            timeline.append(row.pk, Event.STILL_THERE, at=now, reason=why)
    return bool(won)


# --- by a person ------------------------------------------------------------------------------------------


def retry_failed(*, decision_id: int, by: Actor, reason: str = "", now: datetime) -> Decision:
    """failed → queued, by a person: a fresh expiry, in the place of whatever the same asker has open.

    Raises:
        Conflict: it has not failed; the cluster only observes; the pod is being evicted already; or a human
            has denied it since.
    """
    with timeline.transaction():
        closed = holds.closed(Decision.objects.values_list("cluster_id", flat=True).get(pk=decision_id))
        holds.pod_of(decision_id)
        row = (
            Decision.objects.select_for_update(no_key=True, of=("self",))
            .select_related("cluster")
            .get(pk=decision_id)
        )
        if row.eviction != Eviction.FAILED or row.verdict != Verdict.ALLOWED:
            status = row.get_eviction_display().replace("_", " ")
            raise Conflict(row, f"Only a failed eviction can be tried again; this one is {status}.")
        if closed:
            raise Conflict(row, closed)
        verdicts.displace(row, by=by, now=now)
        _take_place(row, by, reason, now)
        verdicts.renew_approval(decision_id, now=now)
        nudge.carry_out(row.cluster_id)
    return Decision.objects.get(pk=decision_id)


def _take_place(row: Decision, by: Actor, reason: str, now: datetime) -> None:
    try:
        won = _move(
            row.pk,
            Eviction.FAILED,
            Eviction.QUEUED,
            only=Q(verdict=Verdict.ALLOWED, executor=Executor.US),
            event=Event.REQUEUED,
            by=by,
            now=now,
            reason=reason,
            **_FRESH,
        )
    except IntegrityError:
        other = _occupying(row.cluster_id, row.pod_uid).first() or row
        raise Conflict(other, f"Decision {other.pk} is evicting this pod already.") from None
    if not won:
        raise Conflict(Decision.objects.get(pk=row.pk), "Somebody else has just tried it again.")


_FRESH: dict[str, Any] = {
    "not_before": None,
    "failures": 0,
    "cause": "",
    "message": "",
    "pdb": "",
    "webhook": "",
    "held": "",
    "released_at": None,
    "accepted_at": None,
    "server_accepted_at": None,
    "ended_at": None,
    "unconfirmed": False,
}


def go_on(*, decision_id: int, by: Actor, reason: str = "", now: datetime) -> Decision:
    """Let a held one go on, by a person.

    Where the pace holds it, its owner's earlier evictions are waited for no longer and the owner's rest is held
    no longer either; they still go one after the other.

    Raises:
        Conflict: it is not held.
    """
    with timeline.transaction():
        row = Decision.objects.get(pk=decision_id)
        if not _release([decision_id], by=by, reason=reason or "go on", now=now):
            raise Conflict(row, "It is not held: nothing keeps it but its turn.")
        if row.cause != EvictionCause.RBAC and row.owner_uid:
            in_flight(row.cluster_id).filter(owner_uid=row.owner_uid).exclude(
                eviction=Eviction.EVICTING
            ).update(settled_at=now, updated_at=now)
            leave(held_for_pace(row.cluster_id).filter(owner_uid=row.owner_uid), by=by, now=now)
        nudge.carry_out(row.cluster_id)
    return Decision.objects.get(pk=decision_id)


# --- holding ----------------------------------------------------------------------------------------------


def hold(decision_id: int, *, why: str, now: datetime) -> bool:
    """Mark a queued one as held, once, and say why."""
    with timeline.transaction():
        won = Decision.objects.filter(pk=decision_id, eviction=Eviction.QUEUED, held="").update(
            held=why[:300], updated_at=now
        )
        if won:
            timeline.append(decision_id, Event.HELD, at=now, reason=why)
    return bool(won)


def held_for_pace(cluster_id: int) -> "QuerySet[Decision]":
    """The queued ones that are held because an earlier one of their owner got no Ready replacement."""
    held = Decision.objects.filter(cluster_id=cluster_id, eviction=Eviction.QUEUED).exclude(held="")
    return held.exclude(cause=EvictionCause.RBAC)


def leave(
    held: "QuerySet[Decision]", *, by: Actor = SYSTEM, why: str = "waits no longer", now: datetime
) -> int:
    """Take the mark off held ones."""
    return _release(held.values_list("pk", flat=True), by=by, reason=why, now=now)


def hold_namespace(cluster_id: int, namespace: str, *, why: str, now: datetime) -> int:
    """Hold what is queued for a namespace in which we lack a right: it would fail alike."""
    queued = Decision.objects.filter(
        cluster_id=cluster_id, namespace=namespace, eviction=Eviction.QUEUED, held=""
    )
    ids = list(queued.values_list("pk", flat=True))
    with timeline.transaction():
        Decision.objects.filter(pk__in=ids, eviction=Eviction.QUEUED).update(cause=EvictionCause.RBAC)
        return sum(hold(pk, why=why, now=now) for pk in ids)


def _leave_namespace(cluster_id: int, namespace: str, *, now: datetime) -> None:
    """An eviction was accepted there: the right is given by now."""
    held = Decision.objects.filter(
        cluster_id=cluster_id, namespace=namespace, eviction=Eviction.QUEUED, cause=EvictionCause.RBAC
    ).exclude(held="")
    leave(held, why="the missing right has been given", now=now)


def _release(ids: Iterable[int], *, by: Actor, reason: str, now: datetime) -> int:
    released = 0
    with timeline.transaction():
        for pk in list(ids):
            held = Decision.objects.filter(pk=pk, eviction=Eviction.QUEUED).exclude(held="")
            if held.update(held="", cause="", updated_at=now):
                timeline.append(pk, Event.RELEASED, at=now, by=by, reason=reason)
                released += 1
    return released


# --- replacements -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Replacement:
    """The pod that came in an evicted one's place."""

    uid: str
    name: str
    node: str
    ready: bool


def note_replacement(row: Decision, found: Replacement, *, now: datetime) -> bool:
    """Write down what is new about the replacement: that there is one, where it is, that it is Ready."""
    node = found.node or (row.replacement_node if row.replacement_uid == found.uid else "")
    first = row.replacement_uid != found.uid
    ready = found.ready and (first or row.replacement_ready_at is None)
    if not (first or ready or node != row.replacement_node):
        return False
    with timeline.transaction():
        Decision.objects.filter(pk=row.pk).update(
            replacement_uid=found.uid,
            replacement_name=found.name,
            replacement_node=node,
            replacement_seen_at=now if first else row.replacement_seen_at,
            replacement_ready_at=now if ready else (None if first else row.replacement_ready_at),
            settled_at=Coalesce("settled_at", now) if ready else row.settled_at,
            updated_at=now,
        )
        if first or ready:
            detail = {"pod": found.name, "node": node, "ready": found.ready}
            timeline.append(row.pk, Event.REPLACEMENT, at=now, reason=_landed(found, node), detail=detail)
    return True


def _landed(found: Replacement, node: str) -> str:
    where = f" on {node}" if node else ", not scheduled yet"
    return f"{found.name}{where}{', Ready' if found.ready else ''}"


def settle(row: Decision, *, why: str, now: datetime) -> bool:
    """The pace waits for this one's replacement no longer."""
    won = Decision.objects.filter(pk=row.pk, settled_at=None).update(settled_at=now, updated_at=now)
    if won and why:
        timeline.append(row.pk, Event.REPLACEMENT, at=now, reason=why)
    return bool(won)


# --- shared -----------------------------------------------------------------------------------------------


def _move(
    decision_id: int,
    frm: str,
    to: Eviction,
    *,
    event: Event,
    now: datetime,
    only: Q = ANY,
    by: Actor = SYSTEM,
    reason: str = "",
    detail: dict[str, Any] | None = None,
    **columns: Any,
) -> bool:
    """One arrow: a conditional UPDATE of one decision, with its timeline entry in the same transaction."""
    with timeline.transaction():
        won = Decision.objects.filter(only, pk=decision_id, eviction=frm).update(
            eviction=to, updated_at=now, **columns
        )
        if won:
            timeline.append(decision_id, event, at=now, by=by, reason=reason, detail=detail)
    return bool(won)


def _occupying(cluster_id: Any, pod_uid: Any) -> "QuerySet[Decision]":
    return Decision.objects.filter(cluster_id=cluster_id, pod_uid=pod_uid, eviction__in=OCCUPYING)
