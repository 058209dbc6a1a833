"""How many decisions a day or an hour, by verdict: the strip of bars above the history."""

from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Final

from django.db.models import Count
from django.db.models.functions import TruncDay, TruncHour
from django.utils import timezone

from decisions.models import Verdict
from decisions.queries import history
from decisions.queries.access import Access
from decisions.queries.history import HistoryFilter, parse_time
from decisions.queries.sentences import plural

DAYS: Final = 30
HOURS_UP_TO: Final = timedelta(hours=49)
KINDS: Final = (Verdict.ALLOWED, Verdict.DENIED, Verdict.PENDING)
OTHER: Final = "other"
MOST_BARS: Final = 62


@dataclass(frozen=True)
class Bar:
    """One day or hour."""

    start: datetime
    end: datetime
    counts: dict[str, int]

    @property
    def total(self) -> int:
        """All of it."""
        return sum(self.counts.values())

    def words(self, *, hourly: bool) -> str:
        """For people who do not see the bar."""
        when = f"{timezone.localtime(self.start):%a %d %b %H:%M}" if hourly else f"{timezone.localtime(self.start):%a %d %b}"
        parts = [f"{count} {kind}" for kind, count in self.counts.items() if count]
        return f"{when}: {plural(self.total, 'decision')}" + (f" ({', '.join(parts)})" if parts else "")


@dataclass(frozen=True)
class Strip:
    """All bars of a span."""

    bars: tuple[Bar, ...]
    hourly: bool

    @property
    def most(self) -> int:
        """The highest."""
        return max((bar.total for bar in self.bars), default=0)

    @property
    def total(self) -> int:
        """All of it."""
        return sum(bar.total for bar in self.bars)

    @property
    def words(self) -> str:
        """The whole strip in a sentence."""
        unit = "hour" if self.hourly else "day"
        busiest = max(self.bars, key=lambda bar: bar.total, default=None)
        if busiest is None or not busiest.total:
            return f"No decisions in this time, by {unit}."
        parts = [f"{sum(bar.counts.get(kind, 0) for bar in self.bars)} {kind}" for kind in (*KINDS, OTHER)]
        return f"{plural(self.total, 'decision')} by {unit}: {', '.join(parts)}. Most: {busiest.words(hourly=self.hourly)}."


def strip(access: Access, chosen: HistoryFilter, now: datetime) -> Strip:
    """Bars for the filter's time, or the last 30 days; by hour where it is at most two days."""
    until = min(parse_time(chosen.until) or now, now)
    since = parse_time(chosen.since) or until - timedelta(days=DAYS)
    hourly = until - since <= HOURS_UP_TO
    since = max(since, until - (timedelta(hours=MOST_BARS - 2) if hourly else timedelta(days=MOST_BARS - 2)))
    narrowed = replace(chosen, since=since.astimezone(UTC).isoformat(), until="")
    trunc = TruncHour if hourly else TruncDay
    rows = (
        history.decisions(access, narrowed)
        .filter(created_at__lt=until)
        .order_by()
        .annotate(bar=trunc("created_at"))
        .values_list("bar", "verdict")
        .annotate(number=Count("pk"))
    )
    counts: dict[datetime, dict[str, int]] = defaultdict(lambda: dict.fromkeys((*KINDS, OTHER), 0))
    for at, verdict, number in rows:
        counts[at][verdict if verdict in KINDS else OTHER] += number
    empty = dict.fromkeys((*KINDS, OTHER), 0)
    starts = _hours(since, until) if hourly else _days(since, until)
    return Strip(tuple(Bar(start, end, counts.get(start, empty)) for start, end in starts), hourly)


def _hours(since: datetime, until: datetime) -> list[tuple[datetime, datetime]]:
    zone = timezone.get_current_timezone()
    at = since.astimezone(zone).replace(minute=0, second=0, microsecond=0)
    found = []
    while at < until and len(found) < MOST_BARS:
        following = (at.astimezone(UTC) + timedelta(hours=1)).astimezone(zone)
        found.append((at, following))
        at = following
    return found


def _days(since: datetime, until: datetime) -> list[tuple[datetime, datetime]]:
    zone = timezone.get_current_timezone()

    def midnight(day: date) -> datetime:
        return datetime(day.year, day.month, day.day, tzinfo=zone)

    first, last = since.astimezone(zone).date(), until.astimezone(zone).date()
    days = [first + timedelta(days=number) for number in range(min((last - first).days + 1, MOST_BARS))]
    return [(midnight(day), midnight(day + timedelta(days=1))) for day in days]
