"""Signs of life: a worker that took a message from the broker and wrote to the database."""

from datetime import datetime, timedelta

from decisions.models import Heartbeat

AWAY_AFTER = timedelta(seconds=30)
FORGOTTEN_AFTER = timedelta(days=1)


def beat(name: str, *, now: datetime) -> None:
    """This worker is alive."""
    Heartbeat.objects.update_or_create(name=name[:200], defaults={"seen_at": now})


def last_seen(name: str = "") -> datetime | None:
    """When this worker (empty: any worker) was last seen."""
    rows = Heartbeat.objects.filter(name=name) if name else Heartbeat.objects.all()
    return rows.order_by("-seen_at").values_list("seen_at", flat=True).first()


def away_since(*, now: datetime) -> datetime | None:
    """Since when no worker has been seen, for the bar on every page; None while there is one."""
    seen = last_seen()
    return seen if seen is not None and seen <= now - AWAY_AFTER else None


def forget(*, now: datetime) -> int:
    """Drop workers that have not been seen for a day: their pods are gone."""
    return Heartbeat.objects.filter(seen_at__lt=now - FORGOTTEN_AFTER).delete()[0]
