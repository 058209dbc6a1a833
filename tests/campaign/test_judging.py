"""Each count that must be 0 can become something else, and what only looks like a violation is none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.campaign.accounts import (
    CALLER,
    WORKER,
    Asked,
    Call,
    Campaign,
    Clicked,
    Database,
    Done,
    Evicted,
    Line,
    Notes,
    Row,
    Sent,
    Signals,
    Span,
)
from tests.campaign.judging import Run, Verdict, is_settled, judge, recovery, table

POD = "uid-1"


def ours(*, end: str = "evicted") -> Campaign:
    """Decision 1 of ours: approved at 10, claimed at 11, tested at 11.5, called at 12, evicted at 13."""
    kinds = [
        ("asked", 1.0),
        ("approved", 10.0),
        ("queued", 10.0),
        ("eviction_tried", 11.0),
        ("accepted", 12.5),
    ]
    lines = [Line(1, kind, at, by="ada", attempt=int(kind == "eviction_tried")) for kind, at in kinds]
    return Campaign(
        database=Database(
            rows=(Row(1, POD, ours=True, verdict="allowed", eviction=end, updated_at=13.0),),
            lines=(*lines, Line(1, end, 13.0)),
            read_at=100.0,
        ),
        audit=(Call(POD, WORKER, 12.0, 201),),
        notes=Notes(sent=(Sent(1, 1, 11.5),), clicked=(Clicked("approved", "ada", 9.9, 10.1, 1),)),
    )


def callers() -> Campaign:
    """Decision 1 of a caller: approved at 10, told at 20, the yes heard at 20.1, evicted at 20.5."""
    kinds = [("asked", 1.0), ("approved", 10.0), ("told", 20.0), ("evicted", 25.0)]
    return Campaign(
        database=Database(
            rows=(Row(1, POD, ours=False, verdict="allowed", eviction="evicted", updated_at=25.0),),
            lines=tuple(Line(1, kind, at, by="ada") for kind, at in kinds),
            read_at=100.0,
        ),
        audit=(Call(POD, CALLER, 20.5, 201),),
        notes=Notes(asked=(Asked(POD, 19.9, 20.1, "yes", 1),), evicted=(Evicted(POD, 20.4, because=0),)),
    )


def with_lines(campaign: Campaign, *lines: Line, **row: Any) -> Campaign:
    """With more lines in the timeline, in the order of their commits; and the row changed."""
    database = campaign.database
    ordered = tuple(sorted((*database.lines, *lines), key=lambda line: line.committed))
    rows = tuple(replace(each, **row) for each in database.rows)
    return replace(campaign, database=replace(database, lines=ordered, rows=rows))


def without_lines(campaign: Campaign, *kinds: str) -> Campaign:
    lines = tuple(line for line in campaign.database.lines if line.kind not in kinds)
    return replace(campaign, database=replace(campaign.database, lines=lines))


def frozen(campaign: Campaign, start: float, end: float) -> Campaign:
    return replace(campaign, database=replace(campaign.database, freezes=(Span(start, end),)))


def counts(verdict: Verdict) -> dict[str, int]:
    return {name: len(found) for name, found in verdict.checks if found}


def test_an_eviction_that_was_allowed_is_no_violation() -> None:
    verdict = judge(ours())
    assert (counts(verdict), verdict.evictions_ours, verdict.in_flight, verdict.told_before) == ({}, 1, 0, 0)


def test_a_callers_eviction_after_its_yes_is_no_violation() -> None:
    verdict = judge(callers())
    assert (counts(verdict), verdict.evictions_callers, verdict.in_flight, verdict.told_before) == (
        {},
        1,
        0,
        0,
    )


# --- twice --------------------------------------------------------------------------------------------------


def test_a_pod_that_two_calls_evicted_is_counted() -> None:
    campaign = ours()
    twice = replace(campaign, audit=(*campaign.audit, Call(POD, WORKER, 12.2, 201)))
    assert counts(judge(twice)) == {"pods evicted twice": 1}


def test_a_second_call_that_was_refused_is_none() -> None:
    campaign = ours()
    refused = replace(campaign, audit=(*campaign.audit, Call(POD, WORKER, 12.2, 404)))
    assert judge(refused).failed == 0


# --- without an allowed decision ------------------------------------------------------------------------------


def test_an_eviction_of_ours_without_a_test_before_it_is_counted() -> None:
    campaign = ours()
    untested = replace(campaign, notes=replace(campaign.notes, sent=()))
    assert len(judge(untested).unallowed) == 1


def test_an_eviction_of_ours_that_was_taken_back_before_the_test_is_counted() -> None:
    assert len(judge(with_lines(ours(), Line(1, "taken_back", 11.2))).unallowed) == 1


def test_an_eviction_by_a_worker_whose_lease_had_run_out_is_counted() -> None:
    campaign = with_lines(
        ours(), Line(1, "lease_lost", 11.1, status="queued"), Line(1, "eviction_tried", 11.2, attempt=2)
    )
    assert len(judge(campaign).unallowed) == 1


def test_what_changed_while_the_call_was_in_flight_is_a_count_of_its_own() -> None:
    campaign = with_lines(ours(), Line(1, "lease_lost", 11.8, status="queued"))
    verdict = judge(campaign)
    assert (verdict.unallowed, verdict.in_flight) == ((), 1)


def test_a_callers_eviction_after_a_call_that_failed_is_counted() -> None:
    campaign = callers()
    notes = replace(campaign.notes, asked=(Asked(POD, 19.9, 20.1, "failed"),))
    verdict = judge(replace(campaign, notes=notes))
    assert (len(verdict.unallowed), verdict.failed_calls) == (1, 1)


def test_a_callers_eviction_after_a_no_is_counted() -> None:
    campaign = callers()
    notes = replace(campaign.notes, asked=(Asked(POD, 19.9, 20.1, "no", 1),))
    assert len(judge(replace(campaign, notes=notes)).unallowed) == 1


def test_a_yes_after_the_approval_was_taken_back_is_counted() -> None:
    assert len(judge(with_lines(callers(), Line(1, "taken_back", 15.0))).unallowed) == 1


def test_a_yes_that_was_never_committed_is_counted() -> None:
    assert len(judge(without_lines(callers(), "told")).unallowed) == 1


def test_a_yes_on_its_way_while_it_is_taken_back_is_a_count_of_its_own() -> None:
    verdict = judge(with_lines(callers(), Line(1, "taken_back", 20.05), verdict="denied", eviction="none"))
    assert (verdict.unallowed, verdict.told_before) == ((), 1)


def test_an_eviction_by_somebody_unknown_is_counted() -> None:
    campaign = ours()
    other = replace(campaign, audit=(Call("uid-2", "mallory", 12.0, 201),))
    assert "mallory" in judge(other).unallowed[0].what


# --- during a freeze ------------------------------------------------------------------------------------------


def test_an_eviction_of_ours_that_was_tested_in_a_freeze_is_counted() -> None:
    assert counts(judge(frozen(ours(), 11.0, 30.0))) == {"evictions during a freeze": 1}


def test_a_freeze_that_came_while_the_call_was_in_flight_is_a_count_of_its_own() -> None:
    verdict = judge(frozen(ours(), 11.7, 30.0))
    assert (counts(verdict), verdict.in_flight) == ({}, 1)


def test_a_yes_that_was_told_in_a_freeze_is_counted() -> None:
    assert counts(judge(frozen(callers(), 15.0, 30.0))) == {"evictions during a freeze": 1}


def test_a_freeze_that_came_after_the_yes_is_a_count_of_its_own() -> None:
    verdict = judge(frozen(callers(), 20.2, 30.0))
    assert (counts(verdict), verdict.in_flight) == ({}, 1)


def test_a_freeze_that_was_lifted_before_is_none() -> None:
    assert judge(frozen(ours(), 5.0, 11.4)).failed == 0


# --- lost -----------------------------------------------------------------------------------------------------


def test_a_decision_that_the_door_named_and_the_database_does_not_have_is_counted() -> None:
    campaign = ours()
    notes = replace(campaign.notes, asked=(Asked("uid-9", 1.0, 1.1, "no", 9),))
    assert "decision 9" in judge(replace(campaign, notes=notes)).lost[0].what


def test_an_approval_that_left_no_line_is_counted() -> None:
    campaign = ours()
    notes = replace(campaign.notes, clicked=(Clicked("approved", "ben", 9.9, 10.1, 1),))
    assert len(judge(replace(campaign, notes=notes)).lost) == 1


@pytest.mark.parametrize("kind", ["frozen", "lifted"])
def test_a_freeze_that_left_no_row_is_counted(kind: str) -> None:
    campaign = ours()
    notes = replace(campaign.notes, clicked=(Clicked(kind, "root", 50.0, 50.2),))
    assert len(judge(replace(campaign, notes=notes)).lost) == 1


def test_a_freeze_that_is_on_record_is_not_lost() -> None:
    campaign = frozen(ours(), 50.1, 60.1)
    clicks = (Clicked("frozen", "root", 50.0, 50.2), Clicked("lifted", "root", 60.0, 60.2))
    assert judge(replace(campaign, notes=replace(campaign.notes, clicked=clicks))).lost == ()


def test_a_verdict_that_its_timeline_does_not_have_is_counted() -> None:
    assert len(judge(without_lines(ours(), "approved")).lost) >= 1


def test_what_an_extender_denied_is_denied() -> None:
    row = Row(1, POD, ours=True, verdict="denied", eviction="none")
    lines = (Line(1, "asked", 1.0), Line(1, "extender_answered", 1.0, status="deny"))
    assert judge(Campaign(database=Database(rows=(row,), lines=lines))).lost == ()


def test_an_eviction_that_no_decision_shows_in_the_end_is_counted() -> None:
    assert len(judge(ours(end="failed")).lost) == 1


def test_an_eviction_that_the_audit_log_does_not_have_is_a_count_of_its_own() -> None:
    verdict = judge(replace(ours(), audit=()))
    assert (verdict.failed, verdict.unaudited, judge(ours()).unaudited) == (0, 1, 0)


def test_an_eviction_whose_lease_has_to_run_out_first_is_waited_for() -> None:
    evicting = with_lines(ours(), eviction="evicting", lease_until=110.0)
    assert (is_settled(ours()), is_settled(evicting)) == (True, False)


# --- stuck ----------------------------------------------------------------------------------------------------

WAITS = Row(1, POD, ours=True, verdict="pending", eviction="none", expires_at=120.0, updated_at=10.0)
ALLOWED = replace(WAITS, verdict="allowed", eviction="queued")


def stuck(row: Row, *, living: bool = True) -> int:
    pods = frozenset({POD} if living else ())
    return len(judge(Campaign(database=Database(rows=(row,), read_at=100.0), living=pods)).stuck)


@pytest.mark.parametrize(
    "row",
    [
        replace(WAITS, expires_at=60.0),
        replace(ALLOWED, expires_at=60.0),
        replace(ALLOWED, eviction="evicting", lease_until=60.0),
        replace(ALLOWED, eviction="blocked", not_before=60.0),
        replace(ALLOWED, eviction="none"),
        replace(ALLOWED, eviction="none", waits_for=99),
        replace(ALLOWED, eviction="delegated", expires_at=None),
    ],
)
def test_a_decision_whose_next_step_is_overdue_is_counted(row: Row) -> None:
    assert stuck(row) == 1


@pytest.mark.parametrize("eviction", ["queued", "blocked", "accepted", "in_background", "delegated"])
def test_a_decision_whose_pod_is_long_gone_is_counted(eviction: str) -> None:
    assert stuck(replace(ALLOWED, eviction=eviction, not_before=110.0), living=False) == 1


@pytest.mark.parametrize(
    "row",
    [
        WAITS,
        ALLOWED,
        replace(ALLOWED, eviction="evicting", lease_until=130.0),
        replace(ALLOWED, eviction="blocked", not_before=110.0),
        replace(ALLOWED, eviction="accepted", expires_at=60.0),
        replace(ALLOWED, eviction="evicted", expires_at=60.0),
        replace(WAITS, verdict="expired", expires_at=60.0),
    ],
)
def test_a_decision_that_something_will_move_is_none(row: Row) -> None:
    assert stuck(row) == 0


def test_a_cycle_that_runs_without_a_worker_is_counted() -> None:
    assert len(judge(Campaign(database=Database(cycles_running=((3, 5.0),), read_at=100.0))).stuck) == 1


# --- recovery -------------------------------------------------------------------------------------------------

FAULT = Done(1, "killed", "web-1", began=8.0, ended=10.0)
WORKS = Signals(web=(9.0, 11.0), worker=(12.0,), evictions=(9.5, 15.0, 90.0), answers=(13.0, 14.0))


def test_the_time_to_recover_is_until_the_last_part_works_again() -> None:
    assert recovery(FAULT, WORKS) == 5.0


@pytest.mark.parametrize("part", ["web", "worker", "evictions", "answers"])
def test_a_part_that_never_works_again_is_counted(part: str) -> None:
    verdict = judge(Campaign(faults=(FAULT,), signals=replace(WORKS, **{part: (9.0,)})))
    assert (verdict.longest, len(verdict.not_recovered), verdict.failed) == (None, 1, 1)
    assert f"{part}: never" in verdict.not_recovered[0].what


def test_a_recovery_that_takes_more_than_a_minute_is_counted() -> None:
    verdict = judge(Campaign(faults=(FAULT,), signals=replace(WORKS, evictions=(90.0,))))
    assert (verdict.longest, len(verdict.not_recovered)) == (80.0, 1)


def test_the_table_says_seed_date_and_every_count() -> None:
    text = table(judge(ours()), Run(seed=7, date="2026-11-30", minutes=3.0))
    assert "seed 7, 2026-11-30" in text
    assert all(f"| **{name}** | **0** |" in text for name, _ in judge(ours()).checks)
