"""Pace: how many pods of an owner and of a cluster may be on their way at once. Pure.

One pod of an owner at a time, the next when its replacement is Ready. An owner that gets no Ready replacement
for too long has its rest held: evicting on would take one pod after the other from something that does not
come back. ``services.evictions.claim`` tests the same numbers once more, in the UPDATE itself.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from decisions.models.enums import Eviction
from decisions.models.settings import ClusterSettings


@dataclass(frozen=True)
class Rules:
    """The cluster's settings that the pace keeps to."""

    per_owner: int = 1
    per_cluster: int = 10
    calls: int = 4
    replacement: timedelta = timedelta(minutes=10)
    still_there: timedelta = timedelta(minutes=10)

    @classmethod
    def of(cls, settings: ClusterSettings) -> "Rules":
        """The rules that these settings give."""
        return cls(
            per_owner=settings.in_flight_per_owner,
            per_cluster=settings.in_flight_per_cluster,
            calls=settings.eviction_calls,
            replacement=timedelta(seconds=settings.replacement_seconds),
            still_there=timedelta(seconds=settings.still_there_seconds),
        )


@dataclass(frozen=True)
class Flight:
    """An eviction that is on its way: called, accepted, or evicted without a Ready replacement yet.

    Args:
        owner: UID of the pod's owner; empty for a pod without one.
        since: when it was accepted; None while it is being called.
    """

    owner: str
    pod: str
    eviction: str
    since: datetime | None

    def fills_the_cluster(self, rules: Rules, now: datetime) -> bool:
        """Whether it takes one of the cluster's places; what is said to be stuck does so no longer."""
        if self.eviction == Eviction.EVICTED:
            return False
        return self.since is None or self.since > now - rules.still_there

    def is_stuck(self, rules: Rules, now: datetime) -> bool:
        """Whether its replacement should have been Ready by now."""
        return self.since is not None and self.since <= now - rules.replacement


@dataclass(frozen=True)
class Queued:
    """An eviction that waits for its turn.

    Args:
        held_for_pace: it is held because an earlier one of its owner got no Ready replacement.
        held: it is held, for whatever reason.
        due: nothing but the pace keeps it.
    """

    id: int
    owner: str
    held_for_pace: bool = False
    held: bool = False
    due: bool = True


@dataclass(frozen=True)
class Turn:
    """What the pace says now: who may go, in order; whose owner is to be held and why; who is held no longer."""

    go: tuple[int, ...] = ()
    hold: Mapping[int, str] = field(default_factory=dict)
    leave: tuple[int, ...] = ()


def turn(queued: Sequence[Queued], flights: Sequence[Flight], rules: Rules, now: datetime) -> Turn:
    """Whose turn it is.

    Args:
        queued: in the order in which they were decided.
        flights: of the same cluster, those whose replacement is Ready left out.
    """
    stuck = stuck_owners(flights, rules, now)
    return Turn(
        go=tuple(_going(queued, flights, stuck, rules, now)),
        hold={item.id: stuck[item.owner] for item in queued if item.owner in stuck and not item.held},
        leave=tuple(item.id for item in queued if item.held_for_pace and item.owner not in stuck),
    )


def stuck_owners(flights: Iterable[Flight], rules: Rules, now: datetime) -> dict[str, str]:
    """The owners whose replacement is overdue, each with the sentence that says so."""
    minutes = f"{rules.replacement.total_seconds() / 60:g}"
    return {
        flight.owner: f"no Ready replacement for {flight.pod} within {minutes} min"
        for flight in flights
        if flight.owner and flight.is_stuck(rules, now)
    }


def _going(
    queued: Sequence[Queued],
    flights: Sequence[Flight],
    stuck: Mapping[str, str],
    rules: Rules,
    now: datetime,
) -> Iterable[int]:
    of_owner = Counter(flight.owner for flight in flights)
    room = rules.per_cluster - sum(flight.fills_the_cluster(rules, now) for flight in flights)
    for item in queued:
        if room <= 0:
            return
        held = item.held and not item.held_for_pace
        if not item.due or held or item.owner in stuck:
            continue
        if item.owner and of_owner[item.owner] >= rules.per_owner:
            continue
        of_owner[item.owner] += 1
        room -= 1
        yield item.id
