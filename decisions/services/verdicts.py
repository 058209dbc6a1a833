"""The one module that changes a verdict. Pages, API, doors and tasks call it (design.md section 5).

Each change is one conditional UPDATE together with its timeline entry; zero rows mean that somebody else was
first. Every condition tests expiry itself instead of trusting a sweep.
"""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Count, F, Q, QuerySet

from decisions.models import (
    COMMITTED,
    OPEN,
    RECALLABLE,
    Cluster,
    Decision,
    DecisionEvent,
    Event,
    Eviction,
    Executor,
    Rule,
    Verdict,
)
from decisions.services import evictions, freezes, holds, nudge, timeline
from decisions.services.actors import SYSTEM, Actor
from decisions.services.asks import Ask, differences, forecast_words
from decisions.services.errors import Changed, Conflict, Invalid, NotAllowed
from decisions.services.rules import Ruling, rule_on
from deschedui.extender.outcomes import DecidedBy

# A denial or skip by an extender whose pod has not been nominated for so long is history: a new row begins.
EXTENDS_WITHIN = timedelta(hours=24)
_NUMBER = re.compile(r"\d+")


class Recorded(StrEnum):
    """What became of an ask."""

    CREATED = "created"
    AGAIN = "again"
    CHANGED = "changed"
    COOLING = "cooling"
    UNANSWERED = "unanswered"
    TOO_MANY = "too_many"


@dataclass(frozen=True)
class Record:
    """The decision that an ask led to; ``decision`` is None where nothing was recorded (TOO_MANY)."""

    what: Recorded
    decision: Decision | None
    sentence: str = ""


# --- asking -----------------------------------------------------------------------------------------------


def record(*, ask: Ask, now: datetime) -> Record:
    """Put an ask on record: a new decision, or one more nomination of the open one. One, however many calls come."""
    for _ in range(3):
        try:
            with timeline.transaction():
                return _record_once(ask, now)
        except IntegrityError:
            continue  # Somebody recorded the same ask at the same moment: now it is there to be found.
    with timeline.transaction():
        return _record_once(ask, now)


# What an ask is held against; the rest of these rows stays in the database.
_KNOWN = (
    "cluster_id", "asker", "pod_uid", "namespace", "pod_name", "node", "cycle_id", "profile", "plugin",
    "nominated_count", "nominated_at", "extender_effect", "extender_decided_by", "extender_reason", "failure_mode",
    "forecast", "verdict", "rule", "version", "decided_by_name", "decision_reason", "cooldown_until", "expires_at",
    "unanswered", "eviction",
)  # fmt: skip


def _rows_of(ask: Ask) -> "QuerySet[Decision]":
    """Every decision of this asker about this pod, newest first; what is read of them is locked."""
    rows = Decision.objects.filter(cluster=ask.cluster, pod_uid=ask.pod_uid, asker=ask.asker)
    return rows.select_for_update(no_key=True).only(*_KNOWN).order_by("-id")


def _record_once(ask: Ask, now: datetime) -> Record:
    rows = _rows_of(ask)
    standing = rows.filter(Q(open=True) | Q(cooldown_until__gt=now))
    known = list(standing)
    current = next((row for row in known if row.is_open), None)
    if current is not None and _is_live(current, now):
        return _nominate_again(current, ask, now)
    if current is not None:
        expire_one(current.pk, now=now)
        known = list(standing.all())
    held = next((row for row in known if _refuses(row, now)), None)
    if held is not None:
        what = Recorded.COOLING if held.verdict == Verdict.DENIED else Recorded.UNANSWERED
        return Record(what, held, refusal_sentence(held))
    ruling = _rule(ask)
    last = rows.first()
    if ruling.rule == Rule.EXTENDER and last is not None and _says_the_same(last, ask, ruling, now):
        return _extend(last, ask, now)
    if ruling.verdict == Verdict.PENDING and (full := _waiting_room_is_full(ask)):
        return Record(Recorded.TOO_MANY, None, full)
    return Record(Recorded.CREATED, _create(ask, ruling, unanswered=_unanswered_before(last), now=now))


