"""schemathesis against the API: it does what its document says, also with what the document does not allow."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core import signals
from django.db import close_old_connections, transaction
from django.middleware.csrf import get_token
from django.test import Client, RequestFactory
from hypothesis import given
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS
from schemathesis.core.result import Ok
from schemathesis.generation.case import Case

from decisions.models import Freeze
from tests.fuzz import examples
from tests.fuzz.api_world import World, api, make_world

pytestmark = pytest.mark.django_db

SCHEMA = api()
OPERATIONS: dict[str, Any] = {
    found.ok().label: found.ok() for found in SCHEMA.get_all_operations() if isinstance(found, Ok)
}
# Left out: whether a well-formed request is also accepted, which here depends on what is on record (409).
CHECKED = CHECKS.get_by_names(
    [
        *(
            "not_a_server_error",
            "status_code_conformance",
            "content_type_conformance",
            "response_schema_conformance",
        ),
        *(
            "response_headers_conformance",
            "negative_data_rejection",
            "missing_required_header",
            "ignored_auth",
        ),
    ]
)


@pytest.fixture
def world(db: None) -> Iterator[World]:
    """Rows, and the test's own connection kept over requests (as Django's own test client does)."""
    moments = (signals.request_started, signals.request_finished)
    for moment in moments:
        moment.disconnect(close_old_connections)
    yield make_world()
    for moment in moments:
        moment.connect(close_old_connections)


def test_the_document_can_be_read_to_its_end() -> None:
    assert len(OPERATIONS) >= 18


Who = tuple[dict[str, str], dict[str, str]]
PLAIN = {"Accept-Encoding": "identity"}


def session_of(user: User) -> dict[str, str]:
    """The cookies of somebody who is signed in, with their CSRF token."""
    client = Client()
    client.force_login(user)
    request = RequestFactory().get("/")
    token = get_token(request)
    cookies = {name: morsel.value for name, morsel in client.cookies.items()}
    return {**cookies, settings.CSRF_COOKIE_NAME: token}


def check(
    world: World, case: Case[Any], number: int, headers: dict[str, str], cookies: dict[str, str]
) -> None:
    """One call, all checks, and the database as before."""
    given_path = dict(case.path_parameters or {})
    case.path_parameters = world.place(case.path, given_path, number)
    checks = _checks_of(case, swapped=case.path_parameters != given_path, session=bool(cookies))
    with transaction.atomic():
        case.call_and_validate(headers=headers, cookies=cookies, checks=checks)
        transaction.set_rollback(True)


def _checks_of(case: Case[Any], *, swapped: bool, session: bool) -> list[Any]:
    """All, but: the cluster that an override asks is away here, so a 503 is right; an empty filter is none; and
    what was wrong may have been the row that was swapped for one that is there.
    """
    unfit = {"not_a_server_error"} if case.operation.label.endswith("/override/") else set()
    unfit |= {"ignored_auth"} if session else set()  # it takes the header away, not the session
    unfit |= {"negative_data_rejection"} if swapped or "" in dict(case.query or {}).values() else set()
    return [each for each in CHECKED if getattr(each, "__name__", "") not in unfit]


EARLY, LATE = "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"


def _each(world: World, label: str, mode: GenerationMode, client: Who) -> None:
    @examples(8)
    @given(case=OPERATIONS[label].as_strategy(generation_mode=mode), number=st.integers(0, 11))
    def each(case: Case[Any], number: int) -> None:
        check(world, case, number, *client)

    each()


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("label", OPERATIONS)
def test_with_a_token(world: World, label: str, mode: GenerationMode) -> None:
    _each(world, label, mode, ({**PLAIN, "Authorization": f"Bearer {world.token}"}, {}))


@pytest.mark.parametrize("label", [label for label in OPERATIONS if label.startswith("POST")])
def test_with_a_session(world: World, label: str) -> None:
    cookies = session_of(world.admin)
    headers = {**PLAIN, "X-CSRFToken": cookies[settings.CSRF_COOKIE_NAME], "Referer": "https://testserver/"}
    _each(world, label, GenerationMode.NEGATIVE, (headers, cookies))


# --- what schemathesis does not think of, on every address


@pytest.mark.parametrize(
    "what", ["%00", "a%00b", "%ff", "%ed%a0%80", "9" * 30, "9" * 5_000, "-1", "1.5", "x" * 9_000, "null"]
)
def test_odd_values_anywhere_are_no_error_of_ours(world: World, what: str) -> None:
    client = Client(headers={"Authorization": f"Bearer {world.token}"})
    for label, operation in OPERATIONS.items():
        method, path = label.split(" ")
        names = [parameter.name for parameter in operation.query]
        ends = [
            path.replace("{id}", what).replace("{name}", what),
            *(f"{path}?{name}={what}" for name in names),
        ]
        for end in ends:
            body = (
                f'{{"reason": "\\u0000", "cluster": "{what[:50]}", "text": "\\u0000", "version": {"9" * 30}}}'
            )
            answer = client.generic(
                method, end.replace("{id}", "1").replace("{name}", "prod"), body, "application/json"
            )
            assert answer.status_code in {200, 301, 400, 404, 409, 503}, (end, answer.content[:300])
            assert answer.status_code != 503 or "override" in end


@pytest.mark.parametrize(
    "place",
    ["", "x", "\x00", "9" * 30, "9" * 5_000, "-1", "2026-11-30", "0001-01-01T00:00:00+14:00", "\ud800"],
)
@pytest.mark.parametrize("kind", ["decisions", "cycles", "policies", "freezes", "clusters"])
def test_a_cursor_that_somebody_made_up(world: World, kind: str, place: str) -> None:
    client = Client(headers={"Authorization": f"Bearer {world.token}"})
    for made_up in (
        f"p={quote(place, errors='surrogatepass')}",
        f"o={place[:40]}",
        f"r=1&p={quote(place, errors='surrogatepass')}",
    ):
        cursor = base64.b64encode(made_up.encode("utf-8", "surrogatepass")).decode()
        assert client.get(f"/api/v1/{kind}/", {"cursor": cursor}).status_code in {200, 404}


@pytest.mark.parametrize(
    "when",
    [EARLY, LATE, "2026-13-01", "0", "infinity", "2026-11-30"],
)
def test_a_time_that_no_database_knows(world: World, when: str) -> None:
    client = Client(headers={"Authorization": f"Bearer {world.token}"})
    for name in ("since", "until"):
        assert client.get("/api/v1/decisions/", {name: when}).status_code in {200, 400}


def test_an_address_that_is_none_is_said_in_the_apis_own_form(world: World) -> None:
    answer = Client(headers={"Authorization": f"Bearer {world.token}"}).get("/api/v1/decisions/x/")
    assert (answer.status_code, answer.headers["Content-Type"]) == (404, "application/problem+json")
    assert Client().get("/api/v1/nothing/").status_code == 401


def test_a_change_by_session_needs_its_csrf_token(world: World) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(world.admin)
    answer = client.post("/api/v1/freezes/", {"reason": "x"}, "application/json", secure=True)
    assert (answer.status_code, Freeze.objects.filter(reason="x").exists()) == (403, False)
