"""What is sent about a pod."""

import json
from typing import Any

import pytest

from deschedui.extender.bodies import LAST_APPLIED, Bodies, ExtenderRequest
from tests.extender.builders import question

NOISY = {
    "apiVersion": "v1",
    "metadata": {
        "name": "web-1",
        "managedFields": [{"manager": "kubectl"}],
        "annotations": {LAST_APPLIED: "{}", "team": "shop"},
    },
    "spec": {"nodeName": "node-a"},
}


def sent(asked: ExtenderRequest) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Bodies().full(asked))
    return found


@pytest.mark.parametrize("noisy", [NOISY, json.dumps(NOISY).encode()])
def test_bookkeeping_is_left_out_of_pod_and_node(noisy: Any) -> None:
    body = sent(question(pod=noisy, node=noisy))
    assert body["pod"] == body["node"]
    assert body["pod"]["metadata"] == {"name": "web-1", "annotations": {"team": "shop"}}
    assert body["pod"]["spec"] == {"nodeName": "node-a"}


def test_what_was_given_is_not_changed() -> None:
    before = json.dumps(NOISY)
    sent(question(pod=NOISY))
    assert json.dumps(NOISY) == before


@pytest.mark.parametrize(
    "pod", [{}, {"metadata": None}, {"metadata": {"annotations": None}}, {"metadata": {}}]
)
def test_objects_with_little_in_them_pass(pod: dict[str, Any]) -> None:
    assert sent(question(pod=json.dumps(pod).encode()))["pod"] == sent(question(pod=pod))["pod"] == pod


def test_a_pod_on_no_node_has_node_null() -> None:
    assert sent(question(node=None))["node"] is None


def test_a_reference_is_the_name_alone() -> None:
    assert json.loads(Bodies().reference(question("web-1"))) == {"podName": "web-1", "podNamespace": "shop"}


def test_a_node_shared_by_many_pods_is_the_same_for_each() -> None:
    bodies, node = Bodies(keep=1), {"metadata": {"name": "node-a"}}
    other = {"metadata": {"name": "node-b"}}
    nodes = [json.loads(bodies.full(question(node=each)))["node"] for each in (node, other, node, other)]
    assert nodes == [node, other, node, other]
