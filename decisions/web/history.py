"""The history: filters in the address, a strip of bars, and the same as CSV or JSON."""

import csv
import json
from collections.abc import AsyncIterator, Iterator
from functools import partial
from itertools import groupby, islice
from typing import Any

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import render
from django.utils import timezone

from decisions.models import Decision, Verdict
from decisions.queries import history as query
from decisions.queries import statistics
from decisions.queries.history import COLUMNS, HistoryFilter
from decisions.web.pages import access_of, page
from deschedui.text import csv_cell, visible_json

LINES_AT_ONCE = 500


@page()
def history(request: HttpRequest) -> HttpResponse:
    """A page of what was decided."""
    chosen = HistoryFilter.of(request.GET.dict())
    access, now = access_of(request), timezone.now()
    before = request.GET.get("before", "")
    found = query.page(access, chosen, before)
    context: dict[str, Any] = {
        "filter": chosen,
        "days": by_day(found.rows),
        "older": found.older,
        "searched_to": found.searched_to,
        "newest": not query.read_key(before),
        "strip": statistics.strip(access, chosen, now),
        "verdicts": Verdict.values,
        "page": "history",
    }
    return render(request, "history.html", context)


def by_day(rows: list[Decision]) -> list[tuple[str, list[Decision]]]:
    """A separator for each day of the person's zone."""
    return [
        (day, list(found))
        for day, found in groupby(rows, key=lambda row: f"{timezone.localtime(row.created_at):%A, %d %B %Y}")
    ]


@page()
def export(request: HttpRequest, kind: str) -> HttpResponseBase:
    """What the filter shows, as a file, streamed."""
    access, chosen = access_of(request), HistoryFilter.of(request.GET.dict())
    records = query.export(access, chosen)
    if kind == "csv":
        return _download(request, as_csv(records), "text/csv; charset=utf-8", "csv")
    if kind == "json":
        return _download(request, as_json(records), "application/json", "json")
    raise Http404("There are decisions.csv and decisions.json.")


def _download(
    request: HttpRequest, lines: Iterator[str], content_type: str, ending: str
) -> StreamingHttpResponse:
    parts = _parts(lines)
    # Django reads a synchronous iterator to its end before it sends the first byte of it by ASGI.
    content = _one_by_one(parts) if isinstance(request, ASGIRequest) else parts
    response = StreamingHttpResponse(content, content_type=content_type)
    response["Content-Disposition"] = f'attachment; filename="decisions.{ending}"'
    return response


def _parts(lines: Iterator[str]) -> Iterator[str]:
    while part := "".join(islice(lines, LINES_AT_ONCE)):
        yield part


async def _one_by_one(parts: Iterator[str]) -> AsyncIterator[str]:
    read = sync_to_async(partial(next, parts, None))
    while (part := await read()) is not None:
        yield part


class _Line:
    """What ``csv.writer`` writes to: hands the line back instead of keeping it."""

    def write(self, line: str) -> str:
        return line


def as_csv(records: Iterator[dict[str, object]]) -> Iterator[str]:
    """Lines of a CSV file; no cell of it is a formula (``deschedui.text.csv_cell`` says how to read one back)."""
    writer = csv.writer(_Line())
    yield str(writer.writerow(COLUMNS))
    for record in records:
        yield str(writer.writerow([csv_cell(record[name]) for name in COLUMNS]))


def as_json(records: Iterator[dict[str, object]]) -> Iterator[str]:
    """One JSON array, a decision a line: every character as it is stored."""
    yield "["
    for number, record in enumerate(records):
        yield (",\n" if number else "\n") + visible_json(json.dumps(record, default=str, ensure_ascii=False))
    yield "\n]\n"
