"""What is kept of pods and nodes, and what an extender gets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deschedui.kube.redact import LAST_APPLIED, MAX_RECORD_BYTES, extender_body, node_record, pod_record

SECRET = "hunter2"


def pod(**spec: Any) -> dict[str, Any]:
    """A pod that hides a secret wherever one can be."""
    probe = {"httpGet": {"path": "/", "httpHeaders": [{"name": "Authorization", "value": SECRET}]}}
    container = {
        "name": "main",
        "image": "app:1",
        "command": ["run", SECRET],
        "args": ["--password", SECRET],
        "env": [{"name": "PASSWORD", "value": SECRET}, {"name": "B", "valueFrom": {"x": SECRET}}],
        "resources": {"requests": {"cpu": "500m"}},
        "livenessProbe": probe,
        "lifecycle": {"preStop": {"exec": {"command": [SECRET]}}},
    }
    return {
        "metadata": {
            "name": "cart-0",
            "namespace": "shop",
            "uid": "u1",
            "labels": {"app": "cart"},
            "annotations": {
                LAST_APPLIED: SECRET,
                "vault.example/password": SECRET,
                "descheduler.alpha.kubernetes.io/evict": "true",
            },
            "managedFields": [{"fieldsV1": {"f:x": SECRET}}],
            "ownerReferences": [{"kind": "ReplicaSet", "name": "cart", "uid": "o1", "controller": True}],
        },
        "spec": {
            "nodeName": "node-a",
            "containers": [container],
            "volumes": [
                {"name": "data", "persistentVolumeClaim": {"claimName": "cart-data"}},
                {"name": "secret", "secret": {"secretName": "x", "items": [{"key": SECRET}]}},
                {"name": "down", "csi": {"driver": "d", "volumeAttributes": {"password": SECRET}}},
            ],
            **spec,
        },
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [
                {"name": "main", "lastState": {"terminated": {"exitCode": 1, "message": SECRET}}}
            ],
        },
    }


def test_no_secret_gets_into_a_record() -> None:
    assert SECRET not in json.dumps(pod_record(pod()))


def test_a_record_keeps_what_a_person_compares() -> None:
    record = pod_record(pod(nodeSelector={"zone": "a"}, priority=5, tolerations=[{"key": "x"}]))

    assert record["metadata"]["labels"] == {"app": "cart"}
    assert record["metadata"]["ownerReferences"][0]["name"] == "cart"
    assert record["spec"]["nodeName"] == "node-a"
    assert record["spec"]["nodeSelector"] == {"zone": "a"}
    assert (record["spec"]["priority"], record["spec"]["tolerations"]) == (5, [{"key": "x"}])
    assert record["spec"]["containers"][0]["env"] == ["PASSWORD", "B"]
    assert record["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "500m"}}
    assert record["spec"]["volumes"][0] == {
        "name": "data",
        "persistentVolumeClaim": {"claimName": "cart-data"},
    }
    assert record["status"]["phase"] == "Running"


def test_annotations_that_say_how_to_move_a_pod_keep_their_value_and_others_their_name() -> None:
    assert pod_record(pod())["metadata"]["annotations"] == {
        "descheduler.alpha.kubernetes.io/evict": "true",
        "vault.example/password": "(not kept)",
    }


def test_the_same_pod_gives_the_same_record() -> None:
    assert json.dumps(pod_record(pod())) == json.dumps(pod_record(pod()))


def test_a_heartbeat_does_not_make_another_record() -> None:
    def beat(version: str, at: str) -> dict[str, Any]:
        ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": at, "lastTransitionTime": "x"}
        return {"metadata": {"name": "node-a", "resourceVersion": version}, "status": {"conditions": [ready]}}

    assert node_record(beat("1", "10:00")) == node_record(beat("2", "10:01"))


@pytest.mark.parametrize(
    "spec",
    [
        {"volumes": [{"name": f"v{n}", "hostPath": {"path": "x" * 4000}} for n in range(1000)]},
        {"containers": [{"name": "c" * 900, "env": [{"name": "e" * 900}] * 50}] * 50},
        {"affinity": {"a": [{"b": ["y" * 2000] * 50}] * 50}},
        {"nodeSelector": {f"{n}": "z" * 2000 for n in range(5000)}},
    ],
)
def test_a_record_stays_within_64_kb_and_says_what_went(spec: dict[str, Any]) -> None:
    record = pod_record(pod(**spec))

    assert len(json.dumps(record, ensure_ascii=False).encode()) <= MAX_RECORD_BYTES * 1.1
    assert record["recordTruncated"]
    assert record["metadata"]["name"] == "cart-0"


def nested(depth: int) -> Any:
    value: Any = "end"
    for _ in range(depth):
        value = {"x": [value]}
    return value


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"metadata": None, "spec": None, "status": None},
        {"metadata": [], "spec": "x", "status": 5},
        {"metadata": {"labels": [1], "annotations": "x", "ownerReferences": {"a": 1}, "name": 5}},
        {"spec": {"containers": "x", "volumes": [None, 5, "x", {"name": {}}], "affinity": nested(400)}},
        {"spec": {"containers": [None, {"env": [None, {"name": None}, 5]}], "priority": 10**400}},
        {"status": {"conditions": [[]], "containerStatuses": [{"restartCount": float("nan")}]}},
        {"metadata": {"name": "\x00\ud800\u202ecart", "labels": {"\x00": "\ud800"}}},
    ],
)
def test_any_shape_gives_a_record_that_can_be_stored(raw: dict[str, Any]) -> None:
    for record in (pod_record(raw), node_record(raw)):
        text = json.dumps(record, ensure_ascii=False)
        text.encode()
        assert "\x00" not in str(json.loads(text))


def test_a_node_keeps_what_the_engine_reads() -> None:
    raw = {
        "metadata": {
            "name": "node-a",
            "labels": {"zone": "a"},
            "annotations": {"csi.volume/nodeid": SECRET},
            "managedFields": [SECRET],
        },
        "spec": {
            "unschedulable": True,
            "taints": [{"key": "k", "effect": "NoSchedule"}],
            "providerID": SECRET,
        },
        "status": {
            "allocatable": {"cpu": "4"},
            "images": [SECRET],
            "nodeInfo": {"kubeletVersion": "v1.37.2"},
        },
    }
    record = node_record(raw)

    assert SECRET not in json.dumps(record)
    assert record["spec"] == {"unschedulable": True, "taints": [{"key": "k", "effect": "NoSchedule"}]}
    assert record["status"]["allocatable"] == {"cpu": "4"}


def test_an_extender_gets_the_pod_as_it_was_read() -> None:
    raw = pod()
    body = extender_body(raw)

    assert (body["apiVersion"], body["kind"]) == ("v1", "Pod")
    assert body["spec"] == raw["spec"]
    assert "managedFields" not in body["metadata"]
    assert set(body["metadata"]["annotations"]) == set(raw["metadata"]["annotations"]) - {LAST_APPLIED}


def test_asking_an_extender_changes_nothing_in_the_pod_itself() -> None:
    raw = pod()
    extender_body(raw)
    assert raw == pod()


@pytest.mark.parametrize("metadata", [None, "x", [], {"annotations": None}, {"annotations": "x"}])
def test_an_extender_body_survives_any_metadata(metadata: Any) -> None:
    assert extender_body({"metadata": metadata})["metadata"] == metadata
