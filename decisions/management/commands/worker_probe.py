"""``manage.py worker_probe``: the liveness probe of a worker, a round trip instead of a look at the process.

A message goes to the worker's own queue; the worker takes it and writes its heartbeat to the database. A worker
that lost its broker and consumes nothing any more does not, whatever its process looks like.
"""

import socket
import time
from argparse import ArgumentParser
from datetime import datetime
from typing import Any

from celery.utils.nodenames import worker_direct
from django.core.management import BaseCommand, CommandError

from decisions.services import heartbeats
from decisions.services.clock import db_now
from deschedui.celery import app

POLL_SECONDS = 0.1


class Command(BaseCommand):
    """Exit code 0: the worker is alive."""

    help = "Check that a worker takes messages and writes to the database (its liveness probe)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--within", type=float, default=15.0, help="Seconds for the round trip.")
        parser.add_argument(
            "--worker",
            default=f"celery@{socket.gethostname()}",
            help="Its node name; default: of this machine.",
        )

    def handle(self, *args: Any, within: float, worker: str, **options: Any) -> None:
        sent = db_now()
        send(worker, expires=within)
        if not came_back(worker, since=sent, within=within):
            last = heartbeats.last_answer(worker) or "never"
            raise CommandError(
                f"{worker} took no message within {within:g} s (last answer: {last}). "
                "Its connection to the broker is lost, or all its threads are stuck: restart it."
            )
        self.stdout.write(f"{worker} is alive")


def send(worker: str, *, expires: float) -> None:
    """Put a message into the worker's own queue.

    Raises:
        CommandError: the broker does not take it.
    """
    queue = worker_direct(worker)
    try:
        app.send_task(
            "decisions.tasks.heartbeat",
            exchange=queue.exchange.name,
            routing_key=queue.routing_key,
            expires=expires,
            retry=False,
        )
    except Exception as error:
        raise CommandError(f"The broker does not take messages: {error}") from error


def came_back(worker: str, *, since: datetime, within: float) -> bool:
    """Whether the worker wrote its heartbeat in time."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        seen = heartbeats.last_answer(worker)
        if seen is not None and seen >= since:
            return True
        time.sleep(POLL_SECONDS)
    return False
