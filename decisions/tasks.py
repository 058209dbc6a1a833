"""Celery tasks: ids in, one call each. The database says what is to be done; a message only says where to look.

Delivered twice, late or never, a task changes nothing that the database does not allow once.
"""

from celery import Task, shared_task

from decisions.services import carryout, heartbeats, installation, ticks
from decisions.services import follow as following
from decisions.services.clock import db_now


@shared_task(bind=True, name="decisions.tasks.tick")
def tick(self: "Task[[], None]") -> None:
    """Beat, every few seconds: hand out what is due."""
    ticks.tick(worker=worker_name(self))


@shared_task(bind=True, name="decisions.tasks.heartbeat")
def heartbeat(self: "Task[[], None]") -> None:
    """A worker's round trip: the broker delivered, and the database takes writes."""
    heartbeats.answer(worker_name(self), now=db_now())


@shared_task(name="decisions.tasks.run_cycle")
def run_cycle(cycle_id: int) -> None:
    """Run a cycle that was started."""
    ticks.run_cycle(cycle_id)


@shared_task(bind=True, name="decisions.tasks.carry_out")
def carry_out(self: "Task[[int], None]", cluster_id: int) -> None:
    """Carry out what is due in a cluster."""
    carryout.carry_out(cluster_id, worker=worker_name(self))


@shared_task(name="decisions.tasks.follow")
def follow(cluster_id: int) -> None:
    """Look at what is open in a cluster."""
    following.follow(cluster_id)


@shared_task(name="decisions.tasks.check_lease")
def check_lease(cluster_id: int) -> None:
    """Check the Lease of a cluster, or take it over."""
    installation.beat(cluster_id)


def worker_name(task: "Task[..., None]") -> str:
    """Which worker runs it."""
    return str(task.request.hostname or "no worker")