def _rule(ask: Ask) -> Ruling:
    unattended = "off" if ask.approval_required else ask.cluster.settings.unattended
    return rule_on(
        ask.outcome,
        # A freeze takes the place of a yes that no human gave, and of nothing else.
        frozen=unattended != "off" and freezes.active(ask.cluster.pk) is not None,
        approval_required=ask.approval_required,
        unattended=unattended,
    )


def _is_live(decision: Decision, now: datetime) -> bool:
    return decision.eviction in COMMITTED or decision.expires_at is None or decision.expires_at > now


def _create(ask: Ask, ruling: Ruling, *, unanswered: int, now: datetime) -> Decision:
    settings = ask.cluster.settings
    decision = Decision.objects.create(
        **ask.identity(),
        **ask.facts(),
        verdict=ruling.verdict,
        rule=ruling.rule,
        decision_reason=ask.outcome.reason[:4096] if ask.outcome and ruling.rule != Rule.NONE else "",
        decided_by_name=_decider(ask, ruling),
        decided_at=now if ruling.verdict != Verdict.PENDING else None,
        expires_at=_expiry(ask, ruling, now),
        unanswered=unanswered,
        nominated_at=now,
        created_at=now,
        updated_at=now,
        moment=moment_of_ask(ask) if ruling.verdict == Verdict.ALLOWED else {},
    )
    timeline.append(
        decision.pk,
        Event.ASKED,
        at=now,
        reason=ask.reason,
        detail={"asker": ask.asker_name, "node": ask.node},
    )
    _note_extenders(decision.pk, ask, now)
    if ruling.verdict == Verdict.SKIPPED:
        timeline.append(
            decision.pk, Event.SKIPPED, at=now, reason="left alone this cycle, by failPolicy Ignore"
        )
    if ruling.verdict == Verdict.ALLOWED:
        timeline.append(decision.pk, Event.APPROVED, at=now, reason=f"unattended: {settings.unattended}")
        _hand_over(decision, not_before=now, now=now)
        decision.refresh_from_db()
    return decision


def _decider(ask: Ask, ruling: Ruling) -> str:
    """Who a verdict of no human is attributed to: a failPolicy's is not the extender's own."""
    if ruling.rule == Rule.NONE:
        return ""
    outcome = ask.outcome
    if ruling.rule == Rule.EXTENDER and outcome is not None and outcome.decided_by is not DecidedBy.ANSWER:
        return f"failPolicy {outcome.fail_policy}"
    return str(ruling.rule.label)


def _expiry(ask: Ask, ruling: Ruling, now: datetime) -> datetime | None:
    if ruling.verdict == Verdict.PENDING:
        return now + timedelta(seconds=ask.cluster.settings.pending_seconds)
    if ruling.verdict == Verdict.ALLOWED:
        return approval_expiry(
            ask.cluster, ask.executor, ask.caller.interval_seconds if ask.caller else 0, now
        )
    return None


def _note_extenders(decision_id: int, ask: Ask, now: datetime) -> None:
    for outcome in ask.outcomes:
        kind = Event.EXTENDER_FAILED if outcome.failure_mode else Event.EXTENDER_ANSWERED
        timeline.append(decision_id, kind, at=now, reason=outcome.reason, detail=outcome.as_dict())


def _says_the_same(last: Decision, ask: Ask, ruling: Ruling, now: datetime) -> bool:
    return (
        last.rule == Rule.EXTENDER
        and last.verdict == ruling.verdict
        and last.nominated_at > now - EXTENDS_WITHIN
        and not differences(last, ask)
    )


def _extend(last: Decision, ask: Ask, now: datetime) -> Record:
    """An unchanged extender denial or skip extends the last row instead of adding one; its newest words stand there."""
    if _without_numbers(ask.outcome.reason if ask.outcome else "") != _without_numbers(last.extender_reason):
        _note_extenders(last.pk, ask, now)
    facts = ask.facts()
    _write(
        last,
        nominated_count=last.nominated_count + 1,
        nominated_at=now,
        updated_at=now,
        cycle=ask.cycle,
        extenders=facts["extenders"],
        extender_reason=facts["extender_reason"],
        decision_reason=facts["extender_reason"],
    )
    return Record(Recorded.AGAIN, last)


def _without_numbers(text: str) -> str:
    """Durations and counts change from one cycle to the next; the reason does not."""
    return _NUMBER.sub("#", text)


