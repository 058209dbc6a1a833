"""The words of the pages: no database, no request."""

import re
from datetime import timedelta
from typing import Any

import pytest

from decisions.models import Cluster, Decision, Eviction, Verdict
from decisions.queries import sentences
from deschedui.extender.outcomes import FailureMode
from deschedui.kube.eviction import EvictionCause
from tests.builders import FORECAST, NOW

OUTCOME: dict[str, Any] = {
    "effect": "deny", "decided_by": "failPolicy", "failure_mode": None, "reason": "", "detail": "", "http_status": None,
    "latency_ms": 2003.0, "url": "https://gate/evict", "fail_policy": "Deny", "ignorable": False,
}  # fmt: skip


def decision(**fields: Any) -> Decision:
    defaults = {"namespace": "shop", "pod_name": "web-1", "owner_kind": "ReplicaSet", "forecast": FORECAST}
    return Decision(**{**defaults, **fields})


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-5, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (130, "2m10s"), (599, "9m59s"), (600, "10m"), (10_799, "179m"),
     (10_800, "3h"), (3 * 3600 + 60, "3h1m"), (8 * 3600, "8h"), (47 * 3600, "47h"), (48 * 3600, "2d"),
     (51 * 3600, "2d3h"), (8 * 86_400, "8d"), (700 * 86_400, "700d"), (800 * 86_400, "2y70d"), (3000 * 86_400, "8y")],
)  # fmt: skip
def test_durations_are_kubectls(seconds: int, text: str) -> None:
    assert sentences.duration(seconds) == text


@pytest.mark.parametrize("mode", list(FailureMode))
def test_each_failure_mode_has_a_sentence_and_a_next_step_of_its_own(mode: FailureMode) -> None:
    mine = sentences.extender_advice({**OUTCOME, "failure_mode": mode.value})
    others = [
        sentences.extender_advice({**OUTCOME, "failure_mode": other.value})
        for other in FailureMode
        if other != mode
    ]
    assert mine.sentence
    assert mine.next_step
    assert mine.sentence not in {other.sentence for other in others}
    assert mine.next_step not in {other.next_step for other in others}


def test_a_timeout_says_after_how_long_and_against_what_limit() -> None:
    out = {**OUTCOME, "failure_mode": "timeout", "detail": "limit 2s"}
    assert sentences.extender_advice(out).sentence == "The extender had not answered after 2.0 s (limit 2s)."


def test_an_http_status_shows_the_beginning_of_the_body_as_text() -> None:
    out = {**OUTCOME, "failure_mode": "http_status", "http_status": 503, "detail": "HTTP 503: <h1>no"}
    assert "HTTP 503; the body begins “<h1>no”." in sentences.extender_advice(out).sentence


def test_what_the_client_says_of_a_failure_is_not_said_twice() -> None:
    def said(mode: str, detail: str) -> str:
        return sentences.extender_advice({**OUTCOME, "failure_mode": mode, "detail": detail}).sentence

    waited = said("timeout", "waiting for the answer after 2.01 s; the limit is httpTimeout 2s")
    assert waited.endswith("after 2.0 s (waiting for the answer; the limit is httpTimeout 2s).")
    assert said("dns", '"gate.old" does not resolve: unknown') == (
        'The extender\'s name "gate.old" does not resolve: unknown.'
    )
    assert said("tls", 'TLS with "gate" failed: wrong version') == (
        "The TLS handshake with the extender, as “gate”, failed: wrong version."
    )


def test_a_denial_for_want_of_an_answer_is_not_the_extenders() -> None:
    denied = {"verdict": Verdict.DENIED, "rule": "extender", "decision_reason": "no answer in time"}
    assert sentences.outcome(decision(**denied)) == "Denied by the extender: no answer in time"
    failed = decision(**denied, failure_mode="timeout", extender_decided_by="failPolicy")
    assert sentences.outcome(failed) == "Denied by failPolicy: no answer in time"


