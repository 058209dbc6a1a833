"""Quantities are exact, and rounded away from zero as Kubernetes rounds them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deschedui.descheduler.quantities import QuantityError, milli, parse, show, value


@pytest.mark.parametrize(
    ("text", "nanos"),
    [
        ("1", 10**9),
        ("500m", 5 * 10**8),
        ("100u", 10**5),
        ("1.5Gi", 3 * 2**29 * 10**9),
        ("1e3", 10**12),
        ("12E2", 12 * 10**11),
        ("1E", 10**27),
        ("-1500m", -15 * 10**8),
        (".5", 5 * 10**8),
        ("0.1n", 1),
        (3, 3 * 10**9),
    ],
)
def test_a_quantity_is_read(text: str | int, nanos: int) -> None:
    assert parse(text) == nanos


@pytest.mark.parametrize("text", ["", "1Q", "Gi", "1 Gi", "1e99", "9" * 99, "--1", "१"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(QuantityError):
        parse(text)


def test_rounding_goes_away_from_zero() -> None:
    assert (value(parse("1500m")), value(parse("-1500m")), milli(parse("100u"))) == (2, -2, 1)


@given(st.integers(-(10**15), 10**15))
def test_milli_amounts_come_back_as_they_were(thousandths: int) -> None:
    assert milli(parse(f"{thousandths}m")) == thousandths


@pytest.mark.parametrize(
    ("text", "resource", "shown"),
    [
        ("250m", "cpu", "250m"),
        ("1500m", "cpu", "1.5"),
        ("2", "cpu", "2"),
        ("512Mi", "memory", "512Mi"),
        ("1536Mi", "memory", "1.5Gi"),
        ("500", "memory", "500"),
        ("1", "example.com/gpu", "1"),
    ],
)
def test_amounts_are_shown_as_people_write_them(text: str, resource: str, shown: str) -> None:
    assert show(parse(text), resource) == shown
