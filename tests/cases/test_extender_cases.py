"""Cases from real reports: areas extender-config and extender-response, each under its id.

Times are scaled down where a case only fixes the order of events; `expect` speaks in our failure modes.
"""

import json
from datetime import timedelta

import httpx
import pytest

from deschedui.extender.client import ExtenderClient
from deschedui.extender.config import FailPolicy, parse_go_duration
from deschedui.extender.outcomes import Effect, ExtenderOutcome, FailureMode
from tests.extender.builders import answer_of, args, ask_one, objections, says
from tests.extender.servers import answering, serving


@pytest.mark.parametrize(
    ("text", "seconds"), [("5s", 5), ("1m30s", 90), ("500ms", 0.5), ("1.5s", 1.5), ("1h", 3600)]
)
def test_ec_01_an_http_timeout_is_go_duration_text(text: str, seconds: float) -> None:
    assert args(httpTimeout=text).timeout_seconds == seconds


@pytest.mark.parametrize("text", ["0s", "0", "-5s"])
def test_ec_01_zero_and_less_are_durations_and_refused_all_the_same(text: str) -> None:
    assert parse_go_duration(text, positive=False) <= timedelta(0)
    [said] = objections(httpTimeout=text)
    assert text in said


@pytest.mark.parametrize("value", ["", 5, 5_000_000_000, "5", "1d", "5 s", "1H"])
def test_ec_01_anything_else_is_refused_by_name_with_value_and_example(value: object) -> None:
    [said] = objections(httpTimeout=value)
    assert said.startswith("httpTimeout")
    assert str(value) in said
    assert "5s" in said


def test_ec_01_a_missing_http_timeout_is_required() -> None:
    [said] = objections(httpTimeout=None)
    assert said.startswith("httpTimeout is required")


def test_ec_01_integers_of_old_configurations_are_explained() -> None:
    [said] = objections(httpTimeout=5_000_000_000)
    assert "nanoseconds" in said


@pytest.mark.parametrize("value", ["Deny", "Allow", "Ignore"])
def test_ec_04_fail_policy_is_taken_in_exactly_this_spelling(value: str) -> None:
    assert args(failPolicy=value).fail_policy == value


@pytest.mark.parametrize("value", ["deny", "ALLOW", "Permit", ""])
def test_ec_04_any_other_fail_policy_is_refused(value: str) -> None:
    [said] = objections(failPolicy=value)
    assert f'"{value}"' in said


def test_ec_04_a_missing_fail_policy_is_deny() -> None:
    assert args(failPolicy=None).fail_policy is FailPolicy.DENY


def test_ec_05_ignorable_decides_over_fail_policy_and_the_record_says_so() -> None:
    given = args(urlPrefix="http://127.0.0.1:1", ignorable=True, failPolicy="Deny", httpTimeout="1s")
    with ExtenderClient([given]) as client:
        said = ask_one(client)
    assert (said.effect, said.failure_mode) == (Effect.ALLOW, FailureMode.CONNECTION)
    stored = said.as_dict()
    assert (stored["ignorable"], stored["fail_policy"], stored["decided_by"]) == (True, "Deny", "ignorable")
    assert "only counts for malformed answers" in given.warnings()[0]


@pytest.mark.parametrize("ignorable", [True, False])
def test_er_01_text_is_no_boolean(ignorable: bool) -> None:
    said = answer_of(says('{"allow":"true","reason":"ok"}'), ignorable=ignorable)
    assert (said.effect, said.failure_mode) == (Effect.DENY, FailureMode.INVALID_RESPONSE)
    assert "allow must be a boolean, got string" in said.detail


@pytest.mark.parametrize(("ignorable", "effect"), [(False, Effect.DENY), (True, Effect.ALLOW)])
def test_er_02_204_is_not_200(ignorable: bool, effect: Effect) -> None:
    said = answer_of(says(b"", 204), ignorable=ignorable)
    assert (said.effect, said.failure_mode, said.http_status) == (effect, FailureMode.HTTP_STATUS, 204)


@pytest.mark.parametrize("ignorable", [True, False])
@pytest.mark.parametrize("fail_policy", list(FailPolicy))
@pytest.mark.parametrize("body", ["", "null", "{}", "[]", '{"allow":null}', '{"reason":"looks fine"}'])
def test_er_04_without_allow_it_is_never_allowed(body: str, fail_policy: FailPolicy, ignorable: bool) -> None:
    said = answer_of(says(body), ignorable=ignorable, failPolicy=fail_policy.value)
    assert said.failure_mode is FailureMode.INVALID_RESPONSE
    assert said.effect is not Effect.ALLOW
    assert "allow is" in said.detail


@pytest.mark.parametrize(("ignorable", "effect"), [(False, Effect.DENY), (True, Effect.ALLOW)])
def test_er_06_an_error_is_a_failed_call(ignorable: bool, effect: Effect) -> None:
    said = answer_of(says('{"allow":true,"error":"inventory database unavailable"}'), ignorable=ignorable)
    assert (said.effect, said.failure_mode) == (effect, FailureMode.EXTENDER_ERROR)
    assert said.reason == "inventory database unavailable"


@pytest.mark.parametrize(("ignorable", "effect"), [(False, Effect.DENY), (True, Effect.ALLOW)])
def test_er_08_a_dripping_body_ends_at_the_limit(ignorable: bool, effect: Effect) -> None:
    body = b'{"allow":true}'
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
    said = _dripped(head, body, ignorable=ignorable)
    assert (said.effect, said.failure_mode) == (effect, FailureMode.TIMEOUT)
    assert said.latency_ms < 250


def _dripped(head: bytes, body: bytes, *, ignorable: bool) -> ExtenderOutcome:
    """A tenth of the case's times: a byte every 40 ms, 560 ms in all, against a limit of 200 ms."""
    drip = answering(head, *[bytes([byte]) for byte in body], every=0.04)
    with serving(drip) as server:
        given = args(urlPrefix=server.url, ignorable=ignorable, httpTimeout="200ms")
        with ExtenderClient([given]) as client:
            return ask_one(client)


def test_er_09_a_redirect_is_not_followed() -> None:
    asked: list[str] = []

    def script(request: httpx.Request) -> httpx.Response:
        asked.append(f"{request.method} {request.url}")
        return httpx.Response(302, headers={"Location": "https://sso.example/login"})

    said = answer_of(script)
    assert (said.effect, said.failure_mode, said.http_status) == (Effect.DENY, FailureMode.HTTP_STATUS, 302)
    assert asked == ["POST http://ext.test/evict"]


def test_er_10_a_long_reason_is_bounded_and_stays_text() -> None:
    reason = "<img src=x onerror=alert(1)>\n" + "x" * 200_000
    said = answer_of(says(json.dumps({"allow": False, "reason": reason})))
    assert said.effect is Effect.DENY
    assert said.reason == reason[:4096]


def test_er_10_a_body_over_one_mebibyte_is_refused() -> None:
    said = answer_of(says(json.dumps({"allow": True, "reason": "x" * 1_048_576})), ignorable=True)
    assert (said.effect, said.failure_mode) == (Effect.DENY, FailureMode.INVALID_RESPONSE)
    assert "larger than 1 MiB" in said.detail
