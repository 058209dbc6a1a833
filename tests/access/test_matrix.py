"""The matrix of ``table.py``: who gets what from which address, and whether anything changed."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping

import pytest
from django.apps import apps
from django.urls import URLPattern, URLResolver, get_resolver

from decisions.web.settings import CHANGES
from tests.access import table
from tests.access.table import METHODS, NO_TOKENS, PLACES, ROWS, SCOPES, SENT_IN, TOKEN_ROWS, Row
from tests.access.world import World, build
from tests.domain.fake_cluster import FakeCluster, using

SAFE = ("GET", "HEAD", "OPTIONS", "TRACE")
UNSAFE = [row for row in ROWS if row.method not in SAFE]
READING = [row for row in ROWS if row.method == "GET"]
OF_API = [row for row in ROWS if row.route.startswith("api-")]


def differences(got: Mapping[str, object], expected: Mapping[str, object]) -> list[str]:
    """The lines that are not as expected."""
    return [
        f"{name}: got {got.get(name)}, expected {expected.get(name)}"
        for name in {**expected, **got}
        if got.get(name) != expected.get(name)
    ]


@pytest.fixture
def world(db: None) -> Iterator[World]:
    """What one request changes is undone before the next."""
    fake = FakeCluster()
    with using(fake):
        yield build(fake)


def patterns(resolver: URLResolver) -> Iterator[URLPattern]:
    """Every URL pattern below this one."""
    for each in resolver.url_patterns:
        if isinstance(each, URLResolver):
            yield from patterns(each)
        else:
            yield each


ROUTES = sorted({str(each.name) for each in patterns(get_resolver())})


def test_every_address_has_a_row_and_every_row_an_address() -> None:
    missing = "add rows for it to tests/access/table.py (and what they send to tests/access/world.py)"
    assert {row.route for row in ROWS} == set(ROUTES), missing


def test_every_setting_has_a_row() -> None:
    rows = {row.address.partition(":")[2] for row in ROWS if row.route == "settings"}
    assert set(CHANGES) - rows == set()


Sent = tuple[Row, str, str]


def everything(rows: Iterable[Row], places: Iterable[str] = SENT_IN) -> list[Sent]:
    """Each row in each place that it is about, by each person to whom the place makes a difference."""
    there = [(row, place) for row in rows for place in places if place in PLACES[row.about]]
    return [(row, place, who) for row, place in there for who in SENT_IN[place]]


def expected(sent: Iterable[Sent]) -> dict[str, str]:
    """What the table says, line by line."""
    return {line(*each): table.expected_of(each[0], each[1])[each[2]] for each in sent}


def line(row: Row, place: str, who: str) -> str:
    """As a difference names it."""
    return f"{row} in {place} as {who}"


@pytest.mark.parametrize("place", SENT_IN)
def test_each_person_gets_what_the_table_says(world: World, place: str) -> None:
    sent = everything(ROWS, [place])
    got = {
        line(row, place, who): str(world.send(row.method, row.address, place, who=who))
        for row, place, who in sent
    }
    assert differences(got, expected(sent)) == []


def test_each_scope_gets_what_the_table_says(world: World) -> None:
    got = {
        str(row): {
            scope: str(world.send(row.method, row.address, token=world.secrets[scope])) for scope in SCOPES
        }
        for row in TOKEN_ROWS
    }
    assert differences(got, {str(row): dict(row.expected) for row in TOKEN_ROWS}) == []
    assert set(got) == {str(row) for row in OF_API}


def test_a_token_with_all_scopes_may_what_its_owner_may(world: World) -> None:
    sent = [each for each in everything(OF_API) if each[2] != "anon"]
    got = {
        line(row, place, who): str(world.send(row.method, row.address, place, token=world.secrets[who]))
        for row, place, who in sent
    }
    assert differences(got, expected(sent)) == []


@pytest.mark.parametrize("wrong", NO_TOKENS)
def test_a_token_that_is_none_gets_nothing_nor_does_a_session_beside_it(world: World, wrong: str) -> None:
    secret = world.secrets[wrong]
    for who in ("anon", "root"):
        got = {str(row): str(world.send(row.method, row.address, who=who, token=secret)) for row in OF_API}
        assert differences(got, {str(row): "401" for row in OF_API}) == []


def test_a_token_opens_no_page(world: World) -> None:
    for secret in world.secrets.values():
        assert str(world.send("GET", "inbox", token=secret)) == "login"


def test_no_other_method_answers(world: World) -> None:
    got, wanted = {}, {}
    for route, method in ((route, method) for route in ROUTES for method in METHODS):
        rows = [row for row in ROWS if row.route == route]
        if method in {row.method for row in rows} or (method == "HEAD" and _readable(rows)):
            continue
        for who, cell in table.otherwise(method, route).items():
            got[f"{method} {route} as {who}"] = str(world.send(method, rows[0].address, who=who))
            wanted[f"{method} {route} as {who}"] = cell
    assert differences(got, wanted) == []


def _readable(rows: Iterable[Row]) -> bool:
    return any(row.method == "GET" for row in rows)


def test_head_is_get_without_its_body(world: World) -> None:
    for who in ("anon", "root"):
        head = {str(row): str(world.send("HEAD", row.address, who=who)) for row in READING}
        assert differences(head, {str(row): dict(row.expected)[who] for row in READING}) == []


def test_no_change_without_the_forms_token(world: World) -> None:
    got = {str(row): str(world.send(row.method, row.address, who="root", csrf=False)) for row in UNSAFE}
    assert differences(got, {str(row): "403" for row in UNSAFE}) == []


def test_a_program_with_a_token_of_its_own_needs_no_forms_token(world: World) -> None:
    rows = [row for row in OF_API if row in UNSAFE]
    secret = world.secrets["root"]
    got = {str(row): str(world.send(row.method, row.address, token=secret, csrf=False)) for row in rows}
    assert differences(got, {str(row): dict(row.expected)["root"] for row in rows}) == []


def test_nothing_changes_by_a_safe_method(world: World) -> None:
    addresses = {row.address.partition(":")[0]: row.address for row in reversed(ROWS)}.values()
    for address in addresses:
        world.prepared(address)
    before = digest()
    for method, address in ((method, address) for method in SAFE for address in addresses):
        outcome = world.send(method, address, who="root", keep=True)
        assert (method, address, outcome.statements) == (method, address, [])
    assert digest() == before


# Where somebody is signed in, when something was last used: what a request may note of itself.
NOTES = {"decisions_session": "*", "decisions_apitoken": "last_used_at", "auth_user": "last_login"}


def digest() -> str:
    """Of every row of every table, but for :data:`NOTES`."""
    found = hashlib.sha256()
    for model in apps.get_models(include_auto_created=True):
        noted = NOTES.get(model._meta.db_table, "")
        columns = [each.attname for each in model._meta.concrete_fields if each.attname != noted]
        rows = [] if noted == "*" else model._base_manager.order_by("pk").values_list(*columns)
        found.update(repr((model._meta.db_table, list(rows))).encode())
    return found.hexdigest()
