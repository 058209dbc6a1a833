"""The circuit breaker of one cycle: an extender that fails too often in a row is not asked any more. Pure.

It counts in the plan's order, between rounds, so that the same answers give the same plan however the calls
overlapped in time. Once open it stays open for the rest of the cycle.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

from deschedui.extender.outcomes import ExtenderOutcome, Failed, FailureMode

DEFAULT_LIMIT: Final = 5


@dataclass(frozen=True, slots=True)
class Breaker:
    """The failures of one extender, in a row. `limit` of zero or less: never opens."""

    limit: int = DEFAULT_LIMIT
    in_a_row: int = 0

    @property
    def is_open(self) -> bool:
        """Whether the extender is left alone for the rest of the cycle."""
        return 0 < self.limit <= self.in_a_row

    def after(self, outcomes: Iterable[ExtenderOutcome]) -> Self:
        """The breaker after one more round: its outcomes in the plan's order."""
        state = self
        for outcome in outcomes:
            state = state._counting(outcome)
        return state

    def _counting(self, outcome: ExtenderOutcome) -> Self:
        if self.is_open or outcome.failure_mode is FailureMode.CIRCUIT_OPEN:
            return self
        return replace(self, in_a_row=self.in_a_row + 1 if outcome.failure_mode else 0)

    def observation(self) -> Failed:
        """What stands for the answer of an extender that was not asked."""
        return Failed(FailureMode.CIRCUIT_OPEN, f"{self.in_a_row} calls in a row failed in this cycle")


@dataclass(frozen=True, slots=True)
class Breakers:
    """One breaker for each extender of a plugin, in the policy's order."""

    each: tuple[Breaker, ...]

    @classmethod
    def closed(cls, extenders: int, limit: int = DEFAULT_LIMIT) -> Self:
        """How a cycle starts."""
        return cls((Breaker(limit),) * extenders)

    def after(self, answers: Sequence[Sequence[ExtenderOutcome] | None]) -> Self:
        """After one more round: what `ExtenderClient.ask` returned, requests in the plan's order."""
        asked = [outcomes for outcomes in answers if outcomes is not None]
        return type(self)(
            tuple(
                breaker.after(outcomes[place] for outcomes in asked)
                for place, breaker in enumerate(self.each)
            )
        )
