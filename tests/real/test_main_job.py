"""The main job on a real control plane: from a nomination to an eviction that a human allowed.

Web, worker and beat run as they are deployed, with the accounts and rights of ``deploy/``, over a real Redis; the
human uses a browser; the API server's own audit log says which evictions there were.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
import yaml

from tests.real.controlplane import RealCluster
from tests.real.ports import free_port
from tests.real.product import PASSWORD, Product
from tests.real.reviewer import Reviewer, reviewer
from tests.real.services import Missing, postgresql_url, redis_of_its_own, skip

__all__ = ["postgresql_url"]

pytestmark = [pytest.mark.real, pytest.mark.browser, pytest.mark.timeout(300)]

WORKER = "system:serviceaccount:deschedui:deschedui-worker"
TAINT = "main-job/maintenance"
SETTINGS = {"undo_seconds": 1, "requests_per_second": 1000}


def policy(extender: str) -> dict[str, Any]:
    """PodLifeTime asks an extender first, RemovePodsViolatingNodeTaints a human alone."""
    old = {"maxPodLifeTimeSeconds": 1, "labelSelector": {"matchLabels": {"main-job": "old"}}}
    ask = {"urlPrefix": extender, "decisionVerb": "evict", "ignorable": False, "httpTimeout": "2s"}
    return {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        "profiles": [
            {
                "name": "age",
                "pluginConfig": [
                    {"name": "DefaultEvictor", "args": {}},
                    {"name": "PodLifeTime", "args": old},
                    {"name": "ExternalDecision", "args": {"extender": ask}},
                ],
                "plugins": {
                    "deschedule": {"enabled": ["PodLifeTime"]},
                    "preevictionfilter": {"enabled": ["ExternalDecision"]},
                },
            },
            {
                "name": "maintenance",
                "pluginConfig": [
                    {"name": "DefaultEvictor", "args": {}},
                    {"name": "RemovePodsViolatingNodeTaints", "args": {"includedTaints": [TAINT]}},
                ],
                "plugins": {"deschedule": {"enabled": ["RemovePodsViolatingNodeTaints"]}},
            },
        ],
    }


@dataclass(frozen=True)
class Stage:
    """Everything a test needs: the cluster, the product on it, and a person at a browser."""

    real: RealCluster
    product: Product
    ada: Reviewer

    def deploy(self, name: str, *, extender: str = "allow", **labels: str) -> str:
        """Two Ready pods of a Deployment in a namespace of their own, old enough for the policy; the namespace."""
        namespace = self.real.namespace()
        labels = {"app": name, "main-job": "old", "extender": extender, **labels}
        self.real.post(f"/apis/apps/v1/namespaces/{namespace}/deployments", workload(name, labels))
        self.real.ready_pods(namespace, 2)
        return namespace

    def nominate(self, namespace: str) -> list[dict[str, Any]]:
        """Run a cycle, and return its decisions about the namespace."""
        self.real.old_pods(namespace)
        self.product.run_cycle()
        found = self.product.decisions(namespace)
        assert found, f"nothing was nominated\n{self.product.logs()}"
        return found

    def uids(self, namespace: str) -> set[str]:
        """The pods that are there."""
        return {pod["metadata"]["uid"] for pod in self.real.pods(namespace)}

    def evicted(self, namespace: str) -> list[str]:
        """UIDs of the pods whose eviction the API server accepted, by its own account; only our worker asked."""
        entries = self.real.audited(namespace)
        assert {entry["user"]["username"] for entry in entries} <= {WORKER}
        accepted = [entry for entry in entries if entry["responseStatus"]["code"] == 201]
        return [entry["requestObject"]["deleteOptions"]["preconditions"]["uid"] for entry in accepted]


def workload(name: str, labels: dict[str, str], **spec: Any) -> dict[str, Any]:
    """A Deployment of two pods, or whatever ``spec`` makes of it."""
    container = {"name": "main", "image": "registry.example/app:1"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [container], "nodeSelector": {"main-job": "yes"}},
    }
    return {
        "metadata": {"name": name},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": template, **spec},
    }


@pytest.fixture(scope="module")
def broker_url() -> Iterator[str]:
    try:
        with redis_of_its_own() as server:
            yield server.url
    except Missing as missing:
        skip(str(missing))


@pytest.fixture(scope="module")
def database_url(postgresql_url: str) -> str:
    """A database of its own on the session's PostgreSQL."""
    with psycopg.connect(postgresql_url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE main_job")
    return f"{postgresql_url.rpartition('/')[0]}/main_job"


@pytest.fixture(scope="module")
def nodes(real: RealCluster) -> list[str]:
    return [real.node(labels={"main-job": "yes"}) for _ in range(3)]


@pytest.fixture(scope="module")
def product(
    real: RealCluster,
    nodes: list[str],
    broker_url: str,
    database_url: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Product]:
    folder, port = tmp_path_factory.mktemp("product"), free_port()
    policy_file = folder / "policy.yaml"
    policy_file.write_text(yaml.safe_dump(policy(f"http://127.0.0.1:{port}")), encoding="utf-8")
    product = Product(
        folder,
        environment={
            "DESCHEDUI_DATABASE_URL": database_url,
            "DESCHEDUI_BROKER_URL": broker_url,
            "DESCHEDUI_POLICY_FILE": str(policy_file),
        },
        kubeconfigs={account: real.plane.kubeconfig(account) for account in ("web", "worker")},
        settings=SETTINGS,
    )
    real.forget_installation()
    product.start("extender", [sys.executable, "-m", "tests.real.extender_process", str(port)], kubeconfig="")
    with product:
        yield product
        assert product.errors() == []


@pytest.fixture(scope="module")
def stage(real: RealCluster, product: Product) -> Iterator[Stage]:
    with reviewer(product.url) as ada:
        ada.sign_in("ada", PASSWORD)
        yield Stage(real, product, ada)


def test_what_a_human_approves_is_evicted_and_replaced(stage: Stage) -> None:
    namespace = stage.deploy("cart")
    first, second = stage.nominate(namespace)
    assert first["verdict"] == second["verdict"] == "pending"
    assert first["extender_reason"] == "no objection"

    stage.ada.approve(first["id"])
    stage.product.wait_for_eviction(first["id"], "evicted")

    assert stage.evicted(namespace) == [first["pod_uid"]]
    ready = {pod["metadata"]["uid"] for pod in stage.real.ready_pods(namespace, 2)}
    assert second["pod_uid"] in ready
    assert first["pod_uid"] not in ready
    stage.product.wait(lambda: stage.product.decision(first["id"])["replacement_ready_at"], "the replacement")
    page = stage.ada.read(first["id"])
    assert "Approved by ada; evicted." in page
    assert "Replaced by" in page


def test_the_event_stands_on_the_pod_and_names_who_approved(stage: Stage) -> None:
    namespace = stage.deploy("orders")
    decision = stage.nominate(namespace)[0]
    stage.ada.approve(decision["id"])
    stage.product.wait_for_eviction(decision["id"], "evicted")

    events = stage.real.get(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")["items"]
    (ours,) = [event for event in events if event["reason"] == "EvictionApproved"]
    assert ours["regarding"]["uid"] == decision["pod_uid"]
    assert f"approved by ada (decision {decision['id']})" in ours["note"]


def test_what_a_human_denies_stays(stage: Stage) -> None:
    namespace = stage.deploy("checkout")
    before = stage.uids(namespace)
    decision = stage.nominate(namespace)[0]

    stage.ada.deny(decision["id"], "Not during the sale")
    stage.product.run_cycle()

    denied = stage.product.decision(decision["id"])
    assert (denied["verdict"], denied["decision_reason"]) == ("denied", "Not during the sale")
    assert len(stage.product.decisions(namespace)) == 2, "it is not asked for again in its cool-down"
    assert stage.uids(namespace) == before
    assert stage.evicted(namespace) == []


def test_what_the_extender_denies_stays_until_a_human_overrides(stage: Stage) -> None:
    namespace = stage.deploy("payments", extender="deny")
    before = stage.uids(namespace)
    first, second = stage.nominate(namespace)
    assert (first["verdict"], first["rule"]) == ("denied", "extender")
    assert "it holds the leader's lease" in stage.ada.read(first["id"])
    assert stage.uids(namespace) == before

    stage.ada.override(first["id"], "The node's disk is dying")
    stage.product.wait_for_eviction(first["id"], "evicted")

    assert stage.evicted(namespace) == [first["pod_uid"]]
    assert stage.product.decision(second["id"])["verdict"] == "denied"


def test_an_extender_that_answers_too_late_is_no_yes(stage: Stage) -> None:
    namespace = stage.deploy("search", extender="slow")
    before = stage.uids(namespace)
    decision = stage.nominate(namespace)[0]

    assert (decision["verdict"], decision["failure_mode"]) == ("denied", "timeout")
    page = stage.ada.read(decision["id"])
    assert "The extender had not answered after" in page
    assert "failPolicy Deny makes it a denial" in page
    assert stage.uids(namespace) == before
    assert stage.evicted(namespace) == []


def test_a_pod_leaves_a_node_under_maintenance(stage: Stage, nodes: list[str]) -> None:
    namespace = stage.deploy("inventory", **{"main-job": "young"})
    node = stage.real.pods(namespace)[0]["spec"]["nodeName"]
    on_it = {p["metadata"]["uid"] for p in stage.real.pods(namespace) if p["spec"]["nodeName"] == node}
    taint = {"key": TAINT, "value": "disk", "effect": "NoSchedule"}
    stage.real.patch(f"/api/v1/nodes/{node}", {"spec": {"taints": [taint]}})
    try:
        decisions = stage.nominate(namespace)
        assert {decision["pod_uid"] for decision in decisions} == on_it
        assert TAINT in decisions[0]["reason"]

        stage.ada.approve(decisions[0]["id"])
        stage.product.wait_for_eviction(decisions[0]["id"], "evicted")

        stage.real.ready_pods(namespace, 2)
        stage.product.wait(
            lambda: stage.product.decision(decisions[0]["id"])["replacement_node"], "a replacement"
        )
        assert stage.product.decision(decisions[0]["id"])["replacement_node"] in set(nodes) - {node}
        assert "Replaced by" in stage.ada.read(decisions[0]["id"])
    finally:
        stage.real.patch(f"/api/v1/nodes/{node}", {"spec": {"taints": None}})


def test_a_budget_blocks_and_later_lets_go(stage: Stage) -> None:
    namespace = stage.deploy("ledger")
    stage.real.pdb(namespace, "keep-ledger", labels={"app": "ledger"}, maxUnavailable=0)
    decision = stage.nominate(namespace)[0]

    stage.ada.approve(decision["id"])
    blocked = stage.product.wait_for_eviction(decision["id"], "blocked")
    assert (blocked["pdb"], stage.evicted(namespace)) == ("keep-ledger", [])
    assert "blocked by PDB keep-ledger" in stage.ada.read(decision["id"])

    budget = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets/keep-ledger"
    stage.real.patch(budget, {"spec": {"maxUnavailable": 1}})
    done = stage.product.wait_for_eviction(decision["id"], "evicted", seconds=75)

    assert (done["attempt"], stage.evicted(namespace)) == (2, [decision["pod_uid"]])


def test_a_new_pod_under_the_old_name_is_not_evicted(stage: Stage) -> None:
    namespace = stage.real.namespace()
    labels = {"app": "db", "main-job": "old", "extender": "allow"}
    body = workload("db", labels, serviceName="db", replicas=2)
    stage.real.post(f"/apis/apps/v1/namespaces/{namespace}/statefulsets", body)
    stage.real.ready_pods(namespace, 2)
    decision = next(d for d in stage.nominate(namespace) if d["pod_name"] == "db-0")
    freeze = stage.product.api("POST", "freezes/", {"cluster": "real", "reason": "while we replace a pod"})
    try:
        stage.ada.approve(decision["id"])
        stage.real.delete(f"/api/v1/namespaces/{namespace}/pods/db-0")
        stage.real.wait(lambda: replaced(stage, namespace, decision["pod_uid"]), "a new db-0")
    finally:
        stage.product.api("POST", f"freezes/{freeze['id']}/lift/")

    gone = stage.product.wait_for_eviction(decision["id"], "gone")

    assert gone["verdict"] == "allowed"
    new = next(pod for pod in stage.real.ready_pods(namespace, 2) if pod["metadata"]["name"] == "db-0")
    assert new["metadata"]["uid"] != decision["pod_uid"]
    assert stage.evicted(namespace) == []


def replaced(stage: Stage, namespace: str, old_uid: str) -> bool:
    names = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in stage.real.pods(namespace)}
    return bool(names.get("db-0", old_uid) != old_uid)
