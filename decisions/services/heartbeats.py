"""Signs of life: a worker that took a message from the broker and wrote to the database."""

from datetime import datetime, timedelta

from django.db.models import QuerySet

from decisions.models import Heartbeat

AWAY_AFTER = timedelta(seconds=30)
FORGOTTEN_AFTER = timedelta(days=1)
PROBE = "probe "


def beat(name: str, *, now: datetime) -> None:
    """This worker ran a tick: beat, broker, worker and database all work."""
    Heartbeat.objects.update_or_create(name=name[:200], defaults={"seen_at": now})


def answer(name: str, *, now: datetime) -> None:
    """This worker answers its own probe; that says nothing of beat, so it is no beat."""
    beat(PROBE + name, now=now)


def last_seen() -> datetime | None:
    """When any worker last ran a tick."""
    return _newest(Heartbeat.objects.exclude(name__startswith=PROBE))


def last_answer(name: str) -> datetime | None:
    """When this worker last answered its probe."""
    return _newest(Heartbeat.objects.filter(name=(PROBE + name)[:200]))


def _newest(rows: "QuerySet[Heartbeat]") -> datetime | None:
    return rows.order_by("-seen_at").values_list("seen_at", flat=True).first()


def away_since(*, now: datetime) -> datetime | None:
    """Since when no worker has been seen, for the bar on every page; None while there is one."""
    seen = last_seen()
    return seen if seen is not None and seen <= now - AWAY_AFTER else None


def forget(*, now: datetime) -> int:
    """Drop workers that have not been seen for a day: their pods are gone."""
    return Heartbeat.objects.filter(seen_at__lt=now - FORGOTTEN_AFTER).delete()[0]
