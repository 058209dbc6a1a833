"""Go duration text."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deschedui.extender.durations import format_go_duration, parse_go_duration

READ = {
    "5s": 5,
    "1m30s": 90,
    "500ms": 0.5,
    "1.5s": 1.5,
    "1h": 3600,
    ".5s": 0.5,
    "5.s": 5,
    "+2s": 2,
    "1h2m3.5s": 3723.5,
}
SMALL = {"250us": 0.00025, "250µs": 0.00025, "250μs": 0.00025, "1ns": 0.000001}


@pytest.mark.parametrize(("text", "seconds"), (READ | SMALL).items())
def test_text_that_go_reads_is_read(text: str, seconds: float) -> None:
    assert parse_go_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text", ["", "5", "1d", "5 s", " 5s", "5s ", "1H", "s", ".s", "5s3", "1e3s", "--5s", "٥s"]
)
def test_text_that_go_refuses_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="such as 5s") as refused:
        parse_go_duration(text)
    assert text in str(refused.value)


@pytest.mark.parametrize("text", ["0", "0s", "-5s", "-0s", "0h0m"])
def test_zero_and_less_are_durations_but_no_timeouts(text: str) -> None:
    with pytest.raises(ValueError, match="httpTimeout must be more than zero"):
        parse_go_duration(text)
    assert parse_go_duration(text, positive=False) <= timedelta(0)


@pytest.mark.parametrize("value", [5, 5.0, 10**400, float("nan"), True, None, ["5s"], {"seconds": 5}])
def test_what_is_not_text_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"^httpTimeout .*such as 5s"):
        parse_go_duration(value)


def test_old_nanoseconds_are_explained() -> None:
    with pytest.raises(ValueError, match='as nanoseconds, which old configurations counted, that is "5s"'):
        parse_go_duration(5_000_000_000)


@pytest.mark.parametrize("text", ["2562048h", "9223372037s", "9" * 99 + "h", "1" * 500 + "s"])
def test_what_go_cannot_hold_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"longer than a Go duration|too long"):
        parse_go_duration(text)


@given(st.timedeltas(min_value=timedelta(microseconds=1), max_value=timedelta(days=36_500)))
def test_every_duration_survives_being_written(duration: timedelta) -> None:
    assert parse_go_duration(format_go_duration(duration)) == duration


@pytest.mark.parametrize("text", ["1h30m", "1.5s", "500ms", "5s", "250us", "0s", "-2s"])
def test_durations_are_written_the_short_way(text: str) -> None:
    assert format_go_duration(parse_go_duration(text, positive=False)) == text
