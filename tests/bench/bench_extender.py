"""The extender client: many pods asked about, against asking about one after the other."""

import time

import httpx
import msgspec

from deschedui.extender.client import ExtenderClient, ExtenderRequest, FileRules
from deschedui.extender.config import ExtenderArgs, read_extender
from tests.bench.extender_server import running
from tests.bench.lines import BenchLine, wanted

PODS = 10_000
SAMPLE = 400
DELAY_MS = 5.0
ASK = f"extender-ask: {PODS} pods of a {DELAY_MS:g} ms extender; reference one by one (extrapolated from {SAMPLE})"


def main() -> list[BenchLine]:
    """The lines of this module."""
    lines = []
    if wanted(ASK, __name__):
        with running(DELAY_MS) as url:
            lines.append(BenchLine(ASK, _ours(url), _one_by_one(url) / SAMPLE * PODS, bound=0.05))
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
