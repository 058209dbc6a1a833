"""No log line shows a token that stands in a path."""

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings

from deschedui.extender import texts as extender
from deschedui.kube import text as kube
from deschedui.logs import MaskDoorTokens

TOKEN = "dui_wT3Jt0g6"


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


def test_the_verb_of_the_door_is_no_token(logged: list[str]) -> None:
    logging.getLogger("tests.doors").warning("POST %s", "/doors/evict")
    assert "/doors/evict" in logged[0]


@pytest.mark.parametrize("mask", [kube.mask_secrets, extender.masked_url])
def test_neither_do_texts_that_are_stored(mask: Callable[[str], str]) -> None:
    assert TOKEN not in mask(f"https://deschedui.example/doors//{TOKEN}/evict")


def test_nor_does_an_extenders_answer_that_quotes_it() -> None:
    assert TOKEN not in extender.clean(f"<h1>404</h1> /doors/{TOKEN}/evict was not found")
