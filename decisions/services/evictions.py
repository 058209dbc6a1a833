"""The one module that changes an eviction status (design.md sections 5 and 7).

Each change is one conditional UPDATE together with its timeline entry. What the cluster is asked, and in which
order, is ``services.carryout``'s business; this module only moves states, so that every arrow can be tested
against the database's own constraints.
"""

from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.db.models import F

from decisions.models import OCCUPYING, Decision, Event, Eviction, Executor, Verdict
from decisions.services import timeline
from decisions.services.actors import Actor

TOLD_NOTE_EVERY = timedelta(minutes=1)


def queue(decision_id: int, *, not_before: datetime, now: datetime) -> bool:
    """none → queued, for an allowed decision that is ours to carry out.

    False where another decision occupies this pod UID: this one then waits for it.
    """
    try:
        with transaction.atomic():
            won = Decision.objects.filter(
                pk=decision_id, verdict=Verdict.ALLOWED, eviction=Eviction.NONE, executor=Executor.US
            ).update(eviction=Eviction.QUEUED, not_before=not_before, waits_for=None, held="", updated_at=now)
            if won:
                timeline.append(decision_id, Event.QUEUED, at=now)
            return bool(won)
    except IntegrityError:
        row = Decision.objects.get(pk=decision_id)
        taken = Decision.objects.filter(
            cluster_id=row.cluster_id, pod_uid=row.pod_uid, eviction__in=OCCUPYING
        ).first()
        Decision.objects.filter(pk=decision_id).update(waits_for=taken, not_before=not_before, updated_at=now)
        return False


def recall(decision_id: int, *, now: datetime) -> str:
    """queued | blocked | delegated → none, before the verdict leaves allowed. Returns what it was, or ''."""
    for status in (Eviction.QUEUED, Eviction.BLOCKED, Eviction.DELEGATED):
        won = Decision.objects.filter(pk=decision_id, eviction=status).update(
            eviction=Eviction.NONE, not_before=None, held="", waits_for=None, released_at=None, updated_at=now
        )
        if won:
            return status
    return ""


def queue_who_waits_for(decision_id: int, *, now: datetime) -> int:
    """Queue the allowed decisions of ours that waited for this one, now that it ended as none or failed."""
    waiting = Decision.objects.filter(waits_for_id=decision_id, verdict=Verdict.ALLOWED, eviction=Eviction.NONE)
    return sum(queue(row.pk, not_before=now, now=now) for row in waiting.order_by("id"))


def tell(decision_id: int, *, by: Actor, now: datetime) -> bool:
    """none → delegated: commit the first yes before its asker hears it; count the repeats.

    True where the asker may be told yes. The first yes starts the time in which a told yes holds.
    """
    with transaction.atomic():
        row = Decision.objects.select_related("cluster").get(pk=decision_id)
        first = Decision.objects.filter(
            pk=decision_id,
            verdict=Verdict.ALLOWED,
            eviction=Eviction.NONE,
            executor=Executor.ASKER,
            expires_at__gt=now,
        ).update(
            eviction=Eviction.DELEGATED,
            told_at=now,
            told_count=1,
            expires_at=now + timedelta(seconds=row.cluster.settings.delegated_seconds),
            updated_at=now,
        )
        if first:
            timeline.append(decision_id, Event.TOLD, at=now, by=by)
            return True
        again = Decision.objects.filter(
            pk=decision_id, verdict=Verdict.ALLOWED, eviction=Eviction.DELEGATED, expires_at__gt=now
        ).update(told_count=F("told_count") + 1)
        if again and _last_told(row, now):
            timeline.append(decision_id, Event.TOLD, at=now, by=by, detail={"times": row.told_count + 1})
        return bool(again)


def _last_told(row: Decision, now: datetime) -> bool:
    last = row.events.filter(kind=Event.TOLD).order_by("-id").first()
    return last is None or last.at <= now - TOLD_NOTE_EVERY
