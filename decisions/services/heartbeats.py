"""Signs of life: a worker that took a message from the broker and wrote to the database."""

from datetime import datetime, timedelta

from decisions.models import Heartbeat
from decisions.queries import workers
from decisions.queries.workers import PROBE

FORGOTTEN_AFTER = timedelta(days=1)


def beat(name: str, *, now: datetime) -> None:
    """This worker ran a tick: beat, broker, worker and database all work."""
    Heartbeat.objects.update_or_create(name=name[:200], defaults={"seen_at": now})


def answer(name: str, *, now: datetime) -> None:
    """This worker answers its own probe; that says nothing of beat, so it is no beat."""
    beat(PROBE + name, now=now)


def last_seen() -> datetime | None:
    """When any worker last ran a tick."""
    last = workers.latest()
    return last.seen_at if last is not None else None


def last_answer(name: str) -> datetime | None:
    """When this worker last answered its probe."""
    answered = Heartbeat.objects.filter(name=(PROBE + name)[:200])
    return answered.values_list("seen_at", flat=True).first()


def forget(*, now: datetime) -> int:
    """Drop workers that have not been seen for a day: their pods are gone."""
    return Heartbeat.objects.filter(seen_at__lt=now - FORGOTTEN_AFTER).delete()[0]
