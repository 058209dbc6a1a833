"""How long, in words: as kubectl writes ages, and as Go writes durations."""

from __future__ import annotations

import re
from datetime import timedelta

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_YEAR = 365 * _DAY
_UNITS = {"s": 1, "m": _MINUTE, "h": _HOUR, "d": _DAY, "y": _YEAR}


def human(span: timedelta) -> str:
    """The span as kubectl writes an age: ``45s``, ``5m30s``, ``26h``, ``3d4h``, ``90d``."""
    seconds = int(span.total_seconds())
    if seconds < 0:
        return "0s"
    for below, big, big_unit, small, small_unit in (
        (2 * _MINUTE, 1, "s", 0, ""),
        (10 * _MINUTE, _MINUTE, "m", 1, "s"),
        (3 * _HOUR, _MINUTE, "m", 0, ""),
        (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
        (48 * _HOUR, _HOUR, "h", 0, ""),
        (8 * _DAY, _DAY, "d", _HOUR, "h"),
        (2 * _YEAR, _DAY, "d", 0, ""),
        (8 * _YEAR, _YEAR, "y", _DAY, "d"),
    ):
        if seconds < below:
            rest = seconds % big // small if small else 0
            return f"{seconds // big}{big_unit}" + (f"{rest}{small_unit}" if rest else "")
    return f"{seconds // _YEAR}y"


def exact(span: timedelta) -> str:
    """The span to the second, without parts that are zero: ``7d10m``, ``24h1s``, ``1h30m``, ``0s``.

    Days begin where kubectl begins with them, at 48 hours.
    """
    days, rest = divmod(int(span.total_seconds()), _DAY)
    if days < 2:
        days, rest = 0, rest + days * _DAY
    hours, rest = divmod(rest, _HOUR)
    parts = ((days, "d"), (hours, "h"), (rest // _MINUTE, "m"), (rest % _MINUTE, "s"))
    return "".join(f"{count}{unit}" for count, unit in parts if count) or "0s"


def limit(span: timedelta) -> str:
    """A span that somebody chose: as kubectl writes it where that loses nothing, else to the second."""
    short = human(span)
    parts = re.findall(r"(\d+)([smhdy])", short)
    told = sum(int(count) * _UNITS[unit] for count, unit in parts)
    return short if told == int(span.total_seconds()) else exact(span)


def against(span: timedelta, bound: timedelta) -> tuple[str, str]:
    """A span and the limit it is held against; the span to the second where both would look the same."""
    short = human(span)
    return (exact(span) if short in {limit(bound), human(bound)} else short), limit(bound)


def golang(span: timedelta) -> str:
    """The span as Go prints a duration: ``5m0s``, ``1h30m0s``, ``1.5s``, ``500ms``, ``-5s``, ``0s``."""
    micros = span // timedelta(microseconds=1)
    if micros < 0:
        return "-" + golang(-span)
    if micros < 1_000_000:
        return _golang_below_a_second(micros)
    minutes, rest = divmod(micros, 60_000_000)
    text = f"{_decimal(rest, 1_000_000)}s"
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes}m{text}"
    return f"{minutes}m{text}" if minutes else text


def _golang_below_a_second(micros: int) -> str:
    if micros == 0:
        return "0s"
    return f"{micros}µs" if micros < 1000 else f"{_decimal(micros, 1000)}ms"


def _decimal(amount: int, unit: int) -> str:
    whole, rest = divmod(amount, unit)
    digits = str(rest).rjust(len(str(unit)) - 1, "0").rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)