def _write(row: Decision, **columns: Any) -> None:
    """Write columns of a row that this transaction holds, here and in the database."""
    Decision.objects.filter(pk=row.pk).update(**columns)
    for name, value in columns.items():
        setattr(row, name, value)


def _nominate_again(current: Decision, ask: Ask, now: datetime) -> Record:
    if current.verdict == Verdict.PENDING and ask.outcome is not None:
        ruling = rule_on(ask.outcome, frozen=True, approval_required=True, unattended="off")
        if ruling.verdict == Verdict.DENIED:
            return Record(Recorded.CHANGED, _deny_pending_by_extender(current, ask, now))
    if current.verdict != Verdict.PENDING:
        # What the reviewer decided on stays as it was shown; the moment is read again at carry-out.
        cycle = {"cycle": ask.cycle} if ask.cycle else {}
        _write(current, nominated_count=current.nominated_count + 1, nominated_at=now, **cycle)
        timeline.append(current.pk, Event.NOMINATED_AGAIN, at=now, reason=ask.reason)
        return Record(Recorded.AGAIN, current)
    changes = differences(current, ask)
    version = current.version + bool(changes)
    _write(
        current,
        **ask.facts(),
        nominated_count=current.nominated_count + 1,
        nominated_at=now,
        updated_at=now,
        version=version,
    )
    timeline.append(
        current.pk,
        Event.NOMINATED_AGAIN,
        at=now,
        reason=ask.reason,
        detail={"version": version, "changes": changes} if changes else {},
    )
    if changes.get("extender"):
        _note_extenders(current.pk, ask, now)
    return Record(Recorded.CHANGED if changes else Recorded.AGAIN, current)


def _deny_pending_by_extender(current: Decision, ask: Ask, now: datetime) -> Decision:
    won = Decision.objects.filter(pk=current.pk, verdict=Verdict.PENDING).update(
        **ask.facts(),
        verdict=Verdict.DENIED,
        rule=Rule.EXTENDER,
        decided_by_name=_decider(ask, Ruling(Verdict.DENIED, Rule.EXTENDER)),
        decided_at=now,
        decision_reason=ask.outcome.reason[:4096] if ask.outcome else "",
        expires_at=None,
        nominated_at=now,
        nominated_count=F("nominated_count") + 1,
        version=F("version") + 1,
        updated_at=now,
    )
    if won:
        _note_extenders(current.pk, ask, now)
        timeline.append(current.pk, Event.DENIED, at=now, reason="the extender now denies")
    current.refresh_from_db()
    return current


def _waiting_room_is_full(ask: Ask) -> str:
    """Why no further pending decision is recorded; empty where there is room."""
    settings = ask.cluster.settings
    waiting = Decision.objects.filter(cluster=ask.cluster, verdict=Verdict.PENDING).aggregate(
        all=Count("pk"), owner=Count("pk", filter=Q(owner_uid=ask.owner_uid))
    )
    if waiting["all"] >= settings.max_waiting:
        return f"not recorded: {waiting['all']} decisions wait already"
    if ask.owner_uid and waiting["owner"] >= settings.max_waiting_per_owner:
        return f"not recorded: {waiting['owner']} decisions of {ask.workload or ask.owner_name} wait already"
    return ""


def _refuses(row: Decision, now: datetime) -> bool:
    """A human's denial in its cool-down, or an unanswered expiry within its back-off."""
    denied = row.verdict == Verdict.DENIED and row.rule == Rule.HUMAN
    holds = row.cooldown_until is not None and row.cooldown_until > now
    return holds and (denied or row.verdict == Verdict.EXPIRED)


def refusal_sentence(decision: Decision) -> str:
    """Why a standing refusal refuses, for doors and for a cycle's list of what it filtered out."""
    if decision.verdict == Verdict.DENIED:
        until = f", until {decision.cooldown_until:%F %H:%M} UTC" if decision.cooldown_until else ""
        return f"denied by {decision.decided_by_name}: {decision.decision_reason}{until}"
    times = decision.unanswered
    nth = {1: "", 2: " (2nd time)", 3: " (3rd time)"}.get(times, f" ({times}th time)")
    return f"nobody answered{nth}, asks again at {decision.cooldown_until:%F %H:%M} UTC"


