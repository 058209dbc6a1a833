"""The faults of a campaign are a pure function of seed and number, and never leave nothing."""

from __future__ import annotations

from itertools import combinations

import pytest

from tests.campaign.faults import LEASE_SECONDS, MOST_AT_ONCE, WEBS, Fault, Kind, Target, sequence


@pytest.fixture(scope="module")
def thousand() -> tuple[Fault, ...]:
    return sequence(7, 1000)


def overlap(one: Fault, other: Fault) -> bool:
    return one.at < other.end and other.at < one.end


def test_a_seed_repeats_its_faults_exactly() -> None:
    assert sequence(7, 200) == sequence(7, 200)


def test_another_seed_gives_others() -> None:
    assert sequence(7, 40) != sequence(8, 40)


@pytest.mark.parametrize("count", [1, 10, 40, 250])
def test_there_are_as_many_as_were_asked_for(count: int) -> None:
    assert [fault.number for fault in sequence(1, count)] == list(range(1, count + 1))


def test_every_kind_harms_every_target_that_it_can(thousand: tuple[Fault, ...]) -> None:
    done = {(fault.kind, fault.target) for fault in thousand}
    assert {kind for kind, _ in done} == set(Kind)
    assert all((Kind.KILL, target) in done and (Kind.SWALLOW, target) in done for target in Target)


def test_a_long_stop_outlasts_the_lease_and_costs_no_time(thousand: tuple[Fault, ...]) -> None:
    long = [fault for fault in thousand if fault.long]
    assert {fault.target for fault in long} == {Target.WORKER_1, Target.WORKER_2}
    assert all(fault.seconds > LEASE_SECONDS for fault in long)
    assert all(not overlap(*pair) for pair in combinations(long, 2))


def test_a_thousand_take_less_than_three_seconds_each(thousand: tuple[Fault, ...]) -> None:
    assert max(fault.end for fault in thousand) < 3.0 * len(thousand)


def test_the_forty_of_ci_have_a_long_stop_too() -> None:
    assert any(fault.long for fault in sequence(1, 40))


def test_a_target_has_one_fault_at_a_time(thousand: tuple[Fault, ...]) -> None:
    for target in Target:
        mine = [fault for fault in thousand if fault.target == target]
        assert not [pair for pair in combinations(mine, 2) if overlap(*pair)]


def test_one_web_process_is_always_left_alone(thousand: tuple[Fault, ...]) -> None:
    harmed = [fault for fault in thousand if fault.target in WEBS]
    assert not [pair for pair in combinations(harmed, 2) if overlap(*pair)]


def test_only_a_few_short_ones_last_at_a_time(thousand: tuple[Fault, ...]) -> None:
    short = [fault for fault in thousand if not fault.long]
    for fault in short:
        assert sum(overlap(fault, other) for other in short if other.at <= fault.at) <= MOST_AT_ONCE
