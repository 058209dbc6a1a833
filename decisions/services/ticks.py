"""What beat makes happen every few seconds: look in the database for what is due, and hand it out.

Everything here may run twice at once and at any time: each step is won by one. What asks a cluster something is a
task of its own for each cluster, so that an API server that does not answer holds up nobody else.
"""

import logging
from collections.abc import Callable
from datetime import datetime

from decisions.models import Cluster
from decisions.services import (
    carryout,
    connections,
    cycles,
    evictions,
    follow,
    heartbeats,
    installation,
    nudge,
    sessions,
    verdicts,
)
from decisions.services.clock import DATABASE, Clock

log = logging.getLogger(__name__)


def tick(*, worker: str, clock: Clock = DATABASE) -> None:
    """One look at everything. A step that fails is logged and does not keep the others from their turn."""
    now = clock.now()
    heartbeats.beat(worker, now=now)
    for step in STEPS:
        _try(step, now)


def expire(now: datetime) -> None:
    """What nobody answered, approvals whose time is over, and what came back after a disarming or a stop."""
    verdicts.expire_due(now=now)
    verdicts.withdraw_unarmed(now=now)
    installation.withdraw_stopped(now=now)


def queue(now: datetime) -> None:
    """The blocked whose time has come, and what was allowed and for some reason never queued."""
    evictions.requeue_blocked(now=now)
    evictions.queue_stranded(now=now)


def hand_out_leases(now: datetime) -> None:
    """Clusters whose Lease is to be written again, or taken over."""
    for cluster_id in installation.due_clusters(now=now):
        nudge.check_lease(cluster_id)


def hand_out_evictions(now: datetime) -> None:
    """What was committed and never enqueued, what waited for its time, and what a dead worker left."""
    for cluster_id in carryout.due_clusters(now=now):
        nudge.carry_out(cluster_id)


def hand_out_looks(now: datetime) -> None:
    """Clusters in which something is open."""
    for cluster_id in follow.due_clusters(now=now):
        nudge.follow(cluster_id)


def hand_out_cycles(now: datetime) -> None:
    """Cycles that are due, after those of dead workers have been freed."""
    cycles.free_dead(now=now)
    for cycle_id in cycles.start_due(now=now):
        nudge.run_cycle(cycle_id)


def forget(now: datetime) -> None:
    """Workers that are no more, sessions that are over."""
    heartbeats.forget(now=now)
    sessions.forget(now=now)


STEPS: tuple[Callable[[datetime], None], ...] = (
    expire,
    queue,
    hand_out_leases,
    hand_out_evictions,
    hand_out_looks,
    hand_out_cycles,
    forget,
)


def _try(step: Callable[[datetime], None], now: datetime) -> None:
    try:
        step(now)
    except Exception:
        log.exception("tick: %s failed; the next tick tries again", step.__name__)


def run_cycle(cycle_id: int) -> None:
    """Run a started cycle with the client of its cluster."""
    cluster = Cluster.objects.filter(cycles=cycle_id).first()
    if cluster is not None:
        cycles.run(cycle_id, client=connections.client_for(cluster))
