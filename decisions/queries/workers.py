"""Whether a worker is there, as pages and the worker's own probe read it."""

from datetime import datetime, timedelta

from decisions.models import Heartbeat

AWAY_AFTER = timedelta(seconds=30)
# Rows with this before their name answer a probe; they say nothing of beat, so they are no heartbeat.
PROBE = "probe "


def latest() -> Heartbeat | None:
    """The newest heartbeat of any worker that ran a tick; None where none ever did."""
    return Heartbeat.objects.exclude(name__startswith=PROBE).order_by("-seen_at").first()


def is_away(last: Heartbeat, now: datetime) -> bool:
    """Whether that heartbeat is so old that nothing is carried out."""
    return last.seen_at <= now - AWAY_AFTER
