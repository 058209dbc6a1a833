"""What is logged is shown as it is, and no text begins a line of its own: neither in JSON nor on a console."""

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest
import structlog
from django.conf import settings

from deschedui.logs import indent_traceback, show_event

FORGED = "no room\r\n2026-11-30 [info] evicted shop/web-1\u202e\x1b[31m"
Format = Callable[..., str]


@pytest.fixture(params=["json", "console"])
def line(request: pytest.FixtureRequest) -> Format:
    """A record as the product writes it: in production, and on a developer's console."""
    made: Any = settings.LOGGING["formatters"]["line"]  # type: ignore[index]
    processors = made["processors"]
    if request.param == "console":
        at = next(
            n for n, each in enumerate(processors) if isinstance(each, structlog.processors.JSONRenderer)
        )
        console = structlog.dev.ConsoleRenderer(
            colors=False, exception_formatter=structlog.dev.plain_traceback
        )
        processors = [*processors[:at], indent_traceback, console, *processors[at + 1 :]]
    formatter = made["()"](foreign_pre_chain=made["foreign_pre_chain"], processors=processors)

    def write(message: str, *args: object, **more: Any) -> str:
        record = logging.LogRecord("tests", logging.WARNING, __file__, 1, message, args, more.get("exc_info"))
        return str(formatter.format(record))

    return write


def test_a_text_is_one_line_with_escapes(line: Format) -> None:
    written = line("webhook: %s", FORGED)
    assert "\n" not in written
    assert r"room\r\n2026" in written.replace("\\\\", "\\")
    assert "\u202e" not in written
    assert "\x1b" not in written


def test_what_an_error_quotes_begins_no_line(line: Format) -> None:
    error = ValueError(FORGED)
    written = line("door: an error of ours", exc_info=(ValueError, error, None))
    assert "ValueError" in written
    assert not [each for each in written.split("\n") if each.startswith("2026-11-30 [info]")]
    assert "\x1b" not in written


def test_fields_are_shown_however_deep() -> None:
    event = show_event(None, "warning", {"event": "x", "detail": {"a\x00": ["b\u200b", 3, None]}})
    assert event["detail"] == {r"a\u0000": [r"b\u200b", 3, None]}


def test_json_stays_json_that_says_the_escapes() -> None:
    made: Any = settings.LOGGING["formatters"]["line"]  # type: ignore[index]
    formatter = made["()"](foreign_pre_chain=made["foreign_pre_chain"], processors=made["processors"])
    record = logging.LogRecord("tests", logging.WARNING, __file__, 1, "%s", (FORGED,), None)
    assert json.loads(formatter.format(record))["event"].endswith(r"web-1\u202e\u001b[31m")
