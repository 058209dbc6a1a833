"""Whether this installation is the one that works on a cluster, as services, doors and pages read it.

A Lease in the cluster holds an installation's id and a counter that is also in the database. Whoever restores or
copies the database gets neither the id nor, in the Lease, an older counter. :mod:`decisions.services.installation`
writes all of it; here is only what a condition or a sentence needs.
"""

import hashlib
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db.models import Q
from django.db.models.functions import Now

from decisions.models import Cluster

LEASE: Final = "deschedui"
EVERY: Final = timedelta(seconds=10)
"""A heartbeat of each cluster; with a tick that comes late still one in 15 s."""
FRESH: Final = timedelta(seconds=25)
"""So old a check may be on which a claim, a call or a yes at a door rests: 15 s and one heartbeat."""
CONFIRMATION_HOLDS: Final = timedelta(minutes=10)
"""An admin's word is meant for now: one that comes back with a restored database confirms nothing."""


def mark() -> str:
    """This installation, as the database may know it: a digest of its id, from which the id does not follow."""
    return hashlib.sha256(settings.INSTALLATION_ID.encode()).hexdigest()[:16]


def in_order(now: datetime | Now, prefix: str = "") -> Q:
    """Clusters on which this installation may act: not frozen by itself, and its Lease ours within the last 25 s.

    Args:
        now: the database's time, or its expression: another clock may be off.
        prefix: of the cluster's columns, where the query is about rows that refer to it.
    """
    return Q(
        **{
            f"{prefix}stopped": "",
            f"{prefix}lease_checked_by": mark(),
            f"{prefix}lease_checked_at__gt": now - FRESH,
        }
    )


def closed_sentence(cluster: Cluster) -> str:
    """Why a cluster that is frozen by itself takes no change; empty where it is not."""
    if not cluster.stopped:
        return ""
    label = cluster.get_stopped_display()
    return f"Cluster {cluster} is frozen by itself: {label}. An admin has to confirm this installation first."


def unchecked_sentence(cluster: Cluster) -> str:
    """Why nothing is claimed and no yes is told although the cluster is not frozen by itself."""
    if cluster.lease_problem:
        return f"the Lease of this installation cannot be checked: {cluster.lease_problem}"
    return "the Lease of this installation was not checked within the last 25 s; a worker does that"


def is_confirmed(cluster: Cluster, now: datetime) -> bool:
    """Whether an admin's word for this installation holds, and a worker may take the Lease over."""
    at = cluster.confirmed_at
    return bool(at and at > now - CONFIRMATION_HOLDS and cluster.confirmed_for == mark())
