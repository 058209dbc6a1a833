"""Which faults, on what, when: a pure function of the seed and their number.

Short faults follow each other and overlap; long ones (a worker that is stopped until its lease has run out) have a
lane of their own, so that they cost no time. Not everything is down for ever: a target has one fault at a time and
some time to come back, the two web processes are never harmed together, at most ``MOST_AT_ONCE`` short faults last at
a time, and after every ``CALM_EVERY`` of them there is a calm.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

LEASE_SECONDS: Final = 120.0
MOST_AT_ONCE: Final = 3
CALM_EVERY: Final = 20
CALM_SECONDS: Final = 5.0
GAP_SECONDS: Final = (0.9, 2.7)
FORGOTTEN_SECONDS: Final = 60.0
ONE_LONG_OF: Final = 60
LONG_FROM: Final = 30


class Kind(StrEnum):
    """What is done to a target; the value stands in the table."""

    KILL = "killed (SIGKILL)"
    STOP = "stopped and continued"
    STOP_PAST_LEASE = "stopped past the lease"
    REFUSE = "cut off: refused"
    SWALLOW = "cut off: swallowed"
    RESET = "cut off: reset"
    LOSE_ANSWERS = "cut off: answers lost"
    SLOW = "slowed down"
    EMPTY = "emptied"
    CLOCK = "clock off by two minutes"


class Target(StrEnum):
    """What is harmed."""

    WEB_1 = "web-1"
    WEB_2 = "web-2"
    WORKER_1 = "worker-1"
    WORKER_2 = "worker-2"
    BEAT = "beat"
    REDIS = "redis"
    POSTGRESQL = "postgresql"
    APISERVER = "apiserver"
    EXTENDER = "extender"


WORKERS: Final = (Target.WORKER_1, Target.WORKER_2)
WEBS: Final = (Target.WEB_1, Target.WEB_2)
ON_ANY: Final = (
    Kind.KILL, Kind.STOP, Kind.REFUSE, Kind.SWALLOW, Kind.RESET, Kind.LOSE_ANSWERS, Kind.SLOW,
)  # fmt: skip

# Seconds that a fault lasts, from and to; most are nearer to the lower end.
_LASTS: Final[Mapping[Kind, tuple[float, float]]] = {
    Kind.KILL: (0.1, 4.0),
    Kind.STOP: (0.5, 9.0),
    Kind.REFUSE: (0.5, 8.0),
    Kind.SWALLOW: (0.5, 9.0),
    Kind.RESET: (0.0, 0.0),
    Kind.LOSE_ANSWERS: (0.5, 4.0),
    Kind.SLOW: (2.0, 9.0),
    Kind.EMPTY: (0.0, 0.0),
    Kind.CLOCK: (4.0, 12.0),
    Kind.STOP_PAST_LEASE: (LEASE_SECONDS + 3, LEASE_SECONDS + 15),
}
# Until a target that was harmed may be harmed again: one that was killed has to start first.
_BACK: Final = 2.5
_STARTS: Final[Mapping[Target, float]] = {Target.APISERVER: 12.0, Target.REDIS: 3.0, Target.EXTENDER: 3.0}
_STARTS_OTHERS: Final = 8.0
# While one worker is stopped for long, the other has so much time to work between two faults of its own.
_ALONE: Final = 8.0


@dataclass(frozen=True, order=True)
class Fault:
    """One fault.

    Args:
        at: seconds after the start of the campaign.
        seconds: how long it lasts; 0 for what happens at once.
        delay: of a slowed down connection, seconds for each piece of data.
        ahead: whether a clock is set forward (or back).
    """

    at: float
    number: int
    kind: Kind
    target: Target
    seconds: float
    delay: float = 0.0
    ahead: bool = True

    @property
    def end(self) -> float:
        """When it is over, seconds after the start."""
        return self.at + self.seconds

    @property
    def long(self) -> bool:
        """Whether it has the lane of the long ones."""
        return self.kind is Kind.STOP_PAST_LEASE

    def __str__(self) -> str:
        return f"#{self.number} {self.target}: {self.kind}, {self.seconds:.1f} s"


Card = tuple[Kind, Target]


def deck() -> list[Card]:
    """Every short fault that there is; the special ones more often than their one target would give them."""
    cards = [(kind, target) for kind in ON_ANY for target in Target]
    return cards + [(Kind.EMPTY, Target.REDIS)] * 4 + [(Kind.CLOCK, Target.WORKER_2)] * 3


def sequence(seed: int, count: int) -> tuple[Fault, ...]:
    """The faults of a campaign in the order of their beginning; the same for the same seed and number."""
    chance = random.Random(f"deschedui campaign {seed}")
    long = list(_long_ones(chance, max(1, round(count / ONE_LONG_OF)) if count >= LONG_FROM else 0))
    short = list(_short_ones(chance, count - len(long), long))
    return tuple(_numbered(sorted([*long, *short])))


def _long_ones(chance: random.Random, count: int) -> Iterator[Fault]:
    """One after the other, the first at the start; alternating, so that each worker is left alone now and then."""
    at = 0.5
    for number in range(count):
        seconds = chance.uniform(*_LASTS[Kind.STOP_PAST_LEASE])
        target = WORKERS[number % len(WORKERS)]
        yield Fault(round(at, 2), number, Kind.STOP_PAST_LEASE, target, round(seconds, 2))
        at += seconds + chance.uniform(8, 25)


def _short_ones(chance: random.Random, count: int, long: Sequence[Fault]) -> Iterator[Fault]:
    table = _Table(list(long))
    hand: list[Card] = []
    at = 1.0
    for number in range(count):
        if number and number % CALM_EVERY == 0:
            at = max(at, table.quiet_from()) + CALM_SECONDS
        if len(hand) < len(Target):
            more = deck()
            chance.shuffle(more)
            hand += more
        at, card = _next_card(hand, table, at)
        hand.remove(card)
        fault = _drawn(chance, number, at, card)
        table.add(fault)
        yield fault
        at = round(at + chance.uniform(*GAP_SECONDS), 2)


def _next_card(hand: Sequence[Card], table: _Table, at: float) -> tuple[float, Card]:
    """The first card whose target is free, as early as there is one."""
    while True:
        for kind, target in hand:
            if table.is_free(kind, target, at):
                return at, (kind, target)
        at = round(at + 0.25, 2)


def _drawn(chance: random.Random, number: int, at: float, card: Card) -> Fault:
    kind, target = card
    least, most = _LASTS[kind]
    seconds = least + (most - least) * chance.random() ** 2
    delay = chance.uniform(0.05, 0.8)
    ahead = chance.random() < 0.5
    return Fault(
        at, number, kind, target, round(seconds, 2), round(delay, 2) if kind is Kind.SLOW else 0.0, ahead
    )


@dataclass
class _Table:
    """What is planned so far, as far as it still matters: the long ones all, the short ones of late."""

    faults: list[Fault] = field(default_factory=list)

    def add(self, fault: Fault) -> None:
        """One more; what is long over is forgotten."""
        ago = fault.at - FORGOTTEN_SECONDS
        self.faults = [each for each in self.faults if each.long or each.end > ago] + [fault]

    def is_free(self, kind: Kind, target: Target, at: float) -> bool:
        """Whether this target may be harmed at that time."""
        alone = any(fault.long and fault.at <= at < fault.end for fault in self.faults) and target in WORKERS
        rest = _ALONE if alone else 0.0
        lately = [fault for fault in self.faults if fault.at <= at < fault.end + max(rest, _time_back(fault))]
        if sum(fault.end > at and not fault.long for fault in self.faults) >= MOST_AT_ONCE:
            return False
        mine = [fault for fault in lately if fault.target == target or {fault.target, target} == set(WEBS)]
        # A long one is planned already, and may begin while this one lasts.
        soon = [fault for fault in self.faults if fault.long and fault.target == target and fault.end > at]
        ends = at + _LASTS[kind][1] + _STARTS_OTHERS
        return not mine and not any(fault.at < ends for fault in soon)

    def quiet_from(self) -> float:
        """When the last short fault is over."""
        return max((fault.end for fault in self.faults if not fault.long), default=0.0)


def _time_back(fault: Fault) -> float:
    return _STARTS.get(fault.target, _STARTS_OTHERS) if fault.kind is Kind.KILL else _BACK


def _numbered(faults: Sequence[Fault]) -> Iterator[Fault]:
    for number, fault in enumerate(faults, start=1):
        yield Fault(fault.at, number, fault.kind, fault.target, fault.seconds, fault.delay, fault.ahead)
