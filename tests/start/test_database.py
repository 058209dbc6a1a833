"""The connections that a process has to PostgreSQL."""

import inspect

from decisions.doors.asgi import with_doors
from deschedui import settings


def test_doors_cannot_take_every_connection_of_a_web_process() -> None:
    pool = settings._database("postgresql://user:password@database/name")["OPTIONS"]["pool"]
    threads = inspect.signature(with_doors).parameters["threads"].default
    assert pool["max_size"] >= threads + 4