def _unanswered_before(last: Decision | None) -> int:
    """How often nobody answered, however it was nominated in between; an answer begins anew."""
    return last.unanswered if last is not None and last.rule != Rule.HUMAN else 0


# --- a human's answers ------------------------------------------------------------------------------------


def approve(*, decision_id: int, version: int, by: Actor, undo_seconds: float, now: datetime) -> Decision:
    """A reviewer's yes to what they were shown. The eviction is carried out later, by whoever is its executor.

    Raises:
        Conflict: it is no longer pending; says who was first.
        Changed: it is pending, but not in the version that was shown; says what changed.
        NotAllowed: ``prevent_self_review`` is on and this person started it.
    """
    with timeline.transaction():
        holds.pod_of(decision_id)
        shown = (
            Decision.objects.select_related("cluster", "caller", "cycle")
            .defer("cycle__document")
            .get(pk=decision_id)
        )
        _refuse_self_review(shown, by)
        interval = shown.caller.interval_seconds if shown.caller else 0
        won = _pending(decision_id, version, now).update(
            verdict=Verdict.ALLOWED,
            **_decided(by, now),
            decision_reason="",
            cooldown_until=None,
            expires_at=approval_expiry(shown.cluster, shown.executor, interval, now),
            moment=moment_of(shown),
        )
        if not won:
            raise _why_not(decision_id, version, now)
        timeline.append(decision_id, Event.APPROVED, by=by, at=now, detail={"version": version})
        _hand_over(shown, not_before=now + timedelta(seconds=undo_seconds), now=now)
    return Decision.objects.get(pk=decision_id)


def deny(
    *,
    decision_id: int,
    version: int,
    by: Actor,
    reason: str,
    cooldown_seconds: int | None = None,
    now: datetime,
) -> Decision:
    """A reviewer's no, with a reason; keeps this asker from this pod UID for a cool-down (None: the cluster's).

    Raises:
        Invalid: no reason, or a cool-down out of range.
        Conflict, Changed: as for :func:`approve`.
    """
    reason = _required_reason(reason)
    with timeline.transaction():
        shown = Decision.objects.select_related("cluster").get(pk=decision_id)
        won = _pending(decision_id, version, now).update(
            verdict=Verdict.DENIED,
            **_decided(by, now),
            decision_reason=reason,
            cooldown_until=now + _cooldown(shown.cluster, cooldown_seconds),
            expires_at=None,
        )
        if not won:
            raise _why_not(decision_id, version, now)
        timeline.append(decision_id, Event.DENIED, by=by, reason=reason, at=now)
    return Decision.objects.get(pk=decision_id)


def undo(*, decision_id: int, by: Actor, now: datetime) -> Decision:
    """Take an approval back within its undo time: pending again, no reason, no cool-down, a fresh hour.

    Raises:
        Conflict: the time is over, or it is not an approval any more; an override is taken back instead.
    """
    with timeline.transaction():
        holds.pod_of(decision_id)
        shown = Decision.objects.select_related("cluster").get(pk=decision_id)
        since = now - timedelta(seconds=shown.cluster.settings.undo_seconds)
        still = Decision.objects.filter(
            pk=decision_id, verdict=Verdict.ALLOWED, rule=Rule.HUMAN, decided_at__gt=since, override=False
        )
        told = evictions.recall(decision_id, now=now)
        won = still.filter(eviction=Eviction.NONE).update(**_back_to_pending(shown.cluster, now))
        if not won:
            raise Conflict(
                shown, "Too late to undo; it can be taken back, with a reason, as long as it was not tried."
            )
        timeline.append(decision_id, Event.UNDONE, by=by, at=now, detail=_may_have_acted(told))
        evictions.queue_who_waits_for(decision_id, now=now)
    return Decision.objects.get(pk=decision_id)


