"""How many decisions a day or an hour, by verdict: the strip of bars above the history."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Final

from django.db.models import Count, Value
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
        when = (
            f"{timezone.localtime(self.start):%a %d %b %H:%M}"
            if hourly
            else f"{timezone.localtime(self.start):%a %d %b}"
        )
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
        most = busiest.words(hourly=self.hourly)
        return f"{plural(self.total, 'decision')} by {unit}: {', '.join(parts)}. Most: {most}."


def strip(access: Access, chosen: HistoryFilter, now: datetime) -> Strip:
    """Bars for the filter's time, or the last 30 days; by hour where it is at most two days."""
    until = min(parse_time(chosen.until) or now, now)
    since = parse_time(chosen.since) or until - timedelta(days=DAYS)
    hourly = until - since <= HOURS_UP_TO
    since = max(since, until - (timedelta(hours=MOST_BARS - 2) if hourly else timedelta(days=MOST_BARS - 2)))
    starts = _hours(since, until) if hourly else _days(since, until)
    spans = [(max(start, since), min(end, until)) for start, end in starts]
    counts = _counts(access, replace(chosen, since="", until=""), spans)
    return Strip(tuple(Bar(*ends, found) for ends, found in zip(starts, counts, strict=True)), hourly)


def _counts(
    access: Access, chosen: HistoryFilter, spans: Sequence[tuple[datetime, datetime]]
) -> list[dict[str, int]]:
    """Decisions of each span by verdict, in one query.

    A branch for each span, and not a group by a truncated time: the index seeks each span and counts in it, no row
    is converted, and a day is as long as it is in the person's zone.
    """
    rows = history.decisions(access, chosen).order_by()
    branches = [
        rows.filter(created_at__gte=start, created_at__lt=end)
        .annotate(bar=Value(number))
        .values_list("bar", "verdict")
        .annotate(number=Count("pk"))
        for number, (start, end) in enumerate(spans)
    ]
    counts = [dict.fromkeys((*KINDS, OTHER), 0) for _ in spans]
    for bar, verdict, number in branches[0].union(*branches[1:], all=True) if branches else ():
        counts[bar][verdict if verdict in KINDS else OTHER] += number
    return counts


def _hours(since: datetime, until: datetime) -> list[tuple[datetime, datetime]]:
    zone = timezone.get_current_timezone()
    at = since.astimezone(zone).replace(minute=0, second=0, microsecond=0)
    found: list[tuple[datetime, datetime]] = []
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
