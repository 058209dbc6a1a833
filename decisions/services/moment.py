"""An approval belongs to its moment: what was shown at the approval, against what is read now. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

Changes = dict[str, tuple[str, str]]
READY = "ready replicas"


@dataclass(frozen=True)
class Now:
    """What is read directly before the eviction.

    Args:
        ready: replicas of the pod's owner; None where they cannot be counted, and ``why_unknown`` says why.
        moved: siblings whose own decision took them away since then: moved, not lost.
        policy: the version that was shown and the one that runs, where they differ for this pod.
        policy_id: of the one that runs.
        protections: what the policy's evictor has against it now.
    """

    ready: int | None = None
    desired: int | None = None
    why_unknown: str = ""
    moved: int = 0
    policy: tuple[str, str] | None = None
    policy_id: int | None = None
    protections: tuple[str, ...] = ()


def differences(then: Mapping[str, Any], now: Now) -> Changes:
    """What a reviewer would have to see again: {name: (as shown, as it is now)}; empty: the approval holds."""
    changes: Changes = {}
    if lost := lost_replicas(then, now):
        changes[READY] = lost
    if now.policy:
        changes["policy"] = now.policy
    if now.protections:
        changes["protection"] = ("", "; ".join(now.protections))
    return changes


def lost_replicas(then: Mapping[str, Any], now: Now) -> tuple[str, str] | None:
    """Fewer ready replicas than at the approval, those that were moved counted as there."""
    shown = then.get("ready")
    if shown is None:
        return None
    if now.ready is None:
        return (_of(shown, then.get("desired")), now.why_unknown) if now.why_unknown else None
    if now.ready + now.moved >= shown:
        return None
    moved = f", {now.moved} moved by their own decision" if now.moved else ""
    return _of(shown, then.get("desired")), f"{_of(now.ready, now.desired)}{moved}"


def shown_again(forecast: Mapping[str, Any], now: Now, at: datetime) -> dict[str, Any]:
    """The forecast with what is read now, for whoever looks again: their yes is to this, not to what was before.

    Without it every further approval would fail on the same difference until a cycle nominates the pod anew.
    """
    fresh = {**forecast, "read_at": at.isoformat()}
    if now.policy:
        fresh["policy"] = now.policy_id
    shown = forecast.get("owner_ready", forecast.get("ready"))
    if now.ready is None or shown is None:
        return fresh
    for name in ("ready", "ready_after"):
        if forecast.get(name) is not None:
            fresh[name] = max(0, forecast[name] - (shown - now.ready))
    return fresh | {"owner_ready": now.ready, "owner_desired": now.desired}


def sentence(changes: Changes) -> str:
    """The differences as one sentence: ``ready replicas: 3 of 3 before, 2 of 3 now``."""
    return "; ".join(
        f"{name}: {f'{before} before, {after} now' if before else after}"
        for name, (before, after) in changes.items()
    )


def _of(ready: int, desired: int | None) -> str:
    return f"{ready}" if desired is None else f"{ready} of {desired}"
