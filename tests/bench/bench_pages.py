"""Inbox and history with 200,000 decisions, on SQLite and PostgreSQL, against bare indexed queries of one page."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench.lines import BenchLine, Unavailable, wanted
from tests.real import services

DECISIONS = 200_000
ROOT = Path(__file__).resolve().parents[2]
DATABASES = ("sqlite", "postgresql")

# What the query layer reads, against one bare query of as many whole rows, both with Django's ORM and connection.
PAGES = ("inbox", "history")
FILTERS = ("namespace", "verdict", "time", "failed")
BARE = f"reference: one bare indexed query of as many rows ({DECISIONS} decisions)"

Runs = dict[str, list[float]]


def main() -> list[BenchLine]:
    """The lines of this module."""
    return [line for database in DATABASES if _is_wanted(database) for line in _lines(database)]


def _is_wanted(database: str) -> bool:
    return any(wanted(f"{name}-{database}", __name__) for name in ("history", "inbox", "page"))


def _lines(database: str) -> list[BenchLine]:
    try:
        with _database(database) as url:
            runs = _read(url)
    except Unavailable as missing:
        print(f"pages on {database}: skipped, {missing}", flush=True)
        return []
    return [*_page_lines(database, runs), *_filter_lines(database, runs), *_request_lines(database, runs)]


@contextmanager
def _database(name: str) -> Iterator[str]:
    if name == "postgresql":
        try:
            with services.postgresql() as url:
                yield url
        except services.Missing as missing:
            raise Unavailable(str(missing)) from missing
        return
    with tempfile.TemporaryDirectory(prefix="deschedui-bench-") as folder:
        yield f"sqlite:///{folder}/bench.sqlite3"


def _read(url: str) -> Runs:
    command = [sys.executable, "-m", "tests.bench.pages_reader", str(DECISIONS)]
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "DESCHEDUI_TEST_DATABASE_URL": url}
    done = subprocess.run(command, cwd=ROOT, env=environ, check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"pages_reader failed: {done.stderr[-2_000:]}")
    runs: Runs = json.loads(done.stdout.splitlines()[-1])
    return runs


def _page_lines(database: str, runs: Runs) -> Iterator[BenchLine]:
    for page in PAGES:
        cursor = f"by a bare cursor {_median(runs[f'cursor-{page}']) * 1_000:.1f} ms"
        for measure, of in (("median", _median), ("p95", _p95)):
            name = f"{page}-{database}-{measure}: what the page reads; {BARE}, {cursor}"
            yield BenchLine(name, of(runs[page]), of(runs[f"bare-{page}"]), bound=5)


def _filter_lines(database: str, runs: Runs) -> Iterator[BenchLine]:
    bare = _median(runs["bare-history"])
    for narrowed in FILTERS:
        name = f"history-{database}-{narrowed}: a filtered page, median; {BARE}"
        yield BenchLine(name, _median(runs[f"history-{narrowed}"]), bare, bound=5)
    for text in ("text-nothing", "text", "node"):
        name = f"history-{database}-{text}: a page without an index, median; reference: a search through everything"
        yield BenchLine(name, _median(runs[f"history-{text}"]), _median(runs["whole-text"]), bound=0.5)


def _request_lines(database: str, runs: Runs) -> Iterator[BenchLine]:
    """Most of it is rendering a hundred rows and more; a second is what a person still takes for an answer."""
    for page in ("inbox", "history", "history-text"):
        whole = runs[f"page-{page}"]
        for measure, of in (("median", _median), ("p95", _p95)):
            name = f"page-{page}-{database}-{measure}: the whole request with its template; reference: one second"
            yield BenchLine(name, of(whole), 1.0, bound=1)


def _median(runs: list[float]) -> float:
    return statistics.median(runs)


def _p95(runs: list[float]) -> float:
    return statistics.quantiles(runs, n=20)[-1]


if __name__ == "__main__":
    for line in main():
        print(line)
