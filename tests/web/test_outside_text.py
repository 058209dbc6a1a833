"""Text from outside is text, whichever way it leaves; and no template or view can forget that."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.template import engines
from django.test import Client
from django.utils import timezone

from decisions.models import Cluster, Cycle, Decision, fields
from decisions.templatetags.deschedui import linked
from tests.payloads import PAYLOADS, fill, outside_columns
from tests.test_text import Parts, dangerous
from tests.web.addresses import addresses

ROOT = Path(__file__).parents[2]
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
SOURCES = sorted((ROOT / "decisions").rglob("*.py"))


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


# --- every address, full of payloads -----------------------------------------------------------------------


@pytest.fixture
def world(cluster: Cluster, admin: User) -> list[Decision]:
    """Every payload in every field."""
    return fill(cluster, admin, timezone.now())


def read(response: Any) -> str:
    content = b"".join(response.streaming_content) if response.streaming else response.content
    return str(content.decode())


def leaks(response: Any) -> list[str]:
    """What of a payload is more than text in this answer."""
    body = read(response)
    found = sorted({f"U+{ord(each):04X}" for each in dangerous(body)} - {"U+0009", "U+000A", "U+000D"})
    if response.get("Content-Type", "").startswith("text/html"):
        names = Parts(body).names
        found += [name for name in names if name in {"data-pwn", "style"} or name.startswith(("on", "hx-on"))]
    return found


def test_no_address_lets_a_payload_through(as_admin: Client, world: list[Decision]) -> None:
    cycle = Cycle.objects.latest("pk").pk
    lists = [f"/cycles/{cycle}/?show={each}" for each in ("filtered", "nominated")]
    pages = [each for each in addresses(pk=world[6].pk) if each not in {"/logout", "/password", "/api/docs/"}]
    found = {address: leaks(as_admin.get(address)) for address in (*pages, *lists)}
    assert {address: what for address, what in found.items() if what} == {}


def test_every_column_for_outside_text_is_full_of_it(world: list[Decision]) -> None:
    """A new column that takes any text joins the payloads, or this says that it is empty in each row."""
    models = [
        model for model in apps.get_app_config("decisions").get_models() if list(outside_columns(model))
    ]
    empty = [
        f"{model.__name__}.{column.name}"
        for model in models
        if model._default_manager.exists()
        for column in outside_columns(model)
        if not model._default_manager.exclude(**{column.name: ""}).exists()
    ]
    assert empty == ["Cluster.policy_file", "Freeze.lifted_by", "AuditEntry.reason"]


def test_the_api_gives_the_stored_text_in_escapes(as_admin: Client, world: list[Decision]) -> None:
    row = world[list(PAYLOADS).index("bidi")]
    response = as_admin.get(f"/api/v1/decisions/{row.pk}/")
    assert dangerous(response.content.decode()) == []
    assert response.json()["reason"] == PAYLOADS["bidi"]


def test_the_json_file_gives_the_stored_text_too(as_admin: Client, world: list[Decision]) -> None:
    text = read(as_admin.get("/history/decisions.json"))
    assert set(dangerous(text)) <= {"\n"}
    assert PAYLOADS["hidden"] in {row["reason"] for row in json.loads(text)}


def test_the_csv_file_is_one_line_a_decision_and_runs_nothing(
    as_admin: Client, world: list[Decision]
) -> None:
    lines = read(as_admin.get("/history/decisions.csv")).splitlines()
    rows = list(csv.DictReader(lines))
    assert len(rows) == len(lines) - 1 == len(world)
    assert not [cell for row in rows for cell in row.values() if cell[:1] in "=+-@＝"[:] and cell]
    assert f"'{PAYLOADS['formula']}" in {row["reason"] for row in rows}


# --- what a template cannot forget ---------------------------------------------------------------------------


def test_a_variable_needs_no_filter_to_be_shown_as_it_is() -> None:
    shown = engines["django"].from_string('<p title="{{ x }}">{{ x }}</p>').render({"x": "<b>\u202e"})
    assert shown == (
        '<p title="&lt;b&gt;\\u202e">&lt;b&gt;'
        '<span class="esc" title="U+202E RIGHT-TO-LEFT OVERRIDE">\\u202e</span></p>'
    )


@pytest.mark.parametrize("template", TEMPLATES, ids=named)
def test_no_template_switches_escaping_off_or_runs_a_script_of_its_own(template: Path) -> None:
    text = template.read_text()
    for forbidden in (
        r"\|\s*safe", r"autoescape", r"{%\s*filter", r"<script(?![^>]*\ssrc=)", r"<style", r"\sstyle=", r"\son\w+=",
        r"javascript:", r"\shx-on", r"\sdata-hx-", r"hx-vals=.js:",
    ):  # fmt: skip
        assert not re.search(forbidden, text, re.IGNORECASE), forbidden
    assert not re.search(r"[\s\"'][\w:-]+=\s*{{", text), "an attribute without quotes"
    assert dangerous(text.replace("\n", "")) == []


# Addresses that a template may write: of our own routes, or made of them in a view. Nothing from outside: a text with
# a web address in it goes through the filter `linked`.
OURS = re.compile(
    r"(/$|({% if [^%]+%})?{% url [^%]+%}|{% static [^%]+%}|{% address|{% only |#"
    r"|{{ \w+(\.\w+)*\.get_absolute_url }}|{{ next }}"
    r"|{{ here\|default:'\?' }}|{{ bar\.href }}|{{ swagger_ui_(css|bundle) }}|{{ script_url }}|\?)"
)
WITH_AN_ADDRESS = r"""\s(?:href|src|action|formaction|hx-get|hx-post|xlink:href|poster|data)=(["'])(.*?)\1"""


@pytest.mark.parametrize("template", TEMPLATES, ids=named)
def test_every_address_in_a_template_is_ours(template: Path) -> None:
    found = [value for _, value in re.findall(WITH_AN_ADDRESS, template.read_text(), re.DOTALL)]
    assert [value for value in found if not OURS.match(value)] == []


MAKES_HTML = re.compile(r"\b(mark_safe|format_html|format_html_join|SafeString|SafeText|html_safe)\b")
MAY_MAKE_HTML = {"decisions/templatetags/deschedui.py", "decisions/web/rendering.py"}


def test_html_is_made_in_one_place_beside_the_templates() -> None:
    assert {named(each) for each in SOURCES if MAKES_HTML.search(each.read_text())} == MAY_MAKE_HTML


def test_no_view_answers_with_text_that_no_template_made() -> None:
    """A plain answer is a sentence of ours; a page is rendered."""
    allowed = {'"', "status=", "sentence", ")", '"\\n".join(fragments'}
    found = [
        f"{named(source)}: {argument}"
        for source in (ROOT / "decisions" / "web").glob("*.py")
        for argument in re.findall(r"\bHttpResponse\(([^\n]*)", source.read_text())
        if not any(argument.startswith(each) for each in allowed)
    ]
    assert found == []


# --- links -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
def test_a_filtered_text_has_no_element_but_links_to_the_web(payload: str) -> None:
    page = Parts(linked(payload))
    assert set(page.tags) <= {"a"}
    assert {value for value in page.values if "://" in value} <= {
        "https://evil.example/x.png",
        "https://evil.example/",
    }


def test_a_ticket_is_a_link_and_the_sentence_goes_on() -> None:
    assert linked("see https://t.example/INC-1. <b>") == (
        'see <a href="https://t.example/INC-1" rel="noopener noreferrer" target="_blank">https://t.example/INC-1</a>'
        ". &lt;b&gt;"
    )


@pytest.mark.parametrize(
    "text", ["javascript:x", "https://u@h.example", "//h.example", "https://h.exam…", "ftp://h"]
)
def test_other_addresses_stay_text(text: str) -> None:
    assert "<a" not in linked(text)


# --- on its way in ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["freeze", "connection", "add-caller", "start", "login"])
def test_a_form_with_a_nul_is_refused_in_a_sentence(as_admin: Client, cluster: Cluster, what: str) -> None:
    path = {"start": "/cycles/start", "login": "/login"}.get(what, "/settings/")
    response = as_admin.post(path, {"what": what, "cluster": "pr\0d", "reason": "x\0", "username": "a\0"})
    assert response.status_code == 400
    assert "NUL" in response.content.decode()


@pytest.mark.parametrize("name", ["q", "pod_name", "cluster", "asker"])
def test_a_filter_of_the_api_is_bounded(as_admin: Client, cluster: Cluster, name: str) -> None:
    assert as_admin.get(f"/api/v1/decisions/?{name}={'x' * 400}").status_code == 200
    assert as_admin.get(f"/api/v1/decisions/?{name}={'x' * 401}").status_code == 400


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
def test_what_is_stored_is_the_text_itself(payload: str) -> None:
    stored = fields.fit(payload)
    assert stored.replace("\\u0000", "\0").replace("\\ud800", "\ud800") == payload
