"""Every answer tells the browser how little it may do: every address, as anybody, and every error."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import path

from decisions.models import Cluster, Cycle
from decisions.web.headers import with_headers
from deschedui.urls import urlpatterns as real_urls
from tests.builders import NOW
from tests.web.addresses import addresses, routes
from tests.web.conftest import Make, browser_of
from tests.web.pages import HTMX

PAGE = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self'",
    "connect-src": "'self'",
    "form-action": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
}
DOCUMENTATION = {**PAGE, "img-src": "'self' data:"}
OTHERS = {
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def policy_of(response: Any) -> dict[str, str]:
    """The policy of an answer, by directive."""
    directives = [part.strip().partition(" ") for part in response["Content-Security-Policy"].split(";")]
    return {name: value for name, _, value in directives if name}


def assert_closed(response: Any, policy: dict[str, str] = PAGE) -> None:
    """The answer has every header, with the narrow values."""
    assert policy_of(response) == policy
    assert {name: response.get(name) for name in OTHERS} == OTHERS
    assert "camera=()" in response["Permissions-Policy"]


@pytest.fixture
def pk(make: Make, cluster: Cluster) -> int:
    """A number under which there are a decision and a cycle."""
    pk = make().pk
    Cycle.objects.create(
        pk=pk,
        cluster=cluster,
        kind="manual",
        state="completed",
        started_at=NOW,
        deadline_at=NOW,
        heartbeat_at=NOW,
    )
    return int(pk)


def policy_at(address: str) -> dict[str, str]:
    return DOCUMENTATION if address == "/api/docs/" else PAGE


@pytest.mark.parametrize(
    ("method", "headers"), [("get", {}), ("get", HTMX), ("post", {}), ("post", HTMX), ("put", {})]
)
def test_every_address_answers_an_admin_with_them(
    admin: User, pk: int, method: str, headers: dict[str, str]
) -> None:
    browser = browser_of(admin)
    for address in sorted(addresses(pk=pk), key=lambda each: each in {"/logout", "/password"}):
        assert_closed(getattr(browser, method)(address, headers=headers), policy_at(address))


@pytest.mark.parametrize("method", ["get", "post"])
def test_and_everybody_else(db: None, method: str) -> None:
    for address in addresses(pk=1):
        assert_closed(getattr(Client(), method)(address), policy_at(address))


def test_the_table_of_addresses_is_whole() -> None:
    assert {"/", "/d/<int:pk>/deny", "/api/v1/decisions/", "/api/docs/", "/healthz", "/login"} <= set(
        routes()
    )


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/nothing/here", 404),
        ("/d/999999/", 404),
        ("/history", 301),
        ("/history/?q=%00", 400),
        ("/api/v1/nope/", 404),
    ],
)
def test_errors_and_redirects_have_them(as_admin: Client, pk: int, address: str, status: int) -> None:
    response = as_admin.get(address)
    assert response.status_code == status
    assert_closed(response)


def test_a_wrong_host_gets_them(db: None) -> None:
    response = Client().get("/", headers={"host": "evil.example"})
    assert response.status_code == 400
    assert_closed(response)


def test_a_form_without_its_token_gets_them(admin: User, pk: int) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(admin)
    response = strict.post(f"/d/{pk}/approve")
    assert response.status_code == 403
    assert_closed(response)


@pytest.mark.parametrize("file", ["decisions/base.css", "decisions/live.js", "decisions/icon.svg"])
def test_static_files_have_them(settings: Any, client: Client, file: str) -> None:
    settings.WHITENOISE_USE_FINDERS = settings.WHITENOISE_AUTOREFRESH = True
    response = client.get(f"/static/{file}")
    assert response.status_code == 200
    assert_closed(response)


def breaks(_request: HttpRequest) -> HttpResponse:
    """A page with an error of ours in it."""
    raise RuntimeError("an error of ours")


def suspects(_request: HttpRequest) -> HttpResponse:
    """A page that is asked for something that no browser asks for."""
    raise SuspiciousOperation("no browser sends this")


urlpatterns = [path("breaks", breaks), path("suspects", suspects), *real_urls]


@pytest.mark.urls("tests.web.test_headers")
@pytest.mark.parametrize(("address", "status"), [("/breaks", 500), ("/suspects", 400)])
def test_errors_of_ours_have_them(db: None, address: str, status: int) -> None:
    response = Client(raise_request_exception=False).get(address)
    assert response.status_code == status
    assert "To the inbox" in response.content.decode()
    assert_closed(response)


# --- what no page answers ------------------------------------------------------------------------------------


def answered(*given: tuple[bytes, bytes]) -> Iterator[tuple[str, str]]:
    """The headers of an answer below Django that had only these."""
    sent: list[Any] = []

    async def application(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 400, "headers": list(given)})
        await send({"type": "http.response.body", "body": b""})

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(with_headers(application)({"type": "http"}, None, send))  # type: ignore[arg-type]
    yield from ((name.decode(), value.decode()) for name, value in sent[0]["headers"])


def test_an_answer_that_no_page_gives_may_do_nothing() -> None:
    assert dict(answered())["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert {name.lower() for name in OTHERS} <= set(dict(answered()))


def test_what_an_answer_says_itself_stays() -> None:
    own = (b"Content-Security-Policy", b"default-src 'self'")
    names = [name.lower() for name, _ in answered(own)]
    assert names.count("content-security-policy") == 1