def take_back(
    *, decision_id: int, by: Actor, reason: str, cooldown_seconds: int | None = None, now: datetime
) -> Decision:
    """Turn an approval into a denial, as long as its eviction is none, queued, blocked or delegated.

    Raises:
        Invalid: no reason.
        Conflict: the eviction was already tried, or it is no longer an approval.
    """
    reason = _required_reason(reason)
    with timeline.transaction():
        holds.pod_of(decision_id)
        shown = Decision.objects.select_related("cluster").get(pk=decision_id)
        told = evictions.recall(decision_id, now=now)
        won = Decision.objects.filter(
            pk=decision_id, verdict=Verdict.ALLOWED, eviction=Eviction.NONE, expires_at__gt=now
        ).update(
            verdict=Verdict.DENIED,
            **_decided(by, now),
            decision_reason=reason,
            cooldown_until=now + _cooldown(shown.cluster, cooldown_seconds),
            expires_at=None,
        )
        if not won:
            raise _too_late(decision_id, now)
        timeline.append(
            decision_id, Event.TAKEN_BACK, by=by, reason=reason, at=now, detail=_may_have_acted(told)
        )
        evictions.queue_who_waits_for(decision_id, now=now)
    return Decision.objects.get(pk=decision_id)


def override(*, decision_id: int, by: Actor, reason: str, pod_exists: bool, now: datetime) -> Decision:
    """Allow what was denied, with a reason. Takes the place of an open decision of the same asker.

    Args:
        pod_exists: whether the API server still has this UID; the caller looks it up.

    Raises:
        Invalid: no reason.
        Conflict: it is not denied; the pod is gone; the open one is already being carried out; or a later
            denial of the same asker holds.
    """
    reason = _required_reason(reason)
    with timeline.transaction():
        closed = holds.closed(Decision.objects.values_list("cluster_id", flat=True).get(pk=decision_id))
        holds.pod_of(decision_id)
        shown = (
            Decision.objects.select_for_update(no_key=True, of=("self",))
            .select_related("cluster", "caller")
            .get(pk=decision_id)
        )
        _refuse_self_review(shown, by)
        if shown.verdict != Verdict.DENIED:
            raise Conflict(
                shown, f"Only a denial can be overridden; this one is {shown.get_verdict_display().lower()}."
            )
        if not pod_exists:
            raise Conflict(
                shown, f"Pod {shown.pod} with this UID no longer exists: there is nothing to evict."
            )
        if closed:
            raise Conflict(shown, closed)
        displace(shown, by=by, now=now)
        interval = shown.caller.interval_seconds if shown.caller else 0
        won = Decision.objects.filter(pk=decision_id, verdict=Verdict.DENIED).update(
            verdict=Verdict.ALLOWED,
            **_decided(by, now),
            override=True,
            decision_reason=reason,
            cooldown_until=None,
            expires_at=approval_expiry(shown.cluster, shown.executor, interval, now),
            moment=moment_of(shown),
            version=F("version") + 1,
        )
        if not won:
            raise _why_not(decision_id, shown.version, now)
        timeline.append(decision_id, Event.OVERRIDDEN, by=by, reason=reason, at=now)
        _hand_over(shown, not_before=now, now=now)
    return Decision.objects.get(pk=decision_id)


def displace(decision: Decision, *, by: Actor, now: datetime) -> None:
    """Withdraw the open decision of the same asker and pod, so that ``decision`` can take its place.

    Raises:
        Conflict: that one is evicting, accepted or in background; or a human's later denial holds, which comes
            before any approval.
    """
    others = Decision.objects.filter(
        OPEN, cluster_id=decision.cluster_id, pod_uid=decision.pod_uid, asker=decision.asker
    ).exclude(pk=decision.pk)
    for other in others:
        told = evictions.recall(other.pk, now=now)
        won = Decision.objects.filter(OPEN, pk=other.pk, eviction=Eviction.NONE).update(
            verdict=Verdict.WITHDRAWN, expires_at=None, updated_at=now, version=F("version") + 1
        )
        if not won:
            raise Conflict(other, f"Decision {other.pk} for this pod is being carried out already.")
        reason = f"decision {decision.pk} takes its place"
        timeline.append(other.pk, Event.WITHDRAWN, by=by, at=now, reason=reason, detail=_may_have_acted(told))
    _refuse_while_denied(decision, now)


def _refuse_while_denied(decision: Decision, now: datetime) -> None:
    denials = Decision.objects.filter(
        cluster_id=decision.cluster_id,
        pod_uid=decision.pod_uid,
        asker=decision.asker,
        verdict=Verdict.DENIED,
        rule=Rule.HUMAN,
        cooldown_until__gt=now,
    ).exclude(pk=decision.pk)
    if (held := denials.order_by("-id").first()) is not None:
        raise Conflict(
            held, f"Decision {held.pk} holds: {refusal_sentence(held)}. Override that one instead."
        )


