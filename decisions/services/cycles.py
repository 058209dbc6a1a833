"""Cycles: start one (one at a time for a cluster), run it, free what a dead worker left.

The database holds the rule that one cycle runs; the row is the queue, and a message only says where to look.
"""

import logging
import random
import time
from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import IntegrityError, InterfaceError, OperationalError, connection, transaction
from django.db.models import Q

from decisions.models import Cluster, Cycle, CycleKind, CycleState, PolicyVersion
from decisions.queries.installation import closed_sentence
from decisions.services import nudge
from decisions.services.actors import SYSTEM, Actor
from decisions.services.clock import db_now
from decisions.services.cycle_asking import ExtenderClientFactory, build_client
from decisions.services.cycle_row import CycleRow, Disarmed, Lost
from decisions.services.cycle_run import CycleRun, Ended, ReadsCluster
from decisions.services.errors import AlreadyRuns, Closed

log = logging.getLogger(__name__)

DEAD_AFTER = timedelta(seconds=60)
UNTAKEN_AFTER = timedelta(seconds=5)
GIVEN_UP_AFTER = timedelta(minutes=10)
JITTER = 0.1
# Seconds between tries to write down the end of a cycle while the database is away.
END_PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0)


# --- starting ---------------------------------------------------------------------------------------------


def start(*, cluster_id: int, kind: str, by: Actor = SYSTEM, now: datetime) -> Cycle:
    """Start a cycle; a worker runs it. On a cluster that is not armed it is a dry run.

    A scheduled one that finds one running is recorded as skipped and returned as such.

    Raises:
        AlreadyRuns: one started by hand finds one running; says which.
        Closed: the cluster is frozen by itself: nothing is nominated until an admin confirms this installation.
    """
    cluster = Cluster.objects.get(pk=cluster_id)
    if cluster.stopped:
        raise Closed(closed_sentence(cluster))
    wanted = kind if cluster.armed else CycleKind.DRY_RUN
    for _ in range(3):
        busy = _running(cluster, wanted, scheduled=kind == CycleKind.SCHEDULED)
        if busy is not None and kind == CycleKind.SCHEDULED:
            return _skipped(cluster, busy, now)
        if busy is not None:
            raise AlreadyRuns(
                busy.pk, f"Cycle {busy.pk} runs on {cluster} since {busy.started_at:%H:%M:%S} UTC."
            )
        try:
            with transaction.atomic():
                cycle = _create(cluster, wanted, by, now)
                nudge.run_cycle(cycle.pk)
        except IntegrityError:
            continue  # Somebody started one at the same moment: now it is there to be found.
        return cycle
    raise AlreadyRuns(0, f"Cycles of {cluster} start and end faster than this one could.")


def _running(cluster: Cluster, kind: str, *, scheduled: bool) -> Cycle | None:
    """The cycle that is in the way. A dry run takes no lock; by time there is still only one at once."""
    running = Cycle.objects.filter(cluster=cluster, state=CycleState.RUNNING)
    if kind != CycleKind.DRY_RUN:
        return running.exclude(kind=CycleKind.DRY_RUN).first()
    return running.filter(kind=CycleKind.DRY_RUN, started_by=None).first() if scheduled else None


def _create(cluster: Cluster, kind: str, by: Actor, now: datetime) -> Cycle:
    return Cycle.objects.create(
        cluster=cluster,
        kind=kind,
        state=CycleState.RUNNING,
        started_at=now,
        deadline_at=now + timedelta(seconds=cluster.settings.cycle_seconds),
        heartbeat_at=now,
        started_by=by.user,
        step="starting",
    )


def _skipped(cluster: Cluster, busy: Cycle, now: datetime) -> Cycle:
    return Cycle.objects.create(
        cluster=cluster,
        kind=CycleKind.SCHEDULED if cluster.armed else CycleKind.DRY_RUN,
        state=CycleState.SKIPPED,
        started_at=now,
        finished_at=now,
        deadline_at=now,
        heartbeat_at=now,
        error=f"Cycle {busy.pk}, started at {busy.started_at:%H:%M:%S} UTC, still ran.",
    )


def start_due(*, now: datetime, jitter: Callable[[], float] = random.random) -> list[int]:
    """Start the cycles that are due by time, and find those that were started and that no worker took.

    Returns:
        The ids of the cycles that are to be run. Two beats may call it: each due time is won by one.
    """
    due = Cluster.objects.filter(Q(next_cycle_at=None) | Q(next_cycle_at__lte=now), paused=False, stopped="")
    started = [cycle for cluster in due if (cycle := _start_if_due(cluster, now, jitter)) is not None]
    return [*_untaken(now), *(cycle.pk for cycle in started if cycle.state == CycleState.RUNNING)]


