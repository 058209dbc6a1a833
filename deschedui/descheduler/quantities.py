"""Kubernetes quantities: exact amounts, as whole billionths.

Rules: the descheduler's semantics, section 3.7. An amount is an ``int`` of nano units, so sums and
comparisons are exact; what is finer than 1e-9 is rounded away from zero, as Kubernetes does.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

NANO: Final = 1_000_000_000
"""One whole unit."""

_QUANTITY: Final = re.compile(r"([+-]?)(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4}|[KMGTPE]i|[numkMGTPE]?)", re.ASCII)
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_LONGEST_TEXT: Final = 64
_LARGEST_EXPONENT: Final = 30


class QuantityError(ValueError):
    """The text is no quantity; the message quotes it."""


@lru_cache(maxsize=65536)
def parse(text: str | int | float) -> int:
    """The amount in nano units.

    Raises:
        QuantityError: not a quantity, or one that is absurdly long or large.
    """
    if isinstance(text, int):
        return text * NANO
    written = str(text)
    match = _QUANTITY.fullmatch(written) if len(written) <= _LONGEST_TEXT else None
    if match is None:
        raise QuantityError(f"{written[:_LONGEST_TEXT]!r} is not a quantity (examples: 500m, 2, 1.5Gi)")
    sign, number, suffix = match.groups()
    whole, _, fraction = number.partition(".")
    exponent, factor = _scale(suffix, written)
    nanos = _shifted(int(whole + fraction) * factor, exponent + 9 - len(fraction))
    return -nanos if sign == "-" else nanos


def value(nanos: int) -> int:
    """Whole units, rounded away from zero (``1500m`` is 2)."""
    return _away_from_zero(nanos, NANO)


def milli(nanos: int) -> int:
    """Thousandths, rounded away from zero."""
    return _away_from_zero(nanos, NANO // 1000)


def show(nanos: int, resource: str = "cpu") -> str:
    """The amount for people: ``250m`` and ``1.5`` of a CPU, ``512Mi`` and ``1.5Gi`` of memory and storage."""
    if resource in {"memory", "ephemeral-storage", "storage"} or resource.startswith("hugepages-"):
        return _show_bytes(value(nanos))
    thousandths = milli(nanos)
    if thousandths % 1000 == 0:
        return str(thousandths // 1000)
    return f"{thousandths}m" if abs(thousandths) < 1000 else f"{thousandths / 1000:.3f}".rstrip("0")


def _show_bytes(size: int) -> str:
    for suffix, power in (("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10)):
        if abs(size) >= 1 << power:
            return f"{size / (1 << power):.1f}".removesuffix(".0") + suffix
    return str(size)


def _scale(suffix: str, written: str) -> tuple[int, int]:
    """The suffix as a power of ten and a factor."""
    if suffix in _BINARY:
        return 0, 1 << _BINARY[suffix]
    exponent = _DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:])
    if abs(exponent) > _LARGEST_EXPONENT:
        raise QuantityError(f"{written!r} is out of range")
    return exponent, 1


def _shifted(number: int, exponent: int) -> int:
    """``number`` times that power of ten, rounded up."""
    if exponent >= 0:
        return number * int(10**exponent)
    return -(-number // int(10**-exponent))


def _away_from_zero(nanos: int, unit: int) -> int:
    return -(-nanos // unit) if nanos >= 0 else nanos // unit
