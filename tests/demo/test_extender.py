"""The sample extender, asked by our own client: each failure mode can be seen."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deschedui.demo.extender import answer, pod_name
from deschedui.extender.breaker import Breakers
from deschedui.extender.client import ExtenderClient, ExtenderRequest
from deschedui.extender.config import ExtenderArgs
from deschedui.extender.outcomes import Effect, ExtenderOutcome, FailureMode


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The extender as a process of its own; its `http://` address."""
    ready = tmp_path_factory.mktemp("extender") / "ready.json"
    with subprocess.Popen(
        [sys.executable, "-m", "deschedui.demo.extender", "--ready-file", str(ready)]
    ) as process:
        try:
            _wait_for(ready, process)
            yield json.loads(ready.read_text())["url"]
        finally:
            process.terminate()


def _wait_for(ready: Path, process: subprocess.Popen[bytes]) -> None:
    while not ready.exists():
        try:
            process.wait(0.02)
        except subprocess.TimeoutExpired:
            continue
        pytest.fail(f"the extender ended with {process.returncode}")


def extender(url: str, verb: str) -> ExtenderArgs:
    """What the demo's policy says of it, but more patient than the machine is busy."""
    said = {"urlPrefix": url, "decisionVerb": verb, "ignorable": False, "httpTimeout": "700ms"}
    return ExtenderArgs.model_validate(said)


def question(pod: str) -> ExtenderRequest:
    whole = {"metadata": {"name": pod, "namespace": "shop"}}
    return ExtenderRequest(pod=whole, node=None, name=pod, namespace="shop")


def ask(url: str, verb: str, *pods: str) -> list[ExtenderOutcome]:
    """Ask about pods, by name."""
    with ExtenderClient([extender(url, verb)]) as client:
        answers = client.ask([question(p) for p in pods], deadline_seconds=20)
    return [outcomes[0] for outcomes in answers if outcomes]


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        ("payments-5d9c7f-abcde", "deploy freeze for payments until 18:00 (CHG-20417)"),
        ("postgres-0", "postgres-0 is the primary: switch over first, then evict it"),
        ("loki-0", "loki-0 is the leader of the raft group"),
    ],
)
def test_it_says_no_with_a_reason(url: str, pod: str, reason: str) -> None:
    outcome = ask(url, "evict", pod)[0]
    assert (outcome.effect, outcome.reason, outcome.failure_mode) == (Effect.DENY, reason, None)


def test_it_says_yes_to_most(url: str) -> None:
    assert {o.effect for o in ask(url, "evict", "cart-1", "postgres-1", "loki-2", "payments2-x")} == {
        Effect.ALLOW
    }


@pytest.mark.parametrize(
    ("pod", "mode"),
    [
        ("clickstream-7f-x", FailureMode.TIMEOUT),
        ("spark-driver-7f-x", FailureMode.HTTP_STATUS),
        ("airflow-web-7f-x", FailureMode.EXTENDER_ERROR),
        ("jupyter-7f-x", FailureMode.INVALID_RESPONSE),
        ("dbt-docs-7f-x", FailureMode.CONNECTION),
        ("superset-7f-x", FailureMode.INVALID_RESPONSE),
    ],
)
def test_analytics_fails_in_its_own_way(url: str, pod: str, mode: FailureMode) -> None:
    assert ask(url, "analytics", pod)[0].failure_mode is mode


def test_it_speaks_no_tls(url: str) -> None:
    outcome = ask(url.replace("http:", "https:"), "evict", "keycloak-0")[0]
    assert outcome.failure_mode is FailureMode.TLS


def test_after_five_closed_connections_nobody_is_asked(url: str) -> None:
    questions = [question(f"p-{n}") for n in range(6)]
    with ExtenderClient([extender(url, "away")]) as client:
        first = client.ask(questions, deadline_seconds=20)
        breakers = Breakers.closed(1).after(first)
        then = client.ask(questions[:1], deadline_seconds=20, breakers=breakers)[0]
    assert [o[0].failure_mode for o in first if o] == [FailureMode.CONNECTION] * 6
    assert then is not None
    assert then[0].failure_mode is FailureMode.CIRCUIT_OPEN


@pytest.mark.parametrize("request_", [{}, {"pod": None}, {"pod": {"metadata": []}}, {"podName": None}])
def test_a_request_without_a_pod_names_none(request_: dict[str, object]) -> None:
    assert pod_name(request_) == ""


def test_another_path_is_not_found() -> None:
    assert answer("/nonsense", {"podName": "p"}).status == 404
