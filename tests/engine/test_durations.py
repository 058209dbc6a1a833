"""Durations as kubectl, as Go, and to the second."""

from __future__ import annotations

from datetime import timedelta

import pytest

from deschedui.descheduler.durations import against, exact, golang, human, limit


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-5, "0s"),
        (119, "119s"),
        (330, "5m30s"),
        (600, "10m"),
        (3 * 3600, "3h"),
        (5 * 3600 + 60, "5h1m"),
        (26 * 3600 + 59, "26h"),
        (76 * 3600, "3d4h"),
        (90 * 86400, "90d"),
        (800 * 86400, "2y70d"),
        (4000 * 86400, "10y"),
    ],
)
def test_an_age_is_written_as_kubectl_writes_it(seconds: int, shown: str) -> None:
    assert human(timedelta(seconds=seconds)) == shown


@pytest.mark.parametrize(
    ("span", "shown"),
    [
        (timedelta(minutes=5), "5m0s"),
        (timedelta(hours=1, minutes=30), "1h30m0s"),
        (timedelta(seconds=1.5), "1.5s"),
        (timedelta(milliseconds=500), "500ms"),
        (timedelta(microseconds=7), "7µs"),
        (timedelta(seconds=-5), "-5s"),
        (timedelta(0), "0s"),
    ],
)
def test_a_duration_is_written_as_go_writes_it(span: timedelta, shown: str) -> None:
    assert golang(span) == shown


def test_two_spans_that_look_the_same_are_told_to_the_second() -> None:
    assert against(timedelta(hours=24, seconds=1), timedelta(hours=24)) == ("24h1s", "24h")


def test_a_limit_is_never_rounded() -> None:
    assert (limit(timedelta(days=7)), limit(timedelta(seconds=86399))) == ("7d", "23h59m59s")


def test_zero_is_said_too() -> None:
    assert exact(timedelta(0)) == "0s"


def test_a_week_and_some_minutes_stays_in_days() -> None:
    assert against(timedelta(days=7, minutes=10), timedelta(days=7)) == ("7d10m", "7d")