# --- what happens by itself -------------------------------------------------------------------------------


def expire_due(*, now: datetime, limit: int = 500) -> int:
    """Expire what nobody answered, and approvals whose time is over. Returns how many."""
    due = Decision.objects.filter(open=True, expires_at__lte=now).exclude(eviction__in=COMMITTED)
    due_ids = due.order_by("expires_at").values_list("pk", flat=True)[:limit]
    return sum(expire_one(pk, now=now) for pk in list(due_ids))


def expire_one(decision_id: int, *, now: datetime) -> bool:
    """Expire one decision if its time is over and nothing irrevocable has begun."""
    with timeline.transaction():
        row = Decision.objects.select_related("cluster").get(pk=decision_id)
        if row.expires_at is None or row.expires_at > now:
            return False
        if row.verdict == Verdict.PENDING:
            return _expire_unanswered(row, now)
        holds.pod(row.cluster_id, row.pod_uid)
        told = evictions.recall(decision_id, now=now)
        won = Decision.objects.filter(
            pk=decision_id, verdict=Verdict.ALLOWED, eviction=Eviction.NONE, expires_at__lte=now
        ).update(verdict=Verdict.EXPIRED, expires_at=None, updated_at=now, version=F("version") + 1)
        if not won:
            transaction.set_rollback(True)
            return False
        why = "its caller did not act on the yes" if told == Eviction.DELEGATED else "not carried out in time"
        timeline.append(decision_id, Event.EXPIRED, at=now, reason=why)
        evictions.queue_who_waits_for(decision_id, now=now)
    return True


def _expire_unanswered(row: Decision, now: datetime) -> bool:
    backoffs = row.cluster.settings.unanswered_backoff_seconds
    pause = timedelta(seconds=backoffs[min(row.unanswered, len(backoffs) - 1)])
    won = Decision.objects.filter(pk=row.pk, verdict=Verdict.PENDING, expires_at__lte=now).update(
        verdict=Verdict.EXPIRED,
        rule=Rule.TIME,
        cooldown_until=now + pause,
        unanswered=row.unanswered + 1,
        expires_at=None,
        updated_at=now,
        version=F("version") + 1,
    )
    if won:
        timeline.append(row.pk, Event.EXPIRED, at=now, reason="nobody answered")
    return bool(won)


def withdraw(*, decisions: "QuerySet[Decision]", why: str, by: Actor = SYSTEM, now: datetime) -> int:
    """Withdraw those of ``decisions`` that are pending, or allowed with nothing irrevocable begun. Returns how many."""
    candidates = decisions.filter(
        Q(verdict=Verdict.PENDING) | Q(verdict=Verdict.ALLOWED, eviction__in=RECALLABLE)
    ).values_list("pk", flat=True)
    # In one order everywhere, so that two who withdraw many do not wait for each other in a circle.
    candidates = candidates.order_by("pk")
    return sum(_withdraw_one(pk, why=why, by=by, now=now) for pk in list(candidates))


def withdraw_unarmed(*, now: datetime) -> int:
    """Withdraw what came back while its cluster was disarmed: a call that was not sent, a lease that ran out."""
    rows = Decision.objects.filter(open=True, cluster__armed=False)
    return withdraw(decisions=rows, why="the cluster only observes", now=now)


def _withdraw_one(decision_id: int, *, why: str, by: Actor, now: datetime) -> bool:
    with timeline.transaction():
        holds.pod_of(decision_id)
        told = evictions.recall(decision_id, now=now)
        won = Decision.objects.filter(OPEN, pk=decision_id, eviction=Eviction.NONE).update(
            verdict=Verdict.WITHDRAWN,
            rule=Rule.CLUSTER,
            expires_at=None,
            updated_at=now,
            version=F("version") + 1,
        )
        if not won:
            transaction.set_rollback(True)
            return False
        detail = _may_have_acted(told)
        timeline.append(decision_id, Event.WITHDRAWN, at=now, by=by, reason=why, detail=detail)
        evictions.queue_who_waits_for(decision_id, now=now)
    return True


