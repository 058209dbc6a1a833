"""The timeline: one line for each change, written in the transaction of the change. Append-only."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.transaction import Atomic, atomic

from decisions.models import AuditEntry, Cluster, DecisionEvent
from decisions.services.actors import SYSTEM, Actor

REASON_CHARS = 4096


def transaction() -> Atomic:
    """The transaction of a change, with its entries in the record: what writes both opens this one."""
    return atomic()


def append(
    decision_id: int,
    kind: str,
    *,
    at: datetime,
    by: Actor = SYSTEM,
    reason: str = "",
    detail: Mapping[str, Any] | None = None,
) -> DecisionEvent:
    """Add a line to a decision's timeline. ``reason`` is bounded, ``detail`` must be JSON."""
    return DecisionEvent.objects.create(
        decision_id=decision_id,
        kind=kind,
        at=at,
        by=by.user,
        by_name=by.name[:200],
        reason=reason[:REASON_CHARS],
        detail=dict(detail or {}),
    )


def audit(
    what: str,
    *,
    at: datetime,
    by: Actor,
    cluster: Cluster | None = None,
    subject: str = "",
    detail: Mapping[str, Any] | None = None,
) -> AuditEntry:
    """Record a change that is not a decision's: arming, pausing, freezes, settings, roles, tokens, policies."""
    return AuditEntry.objects.create(
        at=at, by=by.name[:200], what=what, cluster=cluster, subject=subject[:300], detail=dict(detail or {})
    )