@pytest.mark.parametrize(
    ("status", "word"), [(401, "Authorization"), (404, "decisionVerb"), (302, "redirects")]
)
def test_the_next_step_depends_on_the_status(status: int, word: str) -> None:
    out = {**OUTCOME, "failure_mode": "http_status", "http_status": status}
    assert word in sentences.extender_advice(out).next_step


def test_what_ignorable_made_of_a_failure_is_said() -> None:
    out = {**OUTCOME, "failure_mode": "timeout", "effect": "allow", "decided_by": "ignorable"}
    assert "the missing answer counts as a yes" in sentences.what_it_meant(out)


@pytest.mark.parametrize("cause", list(EvictionCause))
def test_each_answer_of_the_eviction_api_has_a_next_step(cause: EvictionCause) -> None:
    found = sentences.eviction_advice(decision(cause=cause.value, message="what the API server said"))
    assert found.sentence == "What the API server said"
    assert found.next_step


def test_only_what_is_queued_waits_for_the_lease() -> None:
    waits = {"cause": "lease", "message": "the Lease cannot be checked"}
    queued = decision(eviction="queued", verdict="allowed", **waits)
    assert sentences.eviction_advice(queued).sentence == "The Lease cannot be checked"
    assert sentences.eviction_advice(decision(eviction="none", verdict="withdrawn", **waits)).sentence == ""


def test_a_withdrawal_has_many_reasons_and_claims_none() -> None:
    assert sentences.outcome(decision(verdict="withdrawn")) == "Withdrawn; the timeline says why."


@pytest.mark.parametrize("verdict", Verdict.values)
def test_every_verdict_has_an_icon_and_a_word(verdict: str) -> None:
    look = sentences.look(decision(verdict=verdict))
    assert look.icon
    assert look.word


@pytest.mark.parametrize("eviction", Eviction.values)
def test_every_eviction_status_is_a_clause(eviction: str) -> None:
    words = sentences.outcome(
        decision(verdict=Verdict.ALLOWED, eviction=eviction, decided_by_name="Ada", asker_name="nightly")
    )
    assert re.match(r"Approved by Ada; \S", words)


def test_a_good_forecast_objects_to_nothing() -> None:
    assert sentences.objections(decision()) == ()


@pytest.mark.parametrize(
    ("forecast", "words"),
    [
        ({"fits_on": []}, "no other node has room for its replacement"),
        ({"only_replica": True}, "it is the only replica: nothing serves until its replacement is Ready"),
        ({"ready": 2, "desired": 3, "ready_after": 1}, "it leaves 1 of 3 Ready"),
        ({"fit": "crowded"}, "its replacement fits only if others that are asked for stay"),
        ({"bound_volumes": [{"claim": "data-0", "node": "n1"}]}, "data-0 ties it to its node"),
        ({"warnings": ["annotated evict: false"]}, "annotated evict: false"),
    ],
)
def test_a_bad_forecast_objects_in_words(forecast: dict[str, Any], words: str) -> None:
    assert sentences.objections(decision(forecast={**FORECAST, **forecast})) == (words,)


def test_a_pdb_that_does_not_apply_objects_to_nothing() -> None:
    pdbs = [{"name": "web", "disruptions_allowed": 0, "blocks": False}]
    assert sentences.objections(decision(forecast={**FORECAST, "pdbs": pdbs, "pdb_applies": False})) == ()


def test_what_speaks_against_it_comes_first_among_the_chips() -> None:
    chips = sentences.chips(decision(forecast={**FORECAST, "only_replica": True}))
    assert [chip.text for chip in chips] == ["only replica", "fits on 2 nodes", "PDB web allows 1"]


def test_a_statefulset_comes_back_under_the_same_name() -> None:
    chips = sentences.chips(decision(owner_kind="StatefulSet"))
    assert "StatefulSet, same name" in [chip.text for chip in chips]


def test_the_time_left_is_a_share_of_the_clusters_pending_time() -> None:
    half = decision(verdict=Verdict.PENDING, expires_at=NOW + timedelta(minutes=30))
    half.cluster = Cluster(name="prod")
    assert sentences.share_left(half, NOW) == 0.5