def back_to_pending(
    *,
    decision_id: int,
    why: str,
    changes: dict[str, tuple[str, str]],
    forecast: dict[str, Any] | None = None,
    now: datetime,
) -> bool:
    """The moment of an approval is over (fewer ready replicas, another policy …): ask again, with the difference.

    Args:
        forecast: with what was read now, so that the next approval is one of this moment; None: as it was.
    """
    with timeline.transaction():
        holds.pod_of(decision_id)
        row = Decision.objects.select_related("cluster").get(pk=decision_id)
        told = evictions.recall(decision_id, now=now)
        won = Decision.objects.filter(pk=decision_id, verdict=Verdict.ALLOWED, eviction=Eviction.NONE).update(
            **_back_to_pending(row.cluster, now), **({} if forecast is None else {"forecast": forecast})
        )
        if not won:
            transaction.set_rollback(True)
            return False
        detail: dict[str, Any] = {
            "changes": changes,
            "version": row.version + 1,
            **_may_have_acted(told),
        }
        timeline.append(decision_id, Event.BACK_TO_PENDING, at=now, reason=why, detail=detail)
        evictions.queue_who_waits_for(decision_id, now=now)
    return True


# --- shared -----------------------------------------------------------------------------------------------


def approval_expiry(cluster: Cluster, executor: str, interval_seconds: int, now: datetime) -> datetime:
    """When an approval ends. Where we carry out: at most so long after it (the pace shortens it when it lets go)."""
    settings = cluster.settings
    if executor == Executor.US:
        return now + timedelta(seconds=settings.approval_at_most_seconds)
    return now + timedelta(seconds=max(settings.approval_seconds, 2 * interval_seconds))


def start_approval_time(decision_id: int, *, now: datetime) -> None:
    """The pace lets an approved one go for the first time: from now on its approval holds for its usual time."""
    row = Decision.objects.select_related("cluster").get(pk=decision_id)
    until = now + timedelta(seconds=row.cluster.settings.approval_seconds)
    Decision.objects.filter(pk=decision_id, verdict=Verdict.ALLOWED, expires_at__gt=until).update(
        expires_at=until
    )


def renew_approval(decision_id: int, *, now: datetime) -> None:
    """A failed eviction is tried again by a person: its approval gets a fresh expiry."""
    row = Decision.objects.select_related("cluster").get(pk=decision_id)
    Decision.objects.filter(pk=decision_id, verdict=Verdict.ALLOWED).update(
        expires_at=approval_expiry(row.cluster, row.executor, 0, now), updated_at=now
    )


def moment_of(decision: Decision) -> dict[str, Any]:
    """What the reviewer was shown, kept with the approval: it belongs to its moment."""
    moment = _moment(decision.forecast, decision.node, decision.policy_id)
    # Siblings that were moved since then are not lost; nominating again changes nominated_at, not the moment.
    return {"at": decision.nominated_at.isoformat(), **moment}


def moment_of_ask(ask: Ask) -> dict[str, Any]:
    """The same for an approval that no human gave."""
    return _moment(dict(ask.forecast), ask.node, ask.policy.pk if ask.policy else None)


def _moment(forecast: dict[str, Any], node: str, policy_id: int | None) -> dict[str, Any]:
    # Of the direct owner, which is read again: a Deployment in a rollout has more than one ReplicaSet.
    direct = "owner_" if forecast.get("owner_desired") is not None else ""
    at = {"at": forecast["read_at"]} if forecast.get("read_at") else {}
    return at | {
        "ready": forecast.get(f"{direct}ready"),
        "desired": forecast.get(f"{direct}desired"),
        "pdbs": {pdb["name"]: pdb["disruptions_allowed"] for pdb in forecast.get("pdbs", ())},
        "node": node,
        "policy": forecast.get("policy", policy_id),
        "words": forecast_words(forecast),
    }


def _hand_over(decision: Decision, *, not_before: datetime, now: datetime) -> None:
    if decision.executor == Executor.US:
        evictions.queue(decision.pk, not_before=not_before, now=now)
        nudge.carry_out(decision.cluster_id)


def _decided(by: Actor, now: datetime) -> dict[str, Any]:
    return {
        "rule": Rule.HUMAN,
        "decided_by": by.user,
        "decided_by_name": by.name[:200],
        "decided_with_id": by.token_id,
        "decided_at": now,
        "updated_at": now,
    }


