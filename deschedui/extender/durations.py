"""Go duration text (`time.ParseDuration`), as Kubernetes reads it in a policy file."""

import re
from datetime import timedelta
from typing import Final

EXAMPLE: Final = "write a Go duration such as 5s, 500ms or 1m30s"

_UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # U+00B5, micro sign
    "μs": 1_000,  # U+03BC, Greek mu: Go takes both
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_PART: Final = re.compile(r"(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?(?P<unit>[^0-9.]*)")
_MOST: Final = 2**63 - 1  # nanoseconds in Go's int64
_LONGEST_TEXT: Final = 100


def parse_go_duration(value: object, *, field: str = "httpTimeout", positive: bool = True) -> timedelta:
    """Read Go duration text as Go does, microseconds being the finest that is kept (rounded up).

    Refuses with a `ValueError` that names `field`, the bad value and an example: anything but text
    (Kubernetes wants a JSON string), a number without a unit, units Go lacks (`1d`), spaces, the empty
    text, what Go's int64 cannot hold; and zero and negatives unless `positive` is false.
    """
    text = value if isinstance(value, str) else None
    if text is None:
        raise ValueError(_not_text(value, field))
    nanoseconds = _nanoseconds(text, field)
    if positive and nanoseconds <= 0:
        raise ValueError(f'{field} must be more than zero, got "{text}": {EXAMPLE}')
    return timedelta(microseconds=-(-nanoseconds // 1_000))


def format_go_duration(duration: timedelta) -> str:
    """The shortest text that Go reads back as the same duration: `1h30m`, `1.5s`, `500ms`."""
    micros = duration // timedelta(microseconds=1)
    sign, micros = ("-", -micros) if micros < 0 else ("", micros)
    if micros == 0:
        return "0s"
    if micros < 1_000_000:
        return f"{sign}{_decimal(micros, 1_000)}ms" if micros >= 1_000 else f"{sign}{micros}us"
    hours, rest = divmod(micros, 3_600_000_000)
    minutes, rest = divmod(rest, 60_000_000)
    parts = (f"{hours}h" if hours else "", f"{minutes}m" if minutes else "")
    return sign + "".join(parts) + (f"{_decimal(rest, 1_000_000)}s" if rest else "")


def _decimal(amount: int, unit: int) -> str:
    whole, rest = divmod(amount, unit)
    fraction = str(rest).rjust(len(str(unit)) - 1, "0").rstrip("0")
    return f"{whole}.{fraction}" if fraction else str(whole)


def _not_text(value: object, field: str) -> str:
    if value is None:
        return f"{field} is required: {EXAMPLE}"
    if isinstance(value, bool):
        return f"{field} must be text, got {str(value).lower()}: {EXAMPLE}"
    if isinstance(value, int | float):
        return f"{field} must be text with a unit, got the number {_number(value)}: {EXAMPLE}"
    return f"{field} must be text, got {type(value).__name__}: {EXAMPLE}"


def _number(value: float) -> str:
    """The number, bounded; old scheduler configurations counted nanoseconds: say what it would be now."""
    if not -_MOST <= value <= _MOST:
        return "that is far too large"
    if not isinstance(value, int) or value < 1_000_000:
        return str(value)
    meant = format_go_duration(timedelta(microseconds=value // 1_000))
    return f'{value} (as nanoseconds, which old configurations counted, that is "{meant}")'


def _nanoseconds(text: str, field: str) -> int:
    if len(text) > _LONGEST_TEXT:
        raise ValueError(f'{field} "{text[:_LONGEST_TEXT]}…" is too long: {EXAMPLE}')
    sign, rest = (-1, text[1:]) if text[:1] == "-" else (1, text.removeprefix("+"))
    if rest == "0":
        return 0
    total = sum(_part(match, text, field) for match in _parts(rest, text, field))
    if total > _MOST:
        raise ValueError(f'{field} "{text}" is longer than a Go duration can be: {EXAMPLE}')
    return sign * total


def _parts(rest: str, text: str, field: str) -> list[re.Match[str]]:
    found = [match for match in _PART.finditer(rest) if match[0]]
    if not found or "".join(match[0] for match in found) != rest:
        raise ValueError(f'{field} "{text}" is not a duration: {EXAMPLE}')
    return found


def _part(match: re.Match[str], text: str, field: str) -> int:
    whole, fraction, unit = match["whole"], match["fraction"] or "", match["unit"]
    if not whole and not fraction:
        raise ValueError(f'{field} "{text}" is not a duration: {EXAMPLE}')
    if not unit:
        raise ValueError(f'{field} "{text}" has no unit after {match[0]}: {EXAMPLE}')
    if unit not in _UNITS:
        raise ValueError(f'{field} "{text}": Go has no unit "{unit}", only h, m, s, ms, us and ns: {EXAMPLE}')
    scale = _UNITS[unit]
    return int(whole or "0") * scale + (int(fraction) * scale // 10 ** len(fraction) if fraction else 0)
