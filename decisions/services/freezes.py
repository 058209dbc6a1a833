"""Freezes: no eviction leaves a cluster, or any cluster, until it is lifted."""

from datetime import datetime

from django.db import IntegrityError

from decisions.models import Cluster, Decision, Eviction, Freeze
from decisions.services import timeline
from decisions.services.actors import Actor
from decisions.services.errors import Invalid


def active(cluster_id: int) -> Freeze | None:
    """The freeze that holds this cluster now, its own before one of everything."""
    # Chosen here: there are a handful at most, and databases do not agree on where NULL stands.
    holding = [row for row in Freeze.objects.filter(lifted_at=None) if row.cluster_id in {cluster_id, None}]
    return max(holding, key=lambda row: row.cluster_id or 0, default=None)


def freeze(*, cluster: Cluster | None, by: Actor, reason: str, now: datetime) -> Freeze:
    """Freeze a cluster (None: all). Freezing what is frozen gives the freeze that is there.

    The row says how many calls were already in flight and how many callers had heard a yes: neither can be
    called back.

    Raises:
        Invalid: no reason.
    """
    if not reason.strip():
        raise Invalid("Say why: everybody who waits will read it.", "reason")
    open_ones = Decision.objects.filter(cluster=cluster) if cluster else Decision.objects.all()
    try:
        with timeline.transaction():
            row = Freeze.objects.create(
                cluster=cluster,
                reason=reason.strip()[:500],
                set_at=now,
                set_by=by.name[:200],
                calls_in_flight=open_ones.filter(eviction=Eviction.EVICTING).count(),
                callers_told=open_ones.filter(eviction=Eviction.DELEGATED).count(),
            )
            timeline.audit("frozen", at=now, by=by, cluster=cluster, subject=reason)
    except IntegrityError:
        there = Freeze.objects.filter(cluster=cluster, lifted_at=None).first()
        return there or freeze(cluster=cluster, by=by, reason=reason, now=now)
    return row


def lift(*, freeze_id: int, by: Actor, now: datetime) -> bool:
    """Lift a freeze; False if somebody else already did."""
    with timeline.transaction():
        won = Freeze.objects.filter(pk=freeze_id, lifted_at=None).update(
            lifted_at=now, lifted_by=by.name[:200]
        )
        if won:
            row = Freeze.objects.get(pk=freeze_id)
            timeline.audit("freeze lifted", at=now, by=by, cluster=row.cluster, subject=row.reason)
    return bool(won)
