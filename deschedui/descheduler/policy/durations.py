"""What Go says about a duration text that it cannot read."""

import re
from typing import Final

_PART: Final = re.compile(r"([0-9]*)(\.[0-9]*)?([^.0-9]*)")
_UNITS: Final = frozenset({"ns", "us", "µs", "μs", "ms", "s", "m", "h"})


def go_duration_problem(text: str) -> str:
    """The text of Go's own refusal. Only for texts that are no duration."""
    quoted = f'"{text}"'
    rest = text.removeprefix("-") if text.startswith("-") else text.removeprefix("+")
    while rest:
        match = _PART.match(rest)
        whole, fraction, unit = match.groups() if match else ("", None, "")
        if not whole and len(fraction or "") < 2:
            break
        if not unit:
            return f"time: missing unit in duration {quoted}"
        if unit not in _UNITS:
            return f'time: unknown unit "{unit}" in duration {quoted}'
        rest = rest[match.end() :] if match else ""
    return f"time: invalid duration {quoted}"
