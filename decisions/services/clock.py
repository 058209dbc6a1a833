"""The database's clock: one clock for all workers, so that a lease means the same to each of them."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

from django.db import connection
from django.db.models.functions import Now

HEARD_SECONDS: Final = 10.0


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


class NearClock:
    """The database's time as this process last heard it, carried on by its monotonic clock.

    For doors, which are asked too often to ask on. A clock of this machine that is off, or set, changes nothing.
    """

    def __init__(
        self, ask: Callable[[], datetime] = db_now, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._ask, self._monotonic = ask, monotonic
        self._heard: tuple[datetime, float] | None = None

    def now(self) -> datetime:
        """The database's time; this machine's until it was heard once."""
        if self._heard is None:
            return datetime.now(UTC)
        told, at = self._heard
        return told + timedelta(seconds=self._monotonic() - at)

    def listen(self) -> None:
        """Ask the database, where that was not done within the last 10 s."""
        if self._heard is None or self._monotonic() - self._heard[1] > HEARD_SECONDS:
            self._heard = self._ask(), self._monotonic()


NEAR = NearClock()
