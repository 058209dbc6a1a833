"""The client against a real API server, with the rights of the worker's account."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from deschedui.kube.budget import Budget
from deschedui.kube.client import ClusterClient
from deschedui.kube.config import ClusterConnection
from deschedui.kube.errors import Forbidden, Unauthorized
from deschedui.kube.events import EventRequest
from deschedui.kube.eviction import EvictionCause, EvictionRequest, EvictionResult, eviction_annotations
from deschedui.kube.lists import PodBrief
from tests.real import webhook
from tests.real.controlplane import RealCluster

pytestmark = [pytest.mark.real, pytest.mark.timeout(180), pytest.mark.usefixtures("shared_node")]


@pytest.fixture
def worker(real: RealCluster) -> ClusterClient:
    return real.client("worker")


@pytest.fixture
def namespace(real: RealCluster) -> str:
    return real.namespace()


def request_for(pod: dict[str, Any], **overrides: Any) -> EvictionRequest:
    meta = pod["metadata"]
    return EvictionRequest(
        **{"namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"]} | overrides
    )


def evict_named(client: ClusterClient, namespace: str, name: str, uid: str) -> EvictionResult:
    labels = {"app": "cart"}
    request = EvictionRequest(namespace, name, uid)
    return client.evict(request, pdbs=client.list_pdbs(namespace), labels=labels)


def test_says_which_version_answers(worker: ClusterClient) -> None:
    assert worker.check().startswith("v1.37")


def test_reads_all_that_a_cycle_needs(real: RealCluster, worker: ClusterClient, namespace: str) -> None:
    real.deployment(namespace, "cart", replicas=2)
    real.pdb(namespace, "cart", labels={"app": "cart"}, maxUnavailable=1)
    real.ready_pods(namespace, 2)

    lists = worker.snapshot_lists()

    mine = [pod for pod in lists.pods if pod.metadata.namespace == namespace]
    assert {pod.metadata.labels["app"] for pod in mine} == {"cart"}
    assert {pod.spec.node_name for pod in mine} <= {node.metadata.name for node in lists.nodes}
    assert namespace in {pdb.metadata.namespace for pdb in lists.pdbs}
    assert namespace in {replica_set.metadata.namespace for replica_set in lists.replica_sets}
    assert lists.resource_versions["pods"]


def test_a_list_of_many_pages_is_complete(real: RealCluster, namespace: str) -> None:
    for number in range(7):
        real.pod(namespace, f"pod-{number}", schedulerName="nobody")

    found = real.client("worker", page_size=3).list_pods_brief([namespace])

    assert [pod.name for pod in found] == [f"pod-{number}" for number in range(7)]


def test_a_wrong_token_is_said_to_be_refused(real: RealCluster, tmp_path: Path) -> None:
    config = json.loads(real.plane.kubeconfig("worker").read_text(encoding="utf-8"))
    config["users"][0]["user"]["token"] = "no-such-token"
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps(config), encoding="utf-8")
    client = ClusterClient.connect(ClusterConnection("real", kubeconfig=str(kubeconfig)), budget=Budget())

    with pytest.raises(Unauthorized):
        client.read_pod("default", "cart-0")
    result = evict_with_no_look(client)
    assert (result.status, result.code) == ("queued", EvictionCause.UNAUTHORIZED)


def evict_with_no_look(client: ClusterClient) -> EvictionResult:
    return client.evict(EvictionRequest("default", "cart-0", "a-uid"), look=False)


def test_an_eviction_is_accepted_and_the_pod_replaced(
    real: RealCluster, worker: ClusterClient, namespace: str
) -> None:
    real.deployment(namespace, "cart")
    (pod,) = real.ready_pods(namespace, 1)
    annotations = eviction_annotations(
        profile="default", plugin="PodLifeTime", reason="too old", approved_by="ada"
    )

    result = worker.evict(request_for(pod, annotations=annotations))

    assert (result.status, result.http_status) == ("accepted", 201)
    real.wait(lambda: pod["metadata"]["uid"] not in {p["metadata"]["uid"] for p in real.pods(namespace)})
    (replacement,) = real.ready_pods(namespace, 1)
    assert replacement["metadata"]["uid"] != pod["metadata"]["uid"]


def test_the_audit_log_names_the_account_and_the_reason(
    real: RealCluster, worker: ClusterClient, namespace: str
) -> None:
    real.deployment(namespace, "cart")
    (pod,) = real.ready_pods(namespace, 1)
    annotations = eviction_annotations(
        profile="default", plugin="PodLifeTime", reason="too\nold", approved_by="ada"
    )
    worker.evict(request_for(pod, annotations=annotations, grace_period_seconds=7))

    (entry,) = real.audited(namespace)
    body = entry["requestObject"]
    assert entry["user"]["username"] == "system:serviceaccount:deschedui:deschedui-worker"
    assert body["metadata"]["annotations"] == {
        "reason": "triggered by default/PodLifeTime: too old; approved by ada",
        "requested-by": "deschedui",
    }
    assert body["deleteOptions"]["preconditions"]["uid"] == pod["metadata"]["uid"]
    assert body["deleteOptions"]["gracePeriodSeconds"] == 7


def test_a_dry_run_changes_nothing(real: RealCluster, worker: ClusterClient, namespace: str) -> None:
    real.deployment(namespace, "cart")
    (pod,) = real.ready_pods(namespace, 1)

    result = worker.evict(request_for(pod, dry_run=True))

    assert (result.status, result.dry_run) == ("accepted", True)
    time.sleep(0.5)
    assert [found["metadata"]["uid"] for found in real.ready_pods(namespace, 1)] == [pod["metadata"]["uid"]]


def test_a_pod_that_is_not_there_is_gone(worker: ClusterClient, namespace: str) -> None:
    result = evict_named(worker, namespace, "nobody", "3f6c1f0e-6a2b-4a54-9c1e-0d5b7b1a0001")
    assert (result.status, result.code) == ("gone", EvictionCause.NOT_FOUND)


def test_a_new_pod_with_the_old_name_is_never_evicted(
    real: RealCluster, worker: ClusterClient, namespace: str
) -> None:
    uid = real.pod(namespace, "cart-0")
    real.ready_pods(namespace, 1)

    result = evict_named(worker, namespace, "cart-0", "3f6c1f0e-6a2b-4a54-9c1e-0d5b7b1a0001")

    assert (result.status, result.code, result.http_status) == ("gone", EvictionCause.REPLACED, 409)
    assert real.ready_pods(namespace, 1)[0]["metadata"]["uid"] == uid


def test_a_pdb_blocks_and_is_named(real: RealCluster, worker: ClusterClient, namespace: str) -> None:
    real.deployment(namespace, "cart")
    (pod,) = real.ready_pods(namespace, 1)
    real.pdb(namespace, "keep-cart", labels={"app": "cart"}, maxUnavailable=0)

    result = worker.evict(request_for(pod))

    assert (result.status, result.code, result.pdb) == ("blocked", EvictionCause.PDB, "keep-cart")
    assert result.retry_after is None


def test_two_pdbs_are_both_named(real: RealCluster, worker: ClusterClient, namespace: str) -> None:
    real.deployment(namespace, "cart")
    (pod,) = real.ready_pods(namespace, 1)
    for name in ("cart-a", "cart-b"):
        real.pdb(namespace, name, labels={"app": "cart"}, maxUnavailable=1)

    result = evict_named(worker, namespace, pod["metadata"]["name"], pod["metadata"]["uid"])

    assert (result.status, result.http_status, result.pdbs) == ("failed", 500, ("cart-a", "cart-b"))
    assert "cart-a, cart-b" in result.message


def test_a_pending_pod_is_evicted_whatever_its_pdb_says(
    real: RealCluster, worker: ClusterClient, namespace: str
) -> None:
    uid = real.pod(namespace, "cart-9", labels={"app": "cart"}, schedulerName="nobody")
    real.pdb(namespace, "keep-cart", labels={"app": "cart"}, maxUnavailable=0)

    assert evict_named(worker, namespace, "cart-9", uid).status == "accepted"


def test_a_namespace_that_ends_takes_its_pods_with_it(
    real: RealCluster, worker: ClusterClient, namespace: str
) -> None:
    real.pod(namespace, "cart-0", schedulerName="nobody")
    path = f"/api/v1/namespaces/{namespace}/pods/cart-0"
    real.patch(path, {"metadata": {"finalizers": ["example.com/hold"]}})
    uid = real.get(path)["metadata"]["uid"]
    real.delete(f"/api/v1/namespaces/{namespace}")
    real.wait(lambda: real.get(f"/api/v1/namespaces/{namespace}")["status"]["phase"] == "Terminating")

    result = evict_named(worker, namespace, "cart-0", uid)

    assert (result.status, result.code) == ("gone", EvictionCause.NAMESPACE_TERMINATING)
    real.patch(path, {"metadata": {"finalizers": None}})


@pytest.mark.parametrize(
    ("answer", "expected", "code"),
    [
        ({"message": "handled by its operator"}, "failed", EvictionCause.WEBHOOK_DENIED),
        ({"code": 403, "message": "never"}, "failed", EvictionCause.WEBHOOK_DENIED),
        ({"code": 429, "message": "rebuilding"}, "blocked", EvictionCause.WEBHOOK_BLOCKED),
        (
            {"code": 429, "message": "Eviction triggered evacuation of VMI vm-1"},
            "in_background",
            EvictionCause.IN_BACKGROUND,
        ),
    ],
)
def test_a_webhook_that_refuses_is_named(
    real: RealCluster, worker: ClusterClient, answer: dict[str, Any], expected: str, code: EvictionCause
) -> None:
    namespace = real.namespace()
    uid = real.pod(namespace, "cart-0", schedulerName="nobody")
    request = EvictionRequest(namespace, "cart-0", uid)
    with (
        webhook.refusing("gate.example.com", namespace, answer) as configuration,
        real.webhook(configuration),
    ):
        dry = EvictionRequest(namespace, "cart-0", uid, dry_run=True)
        real.wait(lambda: worker.evict(dry).status != "accepted", "the webhook")
        result = worker.evict(request)

    assert (result.status, result.code, result.webhook) == (expected, code, "gate.example.com")
    assert answer["message"] in result.message


def test_a_webhook_that_cannot_be_called_is_named_without_its_token(
    real: RealCluster, worker: ClusterClient, namespace: str
) -> None:
    uid = real.pod(namespace, "cart-0", schedulerName="nobody")
    url = "https://127.0.0.1:9/doors/secret-token/admission"
    with real.webhook(webhook.configuration("gate.example.com", namespace, url)):
        dry = EvictionRequest(namespace, "cart-0", uid, dry_run=True)
        real.wait(lambda: worker.evict(dry).status != "accepted", "the webhook")
        result = evict_named(worker, namespace, "cart-0", uid)

    assert (result.status, result.webhook) == ("queued", "gate.example.com")
    assert "secret-token" not in result.message


def test_the_web_account_cannot_evict(real: RealCluster, namespace: str) -> None:
    uid = real.pod(namespace, "cart-0", schedulerName="nobody")

    result = evict_named(real.client("web"), namespace, "cart-0", uid)

    assert (result.status, result.code, result.http_status) == ("failed", EvictionCause.RBAC, 403)
    assert (result.verb, result.resource, result.holds_namespace) == ("create", "pods/eviction", True)


def test_the_web_account_lists_no_pods(real: RealCluster) -> None:
    with pytest.raises(Forbidden) as refused:
        real.client("web").list_pods_brief()
    assert (refused.value.verb, refused.value.resource) == ("list", "pods")


def test_the_web_account_reads_what_a_question_is_about(real: RealCluster, namespace: str) -> None:
    real.deployment(namespace, "cart")
    (pod,) = real.ready_pods(namespace, 1)
    web = real.client("web")

    view = web.read_pod(namespace, pod["metadata"]["name"])

    assert view is not None
    owner = view.pod.metadata.owner_references[0]
    assert (
        web.read_owner(namespace, owner.kind, owner.name, api_version=owner.api_version).deployment == "cart"
    )
    assert web.list_pdbs(namespace) == []


def test_a_record_holds_no_values_of_environment_variables(
    real: RealCluster, worker: ClusterClient, namespace: str
) -> None:
    real.pod(namespace, "cart-0", schedulerName="nobody")

    view = worker.read_pod(namespace, "cart-0")

    assert view is not None
    assert "hunter2" in str(view.raw)
    assert "hunter2" not in str(view.record)
    assert view.record["spec"]["containers"][0]["env"] == ["PASSWORD"]


def test_an_event_stands_on_the_pod(real: RealCluster, worker: ClusterClient, namespace: str) -> None:
    uid = real.pod(namespace, "cart-0", schedulerName="nobody")
    note = "approved by ada: " + "ä" * 2000
    event = EventRequest(
        namespace, "cart-0", uid, "EvictionApproved", "Approved", note, datetime.now(UTC), key="d-1"
    )

    worker.post_event(event)

    (found,) = real.get(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")["items"]
    assert (found["regarding"]["uid"], found["reportingController"]) == (uid, "deschedui.io/deschedui")
    assert len(found["note"].encode()) <= 1024


def test_an_open_decision_is_followed(real: RealCluster, worker: ClusterClient, namespace: str) -> None:
    real.deployment(namespace, "cart")
    (pod,) = real.ready_pods(namespace, 1)
    mark = {"descheduler.alpha.kubernetes.io/eviction-in-progress": "d-7"}
    real.patch(
        f"/api/v1/namespaces/{namespace}/pods/{pod['metadata']['name']}", {"metadata": {"annotations": mark}}
    )

    (brief,) = worker.list_pods_brief([namespace], label_selector="app=cart")

    assert isinstance(brief, PodBrief)
    assert (brief.uid, brief.ready, brief.owner_kind) == (pod["metadata"]["uid"], True, "ReplicaSet")
    assert (brief.eviction_in_progress, brief.deletion_timestamp) == ("d-7", None)
