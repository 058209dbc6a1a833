"""Tell a worker that there is something to do. A lost nudge costs seconds: the next tick finds the row."""

import logging
from functools import partial

from django.db import transaction

log = logging.getLogger(__name__)


def _send(task: str, *ids: int) -> None:
    # The broker is needed only when something is sent.
    from deschedui.broker import MESSAGE_SECONDS  # noqa: PLC0415
    from deschedui.celery import app  # noqa: PLC0415

    try:
        app.send_task(f"decisions.tasks.{task}", args=list(ids), expires=MESSAGE_SECONDS, retry=False)
    except Exception:  # noqa: BLE001 - whatever the broker's client raises, the row is committed and the tick finds it
        log.warning("the broker did not take %s%s; the next tick will do it", task, ids)


def carry_out(cluster_id: int) -> None:
    """After this transaction: look for evictions of this cluster that are due."""
    transaction.on_commit(partial(_send, "carry_out", cluster_id))


def run_cycle(cycle_id: int) -> None:
    """After this transaction: run a cycle that was started by hand."""
    transaction.on_commit(partial(_send, "run_cycle", cycle_id))


def follow(cluster_id: int) -> None:
    """After this transaction: look at what is open in this cluster."""
    transaction.on_commit(partial(_send, "follow", cluster_id))


def check_lease(cluster_id: int) -> None:
    """After this transaction: check the Lease of this cluster."""
    transaction.on_commit(partial(_send, "check_lease", cluster_id))
