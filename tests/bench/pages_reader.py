"""Fills a database and reads inbox and history from it, in a process of its own: `python -m tests.bench.pages_reader`.

`DESCHEDUI_TEST_DATABASE_URL` says which database. Prints a JSON object: seconds of each run by name.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from datetime import datetime

import django

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
django.setup()

from django.contrib.auth.models import User  # noqa: E402 - after setup()
from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from django.test import Client  # noqa: E402

from decisions.models import Decision, Verdict  # noqa: E402
from decisions.queries import history, inbox  # noqa: E402
from decisions.queries.access import Access  # noqa: E402
from decisions.queries.history import HistoryFilter  # noqa: E402
from tests.bench import filling  # noqa: E402
from tests.builders import make_cluster  # noqa: E402

RUNS = 60
PAGE_RUNS = 20
FEW_RUNS = 8
HISTORY_PAGE = 100
NO_SUCH_TEXT = "there is no such text"

Work = Mapping[str, Callable[[], object]]


def main(many: int) -> dict[str, list[float]]:
    """Fill the database, then read."""
    call_command("migrate", verbosity=0)
    cluster, user, now = make_cluster(), filling.people(), filling.now()
    filling.fill(cluster, user, many, now=now)
    filling.fill_pending(cluster, now=now)
    filling.settle()
    return (
        _timed(_data(user, now), RUNS) | _timed(_everything(user), FEW_RUNS) | _timed(_pages(user), PAGE_RUNS)
    )


def _timed(work: Work, runs: int) -> dict[str, list[float]]:
    """Seconds of each, taken in turns, so that whatever else the machine does meets all of them."""
    taken: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(runs + 1):
        for name, run in work.items():
            started = time.perf_counter()
            run()
            taken[name].append(time.perf_counter() - started)
    return {name: seconds[1:] for name, seconds in taken.items()}


def _data(user: User, now: datetime) -> Work:
    """What a view reads, and the bare queries of as many rows."""
    access = Access.of(user)
    decisions = Decision.objects.select_related("cluster")
    waiting = decisions.filter(verdict=Verdict.PENDING, expires_at__gt=now).order_by("expires_at", "id")
    newest = decisions.order_by("-created_at", "-id")

    def page(**chosen: str) -> Callable[[], object]:
        return lambda: history.page(access, HistoryFilter(**chosen))

    return {
        "bare-inbox": lambda: list(waiting.all()[: filling.PENDING]),
        "bare-history": lambda: list(newest.all()[:HISTORY_PAGE]),
        "cursor-inbox": lambda: _fetch("WHERE verdict = 'pending' ORDER BY expires_at, id"),
        "cursor-history": lambda: _fetch("ORDER BY created_at DESC, id DESC"),
        "inbox": lambda: inbox.inbox(access, inbox.Filter(), now),
        "history": page(),
        "history-namespace": page(namespace="team-7"),
        "history-verdict": page(verdict="skipped"),
        "history-time": page(since=_ago(now, 41), until=_ago(now, 40)),
        "history-failed": page(eviction="failed"),
        "history-text": page(q="service-7"),
        "history-text-nothing": page(q=NO_SUCH_TEXT),
        "history-node": page(node="node-7.eu-west-1.compute.internal"),
    }


def _everything(user: User) -> Work:
    """The search for a text with nothing that bounds it."""
    rows = history.decisions(Access.of(user), HistoryFilter(q=NO_SUCH_TEXT))
    return {"whole-text": lambda: list(rows.all()[:HISTORY_PAGE])}


def _ago(now: datetime, days: int) -> str:
    return (now - days * filling.DAY).isoformat()


def _fetch(rest: str) -> list[object]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM decisions_decision {rest} LIMIT 100")  # noqa: S608 - ours
        return list(cursor.fetchall())


def _pages(user: User) -> Work:
    """Whole requests of a signed-in approver: middleware, queries, template."""
    client = Client()
    client.force_login(user)

    def get(path: str) -> Callable[[], object]:
        return lambda: _get(client, path)

    return {
        "page-inbox": get("/"),
        "page-history": get("/history/"),
        "page-history-text": get("/history/?q=there+is+no+such+text"),
    }


def _get(client: Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 200, f"{path}: {answer.status_code}"


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]))))
