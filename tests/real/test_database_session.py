"""What our sessions ask of PostgreSQL, so that a process that is stopped in a transaction stops nobody else."""

from __future__ import annotations

import psycopg
import pytest

from deschedui import settings
from tests.real.services import postgresql_url

__all__ = ["postgresql_url"]

pytestmark = pytest.mark.real


@pytest.mark.parametrize(
    ("setting", "value"), [("idle_in_transaction_session_timeout", "5s"), ("lock_timeout", "10s")]
)
def test_the_server_ends_what_holds_locks_and_what_waits_for_them(
    postgresql_url: str, setting: str, value: str
) -> None:
    """Found by a campaign: a worker that was stopped with the record's lock held up every decision for 90 s."""
    ours = settings._database(postgresql_url)["OPTIONS"]["options"]
    with psycopg.connect(postgresql_url, options=ours) as session:
        assert session.execute(f"SHOW {setting}").fetchone() == (value,)
