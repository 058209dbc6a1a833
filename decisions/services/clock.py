"""The database's clock: one clock for all workers, so that a lease means the same to each of them."""

from datetime import UTC, datetime
from typing import Protocol

from django.db import connection
from django.db.models.functions import Now


class Clock(Protocol):
    """Where an edge reads the time that it passes on as ``now``."""

    def now(self) -> datetime:
        """The time, aware."""

    def in_query(self) -> datetime | Now:
        """The time for use inside a query; the database's own costs no extra round trip."""


class DatabaseClock:
    """The clock of the database server (on SQLite: this machine's)."""

    def now(self) -> datetime:
        """Ask the database for the time."""
        if connection.vendor == "sqlite":
            return datetime.now(UTC)
        with connection.cursor() as cursor:
            cursor.execute("SELECT clock_timestamp()")
            moment: datetime = cursor.fetchone()[0]
        return moment

    def in_query(self) -> datetime | Now:
        """The database's ``now()``, in microseconds."""
        # SQLite's Now() has milliseconds only, and it is this machine's clock all the same.
        return datetime.now(UTC) if connection.vendor == "sqlite" else Now()


DATABASE = DatabaseClock()


def db_now() -> datetime:
    """The time on the database's clock."""
    return DATABASE.now()
