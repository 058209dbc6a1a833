"""The truth table: what an answer or a failure means for a pod."""

import json

import pytest

from deschedui.extender.config import FailPolicy
from deschedui.extender.outcomes import (
    Answered,
    DecidedBy,
    Effect,
    ExtenderOutcome,
    Failed,
    FailureMode,
    Observation,
    apply_policy,
    combine,
    interpret_response,
)
from deschedui.extender.texts import clean
from tests.extender.builders import outcome

AWAY = [mode for mode in FailureMode if mode is not FailureMode.INVALID_RESPONSE]


def judged(seen: Observation, *, ignorable: bool = False, fail_policy: str = "Deny") -> tuple[str, str]:
    found = apply_policy(seen, ignorable=ignorable, fail_policy=FailPolicy(fail_policy))
    return found.effect.value, found.decided_by.value


@pytest.mark.parametrize("fail_policy", list(FailPolicy))
@pytest.mark.parametrize("ignorable", [True, False])
@pytest.mark.parametrize("allow", [True, False])
def test_an_answer_decides_whatever_the_policy(allow: bool, ignorable: bool, fail_policy: str) -> None:
    said = judged(Answered(allow, ""), ignorable=ignorable, fail_policy=fail_policy)
    assert said == ("allow" if allow else "deny", "answer")


@pytest.mark.parametrize("mode", AWAY)
@pytest.mark.parametrize(
    ("fail_policy", "effect"), [("Deny", "deny"), ("Allow", "allow"), ("Ignore", "skip")]
)
def test_fail_policy_decides_a_failure(mode: FailureMode, fail_policy: str, effect: str) -> None:
    assert judged(Failed(mode, ""), fail_policy=fail_policy) == (effect, "failPolicy")


@pytest.mark.parametrize("mode", AWAY)
@pytest.mark.parametrize("fail_policy", list(FailPolicy))
def test_ignorable_turns_a_failure_into_allow(mode: FailureMode, fail_policy: str) -> None:
    assert judged(Failed(mode, ""), ignorable=True, fail_policy=fail_policy) == ("allow", "ignorable")


@pytest.mark.parametrize("ignorable", [True, False])
@pytest.mark.parametrize(
    ("fail_policy", "said"),
    [("Deny", ("deny", "failPolicy")), ("Allow", ("deny", "malformed")), ("Ignore", ("skip", "failPolicy"))],
)
def test_a_malformed_answer_never_allows(ignorable: bool, fail_policy: str, said: tuple[str, str]) -> None:
    seen = Failed(FailureMode.INVALID_RESPONSE, "")
    assert judged(seen, ignorable=ignorable, fail_policy=fail_policy) == said


@pytest.mark.parametrize(
    "status", [100, 101, 201, 202, 204, 206, 301, 302, 307, 400, 404, 418, 500, 503, 599]
)
def test_any_status_but_200_is_a_failure_whatever_the_body(status: int) -> None:
    seen = interpret_response(status, b'{"allow":true}')
    assert seen == Failed(FailureMode.HTTP_STATUS, f'HTTP {status}: {{"allow":true}}', http_status=status)


def test_of_an_error_page_300_characters_are_kept_as_text() -> None:
    seen = interpret_response(503, b"<b>\xff\x00" + "é".encode() * 1000)
    assert isinstance(seen, Failed)
    assert seen.detail == r"HTTP 503: <b>�\u0000" + "é" * 290


def test_a_redirect_says_where_it_led_without_its_query() -> None:
    seen = interpret_response(302, b"", location="https://sso.example/login?token=hunter2#x")
    assert isinstance(seen, Failed)
    assert (
        seen.detail == "HTTP 302, redirects are not followed (to https://sso.example/login), without a body"
    )


def test_an_error_is_a_failure_unless_the_answer_is_no() -> None:
    failed = interpret_response(200, b'{"allow":true,"error":"db away"}')
    denied = interpret_response(200, b'{"allow":false,"error":"db away"}')
    assert failed == Failed(FailureMode.EXTENDER_ERROR, "db away", reason="db away", http_status=200)
    assert denied == Answered(allow=False, reason="db away")


def test_a_compressed_body_is_not_opened() -> None:
    seen = interpret_response(200, b'{"allow":true}', content_encoding="gzip")
    assert isinstance(seen, Failed)
    assert (seen.mode, "gzip" in seen.detail) == (FailureMode.INVALID_RESPONSE, True)


def test_a_reason_is_kept_up_to_4096_characters() -> None:
    said = apply_policy(
        Answered(allow=False, reason="x" * 200_000), ignorable=False, fail_policy=FailPolicy.DENY
    )
    assert said.reason == "x" * 4096


def test_markup_stays_text_and_line_breaks_stay() -> None:
    assert clean("<img src=x>\n\tno") == "<img src=x>\n\tno"


@pytest.mark.parametrize("bad", ["\x00", "\ud800", "\x1b", "\x85", "\u202e", "\u2066"])
def test_what_cannot_be_stored_or_shown_is_an_escape(bad: str) -> None:
    assert clean(f"a{bad}b") == rf"a\u{ord(bad):04x}b"


@pytest.mark.parametrize("mode", list(FailureMode))
def test_every_failure_has_a_reason_to_show(mode: FailureMode) -> None:
    assert apply_policy(Failed(mode, "x"), ignorable=False, fail_policy=FailPolicy.DENY).reason


@pytest.mark.parametrize("mode", [None, FailureMode.TIMEOUT])
def test_an_outcome_survives_being_stored(mode: FailureMode | None) -> None:
    given = outcome(
        Effect.SKIP, mode, reason="r", detail="d", http_status=200, latency_ms=1.5, url="http://h"
    )
    assert ExtenderOutcome.from_dict(json.loads(json.dumps(given.as_dict()))) == given


def test_only_an_allow_out_of_a_failure_is_one() -> None:
    assert outcome(Effect.ALLOW, FailureMode.TIMEOUT).allowed_by_failure
    assert not outcome(Effect.ALLOW).allowed_by_failure
    assert not outcome(Effect.DENY, FailureMode.TIMEOUT).allowed_by_failure


def test_an_open_circuit_always_needs_a_human() -> None:
    assert outcome(Effect.ALLOW, FailureMode.CIRCUIT_OPEN).always_needs_human
    assert not outcome(Effect.ALLOW, FailureMode.TIMEOUT).always_needs_human


@pytest.mark.parametrize(
    ("effects", "stands"),
    [
        ("allow allow", "allow"),
        ("allow skip", "skip"),
        ("skip deny allow", "deny"),
        ("deny", "deny"),
        ("skip allow", "skip"),
    ],
)
def test_any_denial_wins_then_skip_then_allow(effects: str, stands: str) -> None:
    assert combine([outcome(Effect(effect)) for effect in effects.split()]).effect == stands


def test_among_yeses_the_doubtful_one_stands() -> None:
    open_one = outcome(Effect.ALLOW, FailureMode.CIRCUIT_OPEN)
    failed = outcome(Effect.ALLOW, FailureMode.DNS)
    assert combine([outcome(), failed]) is failed
    assert combine([failed, open_one, outcome()]) is open_one


def test_nobody_asked_is_not_a_yes() -> None:
    with pytest.raises(ValueError, match="nobody was asked"):
        combine([])


def test_decided_by_is_spelled_as_the_design_spells_it() -> None:
    assert [each.value for each in DecidedBy] == ["answer", "ignorable", "failPolicy", "malformed"]
