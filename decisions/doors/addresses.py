"""Which addresses are doors, however they are spelled: a 404 in a door's place would be permission to evict."""

import re
from collections.abc import Iterable

# "POST http://deschedui/doors/evict HTTP/1.1", as one talks to a proxy; here it is a path like any other.
_ABSOLUTE = re.compile(r"https?:/+[^/]*", re.IGNORECASE)


def door(path: str) -> tuple[str, ...] | None:
    """The segments behind ``/doors``, in a decoded path; None where the address is no door."""
    plain = [part for part in _ABSOLUTE.sub("", path, count=1).split("/") if part not in {"", "."}]
    for parts in (tuple(_resolved(plain)), tuple(plain)):
        if parts and parts[0].lower() == "doors":
            return parts[1:]
    return None


def _resolved(parts: Iterable[str]) -> list[str]:
    kept: list[str] = []
    for part in parts:
        if part == "..":
            del kept[-1:]
        else:
            kept.append(part)
    return kept
