"""How much one cluster may be asked: a pace for requests, and how many evictions are in flight.

Each cluster has one :class:`Budget`, shared by everything in this process that speaks to it. Waiting is
bounded by a deadline; where there is no room before it, nothing is sent. Clock and sleep are passed in.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Final

from deschedui.kube.errors import BudgetExhausted

REQUESTS_PER_SECOND: Final = 20.0
LOOKUPS_PER_SECOND: Final = 200.0
EVICTIONS_IN_FLIGHT: Final = 4

Clock = Callable[[], float]
Sleep = Callable[[float], None]


class Lane(Enum):
    """On whose account a request goes: cycles and carrying out, or the look-ups of the doors."""

    WORK = "work"
    LOOKUP = "lookup"


class TokenBucket:
    """``rate`` requests a second, up to a second's worth at once; thread-safe, first come first served."""

    def __init__(self, rate: float, *, clock: Clock = time.monotonic, sleep: Sleep = time.sleep) -> None:
        if rate <= 0:
            raise ValueError(f"a rate must be positive: {rate}")
        self._rate, self._burst = rate, max(1.0, rate)
        self._clock, self._sleep = clock, sleep
        self._tokens, self._at = self._burst, clock()
        self._lock = threading.Lock()

    def take(self, *, deadline: float) -> None:
        """Wait for a place.

        Args:
            deadline: in seconds of the clock.

        Raises:
            BudgetExhausted: the place would come after the deadline; it is not taken.
        """
        wait = self._reserve(deadline)
        if wait > 0:
            self._sleep(wait)

    def pause(self, seconds: float) -> None:
        """Let nobody through for so many seconds, and then at the usual pace, without a burst."""
        with self._lock:
            self._refill()
            self._tokens = min(self._tokens, 1.0 - seconds * self._rate)

    def _reserve(self, deadline: float) -> float:
        with self._lock:
            self._refill()
            wait = max(0.0, (1.0 - self._tokens) / self._rate)
            if self._at + wait > deadline:
                raise BudgetExhausted(
                    f"this cluster's budget of {self._rate:g} requests a second is used up for {wait:.1f} s; "
                    "nothing was sent"
                )
            self._tokens -= 1.0
            return wait

    def _refill(self) -> None:
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + max(0.0, now - self._at) * self._rate)
        self._at = now


class Budget:
    """What one cluster may be asked, for all threads of this process.

    Args:
        requests_per_second: for cycles and carrying out.
        lookups_per_second: for the doors.
        evictions_in_flight: calls at the same time.
    """

    def __init__(
        self,
        *,
        requests_per_second: float = REQUESTS_PER_SECOND,
        lookups_per_second: float = LOOKUPS_PER_SECOND,
        evictions_in_flight: int = EVICTIONS_IN_FLIGHT,
        clock: Clock = time.monotonic,
        sleep: Sleep = time.sleep,
    ) -> None:
        self.clock = clock
        self._buckets = {
            Lane.WORK: TokenBucket(requests_per_second, clock=clock, sleep=sleep),
            Lane.LOOKUP: TokenBucket(lookups_per_second, clock=clock, sleep=sleep),
        }
        self._flights = threading.BoundedSemaphore(evictions_in_flight)
        self._in_flight = evictions_in_flight

    def take(self, lane: Lane, *, deadline: float) -> None:
        """Wait for a place in this lane, at most until the deadline (of ``clock``).

        Raises:
            BudgetExhausted: no place before the deadline.
        """
        self._buckets[lane].take(deadline=deadline)

    @contextmanager
    def eviction(self, *, deadline: float) -> Iterator[None]:
        """Hold one of the places for evictions in flight.

        Raises:
            BudgetExhausted: all of them stayed taken until the deadline.
        """
        if not self._flights.acquire(timeout=max(0.0, deadline - self.clock())):
            raise BudgetExhausted(f"{self._in_flight} evictions are in flight already; nothing was sent")
        try:
            yield
        finally:
            self._flights.release()

    def slow_down(self, seconds: float) -> None:
        """The API server is throttling: nothing of the work lane goes out for so many seconds."""
        self._buckets[Lane.WORK].pause(seconds)
