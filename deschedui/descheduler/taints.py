"""Taints and tolerations (the descheduler's semantics, section 3.9)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from .objects import Taint, Toleration

NO_SCHEDULE: Final = "NoSchedule"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
NO_EXECUTE: Final = "NoExecute"
HARD: Final = frozenset({NO_SCHEDULE, NO_EXECUTE})
"""Effects that keep a pod off a node."""

_SHOWN: Final = 5

# Kubernetes compares only numbers that are written in the one canonical way.
_CANONICAL_INTEGER: Final = re.compile(r"-?[1-9][0-9]{0,18}|0", re.ASCII)


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether this toleration puts up with this taint."""
    if toleration.effect not in {"", taint.effect} or toleration.key not in {"", taint.key}:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        case "Gt" | "Lt":
            return _compares(toleration, taint)
    return False


def untolerated(
    tolerations: Sequence[Toleration], taints: Iterable[Taint], effects: Collection[str] = HARD
) -> tuple[Taint, ...]:
    """The taints of these effects that no toleration puts up with."""
    return tuple(
        taint
        for taint in taints
        if taint.effect in effects and not any(tolerates(item, taint) for item in tolerations)
    )


def show(taint: Taint) -> str:
    """The taint as kubectl writes it: ``dedicated=gpu:NoSchedule``."""
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def show_all(taints: Iterable[Taint]) -> str:
    """``taint a:NoSchedule`` or ``taints a:NoSchedule, b:NoSchedule``."""
    shown = [show(taint) for taint in taints]
    rest = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return f"{'taint' if len(shown) == 1 else 'taints'} {', '.join(shown[:_SHOWN])}{rest}"


def _compares(toleration: Toleration, taint: Taint) -> bool:
    have, bound = _integer(taint.value), _integer(toleration.value)
    if have is None or bound is None:
        return False
    return have > bound if toleration.operator == "Gt" else have < bound


def _integer(text: str) -> int | None:
    if not _CANONICAL_INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None
