"""The Celery application. Messages hold ids; state lives in the database; nothing depends on a message arriving."""

import os
from pathlib import Path
from typing import Any

import django
from celery import Celery, signals

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "deschedui.settings")

from deschedui import broker
from deschedui.logs import mask_uncaught
from deschedui.settings import ENV


def _broker(url: str) -> dict[str, Any]:
    if not url.startswith("filesystem://"):
        # A message is a nudge: what it leads to is in the database, and a lost one costs a tick. So it is gone from
        # Redis once a worker has it. With kombu's list of unacknowledged messages, a Redis that restarts while there
        # is one ends the whole worker (AttributeError in restore_unacked, kombu 5.7).
        return {"broker_url": url, "broker_transport_options": {"ack_emulation": False}}
    broker.register()
    return broker.options(Path(url.removeprefix("filesystem://")))


app = Celery("deschedui")
app.conf.update(
    **_broker(ENV.broker_url),
    task_ignore_result=True,
    task_acks_late=False,
    task_default_queue="deschedui",
    task_serializer="json",
    accept_content=["json"],
    timezone="UTC",
    broker_connection_retry_on_startup=True,
    # Celery would end the worker after 100 tries; however long the broker is away, it is to be there when it is back.
    broker_connection_max_retries=None,
    # Publishing must not hold up a click when the broker is away: the sweep finds what was not enqueued.
    task_publish_retry=False,
    worker_prefetch_multiplier=1,
    worker_hijack_root_logger=False,
    # Each worker also has a queue of its own: its liveness probe sends a message there and waits for the trace.
    worker_direct=True,
    # Every task looks in the database for what is due, so a tick that came too late may be dropped.
    beat_schedule={
        "tick": {
            "task": "decisions.tasks.tick",
            "schedule": ENV.tick_seconds,
            "options": {"expires": broker.MESSAGE_SECONDS},
        },
    },
)
app.autodiscover_tasks(["decisions"])


@signals.worker_init.connect
@signals.beat_init.connect
def _may_start(sender: Any = None, **_: Any) -> None:
    """Worker and beat end here where ``decisions.checks`` refuses."""
    django.setup()
    from decisions.checks import refuse_start  # noqa: PLC0415 - its models need the registry that was just made

    mask_uncaught()
    refuse_start("beat" if type(sender).__name__ == "Service" else "worker")
