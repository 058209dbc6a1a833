"""No log line shows a token that stands in a path."""

import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings

from deschedui import logs
from deschedui.extender import texts as extender
from deschedui.kube import text as kube
from deschedui.logs import MaskDoorTokens

TOKEN = "wT3Jt0g6Zq9x"


@pytest.fixture
def logged() -> Iterator[list[str]]:
    """What the product's own handler would write."""
    lines: list[str] = []
    logging_settings: Any = settings.LOGGING
    made = logging_settings["formatters"]["line"]
    formatter = made["()"](foreign_pre_chain=made["foreign_pre_chain"], processors=made["processors"])
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(formatter.format(record))  # type: ignore[method-assign]
    handler.addFilter(MaskDoorTokens())
    log = logging.getLogger("tests.doors")
    log.addHandler(handler)
    yield lines
    log.removeHandler(handler)


@pytest.mark.parametrize(
    "path",
    [f"/doors/{TOKEN}/evict", f"//doors//{TOKEN}//evict", f"/Doors/{TOKEN}/evict", f"/doors/{TOKEN}?a=1"],
)
def test_a_path_is_logged_without_its_token(logged: list[str], path: str) -> None:
    logging.getLogger("tests.doors").warning("POST %s took %d ms", path, 7)
    assert TOKEN not in logged[0]
    assert "took 7 ms" in logged[0]


def test_neither_does_an_error_that_quotes_it(logged: list[str]) -> None:
    logging.getLogger("tests.doors").warning("refused: %s", ValueError(f"/doors/{TOKEN}/evict"))
    logging.getLogger("tests.doors").warning("at %(path)s", {"path": f"/doors/{TOKEN}/evict"})
    assert not [line for line in logged if TOKEN in line]


def test_nor_does_a_traceback(logged: list[str]) -> None:
    try:
        int(f"/doors/{TOKEN}/evict")
    except ValueError:
        logging.getLogger("tests.doors").exception("door: an error of ours")
    assert "Traceback" in logged[0]
    assert TOKEN not in logged[0]


def test_nor_do_fields_of_an_event_however_deep(logged: list[str]) -> None:
    seen = {"scope": {"path": f"/doors/{TOKEN}/evict", "tried": [f"/doors/{TOKEN}", (f"/doors/{TOKEN}/",)]}}
    logging.getLogger("tests.doors").warning({"event": "asked", "seen": seen, f"/doors/{TOKEN}/": 1})
    assert "asked" in logged[0]
    assert TOKEN not in logged[0]


def test_nor_do_fields_that_become_text_only_when_the_line_is_made(logged: list[str]) -> None:
    logging.getLogger("tests.doors").warning({"event": "refused", "why": ValueError(f"/doors/{TOKEN}/evict")})
    assert "refused" in logged[0]
    assert TOKEN not in logged[0]


def test_nor_do_the_arguments_of_an_exception_and_of_what_caused_it(logged: list[str]) -> None:
    try:
        _fail_twice(f"/doors/{TOKEN}/evict")
    except RuntimeError:
        logging.getLogger("tests.doors").exception("an error of ours", stack_info=True)
    assert "direct cause" in logged[0]
    assert TOKEN not in logged[0]


def _fail_twice(path: str) -> None:
    try:
        int(path)
    except ValueError as error:
        raise RuntimeError(path, 7) from error


def test_nor_does_the_server_below_which_has_no_handlers_of_its_own(logged: list[str]) -> None:
    path = f"/doors/{TOKEN}/evict"
    logging.getLogger("tests.doors").info('%s - "%s %s HTTP/%s" %d', "10.0.0.7:1", "POST", path, "1.1", 200)
    assert "POST /doors/***/evict HTTP/1.1" in logged[0]
    loggers: Any = settings.LOGGING["loggers"]
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        assert (loggers[name]["handlers"], loggers[name]["propagate"]) == ([], True)


def test_every_handler_masks() -> None:
    handlers: Any = settings.LOGGING["handlers"]
    assert {name: each["filters"] for name, each in handlers.items()} == {name: ["mask"] for name in handlers}


def test_within_a_context_its_own_secrets_are_hidden_and_only_there() -> None:
    with logs.hiding(lambda: [TOKEN]):
        assert TOKEN not in logs.mask(f"cannot take {TOKEN}")
    assert TOKEN in logs.mask(f"cannot take {TOKEN}")


def test_a_traceback_that_nobody_caught_is_masked_too() -> None:
    code = (
        "from deschedui.logs import mask_uncaught; mask_uncaught()\n"
        "import threading\n"
        f"def fail(): raise ValueError('/doors/{TOKEN}/evict')\n"
        "thread = threading.Thread(target=fail); thread.start(); thread.join()\n"
        "fail()\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.count("ValueError: /doors/***/evict") == 2


def test_the_verb_of_the_door_is_no_token(logged: list[str]) -> None:
    logging.getLogger("tests.doors").warning("POST %s", "/doors/evict")
    assert "/doors/evict" in logged[0]


@pytest.mark.parametrize("mask", [kube.mask_secrets, extender.masked_url])
def test_neither_do_texts_that_are_stored(mask: Callable[[str], str]) -> None:
    assert TOKEN not in mask(f"https://deschedui.example/doors//{TOKEN}/evict")


def test_nor_does_an_extenders_answer_that_quotes_it() -> None:
    assert TOKEN not in extender.clean(f"<h1>404</h1> /doors/{TOKEN}/evict was not found")
