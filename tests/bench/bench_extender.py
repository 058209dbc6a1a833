"""The extender client: many pods asked about, against asking about one after the other."""

import time
from collections.abc import Mapping, Sequence

import httpx
import msgspec

from deschedui.descheduler.plan import Answer, AnswerKind, Answers, Nomination, Plan, QuestionKey
from deschedui.descheduler.policy.load import load
from deschedui.descheduler.policy.model import Policy
from deschedui.descheduler.rounds import decide
from deschedui.descheduler.snapshot import Snapshot
from deschedui.extender.client import ExtenderClient, ExtenderRequest, FileRules
from deschedui.extender.config import ExtenderArgs, read_extender
from tests.bench.extender_server import running
from tests.bench.lines import BenchLine, wanted
from tests.engine.builders import NOW, build_node, build_pod

PODS = 10_000
SAMPLE = 400
DELAY_MS = 5.0
DENIED = 5_000
ASK = f"extender-ask: {PODS} pods of a {DELAY_MS:g} ms extender; reference one by one (extrapolated from {SAMPLE})"

SLOT = f"extender-slot: one free slot and {DENIED} pods denied; reference one by one (extrapolated from {SAMPLE})"
POLICY = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
maxNoOfPodsToEvictTotal: 1
profiles:
- name: bench
  pluginConfig:
  - name: PodLifeTime
    args: {maxPodLifeTimeSeconds: 60}
  - name: ExternalDecision
    args:
      extender: {urlPrefix: "URL", decisionVerb: evict, ignorable: false, httpTimeout: 5s}
  plugins:
    deschedule: {enabled: [PodLifeTime]}
    preevictionfilter: {enabled: [ExternalDecision]}
"""


def main() -> list[BenchLine]:
    """The lines of this module."""
    lines = []
    with running(DELAY_MS) as url:
        if wanted(ASK, __name__):
            lines.append(BenchLine(ASK, _ours(url), _one_by_one(url) / SAMPLE * PODS, bound=0.05))
        if wanted(SLOT, __name__):
            lines.append(BenchLine(SLOT, _one_slot(url), _one_by_one(url) / SAMPLE * DENIED, bound=0.2))
    return lines


def _args(url: str) -> ExtenderArgs:
    return read_extender({"urlPrefix": url, "decisionVerb": "evict", "ignorable": False, "httpTimeout": "5s"})


def _questions(count: int) -> list[ExtenderRequest]:
    """Pods of 5 kB and nodes of 10 kB, as JSON, the way a listing brings them."""
    nodes = [_object(f"node-{number}", 80) for number in range(200)]
    return [
        ExtenderRequest(
            pod=_object(f"web-{number}", 40), node=nodes[number % 200], name=f"web-{number}", namespace="shop"
        )
        for number in range(count)
    ]


def _object(name: str, labels: int) -> bytes:
    marks = {f"label-{number}.example.com/{'k' * 60}": "v" * 40 for number in range(labels)}
    return msgspec.json.encode({"metadata": {"name": name, "labels": marks}, "spec": {}, "status": {}})


def _ours(url: str) -> float:
    questions = _questions(PODS)
    with ExtenderClient([_args(url)], files=FileRules()) as client:
        started = time.perf_counter()
        answers = client.ask(questions, deadline_seconds=600)
        seconds = time.perf_counter() - started
    assert all(answer is not None and answer[0].failure_mode is None for answer in answers)
    return seconds


def _one_by_one(url: str) -> float:
    """Plain httpx with one kept connection, the bodies ready made: what a loop over the pods would cost."""
    body = b'{"pod":%b,"node":%b}' % (_object("web", 40), _object("node", 80))
    headers = {"Content-Type": "application/json"}
    with httpx.Client(trust_env=False) as client:
        client.post(f"{url}/evict", content=body, headers=headers)
        started = time.perf_counter()
        for _ in range(SAMPLE):
            client.post(f"{url}/evict", content=body, headers=headers).raise_for_status().json()
        return time.perf_counter() - started


def _one_slot(url: str) -> float:
    """A cycle with a place for one pod, an extender that says no to all of them: plan, ask, plan again."""
    policy, snapshot = _policy(url), _snapshot(DENIED)
    with ExtenderClient([_args(url)], files=FileRules()) as client:
        started = time.perf_counter()
        plan = _decide(policy, snapshot, client)
        seconds = time.perf_counter() - started
    assert sum(nomination.answer is not None for nomination in plan.nominations) == DENIED
    return seconds


def _policy(url: str) -> Policy:
    policy = load(POLICY.replace("URL", url)).policy
    assert policy is not None
    return policy.bind({})


def _snapshot(pods: int) -> Snapshot:
    nodes = [build_node(f"n{number}") for number in range(100)]
    return Snapshot.build(
        nodes=nodes, pods=[build_pod(f"web-{number}", node=f"n{number % 100}") for number in range(pods)]
    )


def _decide(policy: Policy, snapshot: Snapshot, client: ExtenderClient) -> Plan:
    body, node = _object("web", 40), _object("node", 80)

    def ask(questions: Sequence[Nomination]) -> Mapping[QuestionKey, Answer]:
        requests = [ExtenderRequest(pod=body, node=node, name="web", namespace="shop") for _ in questions]
        outcomes = client.ask(requests, deadline_seconds=600)
        return {
            question.key: Answer(AnswerKind.DENIED, outcome[0].reason)
            for question, outcome in zip(questions, outcomes, strict=True)
            if outcome is not None
        }

    return decide(policy, snapshot, Answers(), NOW, ask)
