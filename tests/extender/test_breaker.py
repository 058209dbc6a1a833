"""The circuit breaker of a cycle."""

import pytest

from deschedui.extender.breaker import Breaker, Breakers
from deschedui.extender.outcomes import Effect, ExtenderOutcome, FailureMode
from tests.extender.builders import outcome

YES = outcome()
FAILED = outcome(Effect.DENY, FailureMode.TIMEOUT)


def test_five_failures_in_a_row_open_it() -> None:
    assert not Breaker().after([FAILED] * 4).is_open
    assert Breaker().after([FAILED] * 5).is_open


def test_an_answer_starts_the_count_again() -> None:
    assert not Breaker().after([*[FAILED] * 4, YES, *[FAILED] * 4]).is_open


def test_the_count_goes_on_from_round_to_round() -> None:
    assert Breaker().after([YES, *[FAILED] * 3]).after([FAILED] * 2).is_open


def test_once_open_it_stays_open() -> None:
    assert Breaker(limit=1).after([FAILED, YES, YES]).is_open


@pytest.mark.parametrize("mode", [mode for mode in FailureMode if mode is not FailureMode.CIRCUIT_OPEN])
def test_every_kind_of_failure_counts(mode: FailureMode) -> None:
    assert Breaker(limit=1).after([outcome(Effect.DENY, mode)]).is_open


def test_what_was_not_asked_does_not_count() -> None:
    assert Breaker().after([outcome(Effect.DENY, FailureMode.CIRCUIT_OPEN)] * 9).in_a_row == 0


def test_zero_never_opens() -> None:
    assert not Breaker(limit=0).after([FAILED] * 100).is_open


def test_each_extender_has_its_own() -> None:
    answers: list[tuple[ExtenderOutcome, ...] | None] = [(YES, FAILED), None, (YES, FAILED)]
    breakers = Breakers.closed(2, limit=2).after(answers)
    assert [each.is_open for each in breakers.each] == [False, True]


def test_it_says_what_it_saw() -> None:
    assert Breaker().after([FAILED] * 6).observation().detail == "5 calls in a row failed in this cycle"