def _start_if_due(cluster: Cluster, now: datetime, jitter: Callable[[], float]) -> Cycle | None:
    if not (cluster.policy_file or cluster.policy_configmap) and not _has_policy(cluster):
        return None  # There is nothing to evaluate yet, and nobody wants a failed cycle every five minutes.
    wait = cluster.interval_seconds * (1 + JITTER * (jitter() - 0.5))
    won = Cluster.objects.filter(
        pk=cluster.pk, paused=False, stopped="", next_cycle_at=cluster.next_cycle_at
    ).update(next_cycle_at=now + timedelta(seconds=wait))
    try:
        return start(cluster_id=cluster.pk, kind=CycleKind.SCHEDULED, now=now) if won else None
    except Closed:
        return None  # It was frozen by itself in this moment.


def _has_policy(cluster: Cluster) -> bool:
    return PolicyVersion.objects.filter(cluster=cluster, valid=True).exists()


def _untaken(now: datetime) -> list[int]:
    waiting = Cycle.objects.filter(state=CycleState.RUNNING, runner="", started_at__lte=now - UNTAKEN_AFTER)
    return list(waiting.order_by("id").values_list("pk", flat=True))


def free_dead(*, now: datetime) -> int:
    """Fail the cycles whose worker has not been heard of for a minute, so that the next one can start."""
    dead = Q(heartbeat_at__lte=now - DEAD_AFTER) & ~Q(runner="")
    untaken = Q(started_at__lte=now - GIVEN_UP_AFTER, runner="")
    freed = 0
    for condition, why in ((dead, "Its worker died."), (untaken, "No worker took it; is one running?")):
        freed += Cycle.objects.filter(condition, state=CycleState.RUNNING).update(
            state=CycleState.FAILED, finished_at=now, error=why
        )
    return freed


# --- running ----------------------------------------------------------------------------------------------


def run(
    cycle_id: int,
    *,
    client: ReadsCluster,
    extender_client_factory: ExtenderClientFactory = build_client,
    now: Callable[[], datetime] | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Run a started cycle to its end. Called twice, or for one that has ended, it does nothing.

    Args:
        client: of the cycle's cluster.
        now: read at each step (None: the database's clock); the plan itself counts ages to one moment.
        sleep: between two tries to write the end down while the database is away.
    """
    row = CycleRow.claim(cycle_id, now or steady_clock())
    if row is None:
        return
    try:
        _run(row, client, extender_client_factory, sleep)
    except Lost:
        log.warning("cycle %s was freed while it ran; what it had recorded stays", cycle_id)


def steady_clock() -> Callable[[], datetime]:
    """The database's clock, read once and carried on by this machine's own: no question to it at each step."""
    began, since = db_now(), time.monotonic()
    return lambda: began + timedelta(seconds=time.monotonic() - since)


def _run(
    row: CycleRow, client: ReadsCluster, factory: ExtenderClientFactory, sleep: Callable[[float], None]
) -> None:
    try:
        CycleRun(row, client, factory).go()
    except Ended as ended:
        _end(row, sleep, ended.state, error=ended.sentence, failure_mode=ended.failure_mode)
    except Disarmed:
        error = "The cluster was disarmed while the cycle ran; nothing more was recorded."
        _end(row, sleep, CycleState.FAILED, error=error)
    except Closed as closed:
        _end(row, sleep, CycleState.FAILED, error=f"{closed} Nothing more was recorded.")
    except Lost:
        raise
    except Exception as error:
        log.exception("cycle %s failed", row.cycle.pk)
        sentence = f"deschedui failed ({type(error).__name__}); the worker's log says where."
        _end(row, sleep, CycleState.FAILED, error=sentence)
        raise


def _end(row: CycleRow, sleep: Callable[[float], None], state: str, **fields: str) -> None:
    """Write the end down, also where the database was what failed.

    One that stays running without a worker holds up the next for a minute.
    """
    for pause in END_PAUSES:
        try:
            row.end(state, **fields)
        except (OperationalError, InterfaceError):
            sleep(pause)
            if not connection.in_atomic_block:  # a test's: not ours to close
                connection.close_if_unusable_or_obsolete()
        else:
            return
    row.end(state, **fields)