def _back_to_pending(cluster: Cluster, now: datetime) -> dict[str, Any]:
    return {
        "verdict": Verdict.PENDING,
        "rule": Rule.NONE,
        "decided_by": None,
        "decided_by_name": "",
        "decided_with": None,
        "decided_at": None,
        "decision_reason": "",
        "override": False,
        "cooldown_until": None,
        "expires_at": now + timedelta(seconds=cluster.settings.pending_seconds),
        "moment": {},
        "version": F("version") + 1,
        "updated_at": now,
    }


def _pending(decision_id: int, version: int, now: datetime) -> "QuerySet[Decision]":
    return Decision.objects.filter(
        pk=decision_id, verdict=Verdict.PENDING, version=version, expires_at__gt=now
    )


def _cooldown(cluster: Cluster, seconds: int | None) -> timedelta:
    if seconds is None:
        return timedelta(seconds=cluster.settings.denial_cooldown_seconds)
    if not 0 <= seconds <= 30 * 24 * 3600:
        raise Invalid("A cool-down is between 0 seconds and 30 days.", "cooldown_seconds")
    return timedelta(seconds=seconds)


def _required_reason(reason: str) -> str:
    reason = reason.strip()[: timeline.REASON_CHARS]
    if not reason:
        raise Invalid("Say why: whoever asked, and whoever reads this later, will want to know.", "reason")
    return reason


def _refuse_self_review(decision: Decision, by: Actor) -> None:
    if not decision.cluster.settings.prevent_self_review or by.user is None:
        return
    started = decision.cycle.started_by_id if decision.cycle else None
    asked = decision.caller.owner_id if decision.caller else None
    if by.user.pk in {started, asked}:
        raise NotAllowed(
            decision, "You asked for this eviction; on this cluster somebody else has to review it."
        )


def _why_not(decision_id: int, version: int, now: datetime) -> Exception:
    """Zero rows were updated: say what was first."""
    fresh = Decision.objects.get(pk=decision_id)
    if fresh.verdict == Verdict.PENDING and fresh.expires_at is not None and fresh.expires_at <= now:
        return Conflict(fresh, "It expired: nobody answered in time.")
    if fresh.verdict == Verdict.PENDING:
        return Changed(fresh, changes_since(decision_id, version))
    return Conflict(fresh, settled_sentence(fresh))


def settled_sentence(decision: Decision) -> str:
    """ "already approved by Ada", for the second of two who clicked."""
    verb = {Verdict.ALLOWED: "approved", Verdict.DENIED: "denied"}.get(Verdict(decision.verdict))
    if decision.rule == Rule.HUMAN:
        # What expired or was withdrawn after an approval was not decided so by the approver.
        return (
            f"Already {verb} by {decision.decided_by_name}."
            if verb
            else f"Already {decision.get_verdict_display().lower()}."
        )
    by = f" by {decision.decided_by_name}" if decision.decided_by_name else ""
    return f"Already {decision.get_verdict_display().lower()}{by}."


def changes_since(decision_id: int, version: int) -> dict[str, tuple[str, str]]:
    """What changed after this version was shown: {name: (as shown, as it is now)}."""
    changes: dict[str, tuple[str, str]] = {}
    for event in DecisionEvent.objects.filter(decision_id=decision_id).exclude(detail={}):
        if event.detail.get("version", 0) <= version:
            continue
        for name, (before, after) in event.detail.get("changes", {}).items():
            changes[name] = (changes[name][0] if name in changes else before, after)
    return changes


def _may_have_acted(told: str) -> dict[str, Any]:
    """A yes that a caller has heard cannot be called back from it; the timeline says so."""
    return {"caller_may_have_acted": True} if told == Eviction.DELEGATED else {}


def _too_late(decision_id: int, now: datetime) -> Conflict:
    fresh = Decision.objects.get(pk=decision_id)
    if fresh.verdict != Verdict.ALLOWED:
        return Conflict(fresh, settled_sentence(fresh))
    if fresh.eviction in RECALLABLE and fresh.expires_at is not None and fresh.expires_at <= now:
        return Conflict(fresh, "It expired: it was not carried out in time.")
    return Conflict(fresh, f"Too late: its eviction is {fresh.get_eviction_display().lower()}.")
