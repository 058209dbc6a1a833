"""Inbox and history with 200,000 decisions, on SQLite and PostgreSQL, against bare indexed queries of one page."""

import json
import statistics
from collections.abc import Iterator

from tests.bench import processes
from tests.bench.databases import DATABASES, database
from tests.bench.lines import BenchLine, Unavailable, wanted

DECISIONS = 200_000

# What the query layer reads, against one bare query of as many whole rows, both with Django's ORM and connection.
PAGES = ("inbox", "history")
FILTERS = ("namespace", "verdict", "time", "failed")
SEARCHES = ("text-nothing", "text", "node")
REQUESTS = ("inbox", "history", "history-text")
MEASURES = ("median", "p95")
BARE = f"reference: one bare indexed query of as many rows ({DECISIONS} decisions)"

Runs = dict[str, list[float]]


def main() -> list[BenchLine]:
    """The lines of this module."""
    return [line for name in DATABASES if _is_wanted(name) for line in _lines(name)]


def _is_wanted(name: str) -> bool:
    data = [f"{page}-{name}-{measure}" for page in PAGES for measure in MEASURES]
    filters = [f"history-{name}-{narrowed}" for narrowed in (*FILTERS, *SEARCHES)]
    requests = [f"page-{page}-{name}-{measure}" for page in REQUESTS for measure in MEASURES]
    return any(wanted(line, __name__) for line in (*data, *filters, *requests))


def _lines(name: str) -> list[BenchLine]:
    try:
        with database(name) as url:
            runs = _read(url)
    except Unavailable as missing:
        print(f"pages on {name}: skipped, {missing}", flush=True)
        return []
    return [*_page_lines(name, runs), *_filter_lines(name, runs), *_request_lines(name, runs)]


def _read(url: str) -> Runs:
    told = processes.run("tests.bench.pages_reader", str(DECISIONS), env={"DESCHEDUI_TEST_DATABASE_URL": url})
    runs: Runs = json.loads(told)
    return runs


def _page_lines(database: str, runs: Runs) -> Iterator[BenchLine]:
    for page in PAGES:
        cursor = f"by a bare cursor {_median(runs[f'cursor-{page}']) * 1_000:.1f} ms"
        for measure, of, bound in (("median", _median, 5), ("p95", _p95, 10)):
            name = f"{page}-{database}-{measure}: what the page reads; {BARE}, {cursor}"
            yield BenchLine(name, of(runs[page]), of(runs[f"bare-{page}"]), bound)


def _filter_lines(database: str, runs: Runs) -> Iterator[BenchLine]:
    bare = _median(runs["bare-history"])
    for narrowed in FILTERS:
        name = f"history-{database}-{narrowed}: a filtered page, median; {BARE}"
        yield BenchLine(name, _median(runs[f"history-{narrowed}"]), bare, bound=5)
    for text in SEARCHES:
        name = f"history-{database}-{text}: a page without an index, median; reference: a search through everything"
        yield BenchLine(name, _median(runs[f"history-{text}"]), _median(runs["whole-text"]), bound=0.5)


def _request_lines(database: str, runs: Runs) -> Iterator[BenchLine]:
    """Most of it is rendering a hundred rows and more; a second is what a person still takes for an answer."""
    for page in REQUESTS:
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
