"""Least rights, by the API server's own account: each right of ``deploy/`` is used, and no call of ours is refused.

Web, worker and beat run as their accounts and do everything they can do: a policy from a ConfigMap, a pod of each
kind of owner that is asked about at a door and that is evicted after an approval.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
import yaml

from deschedui.demo.controlplane import READY_AFTER
from deschedui.kube.owners import OWNER_KINDS
from tests.real.controlplane import RealCluster
from tests.real.product import Product
from tests.real.rights import NAMESPACE, Right, listed, used
from tests.real.services import Missing, postgresql_url, redis_of_its_own, skip

__all__ = ["postgresql_url"]

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

POLICY = {
    "apiVersion": "descheduler/v1alpha2",
    "kind": "DeschedulerPolicy",
    "profiles": [
        {
            "name": "rights",
            "pluginConfig": [
                {"name": "DefaultEvictor", "args": {"evictDaemonSetPods": True}},
                {
                    "name": "PodLifeTime",
                    "args": {"maxPodLifeTimeSeconds": 1, "labelSelector": {"matchLabels": {"rights": "yes"}}},
                },
            ],
            "plugins": {"deschedule": {"enabled": ["PodLifeTime"]}},
        }
    ],
}


def owner(name: str, **spec: Any) -> dict[str, Any]:
    """A workload of one pod, which selects its own alone."""
    selector = {"selector": {"matchLabels": {"app": name}}}
    return {"metadata": {"name": name}, "spec": {**selector, "template": template(name), **spec}}


def template(name: str, **annotations: str) -> dict[str, Any]:
    spec = {"containers": [{"name": "main", "image": "app:1"}], "nodeSelector": {"rights": "yes"}}
    return {"metadata": {"labels": {"app": name, "rights": "yes"}, "annotations": annotations}, "spec": spec}


def deploy_one_of_each(real: RealCluster, namespace: str) -> None:
    """A pod of each kind of owner that is read."""
    apps, core = f"/apis/apps/v1/namespaces/{namespace}", f"/api/v1/namespaces/{namespace}"
    real.post(f"{apps}/replicasets", owner("set"))
    real.post(f"{apps}/statefulsets", owner("stateful", serviceName="stateful"))
    real.post(f"{apps}/daemonsets", owner("daemon"))
    # A pod of a Job would end at once where it became Ready.
    waiting = template("job", **{READY_AFTER: "1h"})
    waiting["spec"]["restartPolicy"] = "Never"
    job = {"metadata": {"name": "job"}, "spec": {"template": waiting}}
    real.post(f"/apis/batch/v1/namespaces/{namespace}/jobs", job)
    # Its controller does not run here: what it would do is done by hand.
    controller = owner("controller", selector={"app": "controller"}, replicas=1)
    made = real.post(f"{core}/replicationcontrollers", controller)
    reference = {
        "apiVersion": "v1",
        "kind": "ReplicationController",
        "name": "controller",
        "controller": True,
    }
    pod = template("controller")
    pod["metadata"] |= {"name": "pod", "ownerReferences": [{**reference, "uid": made["metadata"]["uid"]}]}
    real.post(f"{core}/pods", pod)
    status = {"status": {"replicas": 1, "readyReplicas": 1}}
    real.patch(f"{core}/replicationcontrollers/controller/status", status)


def is_old(pod: dict[str, Any]) -> bool:
    created = datetime.fromisoformat(pod["metadata"]["creationTimestamp"])
    return datetime.now(UTC) - created > timedelta(seconds=2)


@dataclass(frozen=True)
class Account:
    """What the API server's audit log says about our accounts since the product started."""

    entries: list[dict[str, Any]]

    @property
    def refused(self) -> list[str]:
        return [
            f"{entry['user']['username']}: {entry['verb']} {entry['requestURI']}"
            for entry in self.entries
            if entry["responseStatus"]["code"] in {401, 403}
        ]


@pytest.fixture(scope="module")
def product(
    real: RealCluster, postgresql_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Product]:
    real.forget_installation()
    config = {"metadata": {"name": "deschedui-policy"}, "data": {"policy.yaml": yaml.safe_dump(POLICY)}}
    real.plane.create(config, f"/api/v1/namespaces/{NAMESPACE}/configmaps")
    with psycopg.connect(postgresql_url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE rights")
    try:
        with (
            redis_of_its_own() as broker,
            Product(
                tmp_path_factory.mktemp("rights"),
                environment={
                    "DESCHEDUI_DATABASE_URL": f"{postgresql_url.rpartition('/')[0]}/rights",
                    "DESCHEDUI_BROKER_URL": broker.url,
                    "DESCHEDUI_POLICY_CONFIGMAP": f"{NAMESPACE}/deschedui-policy/policy.yaml",
                },
                kubeconfigs={account: real.plane.kubeconfig(account) for account in ("web", "worker")},
                settings={"undo_seconds": 0, "requests_per_second": 1000},
            ) as product,
        ):
            yield product
            assert product.errors() == []
    except Missing as missing:
        skip(str(missing))


@pytest.fixture(scope="module")
def account(real: RealCluster, request: pytest.FixtureRequest) -> Account:
    """Everything that the product can do was done once."""
    since = real.plane.audit_log.stat().st_size
    product: Product = request.getfixturevalue("product")
    for _ in range(2):
        real.node(labels={"rights": "yes"})
    namespace = real.namespace()
    deploy_one_of_each(real, namespace)
    # A DaemonSet has one on each of the two nodes.
    real.wait(lambda: len([p for p in real.pods(namespace) if p["spec"].get("nodeName")]) == 6, "six pods")
    pods = {pod["metadata"]["ownerReferences"][0]["kind"]: pod for pod in real.pods(namespace)}
    assert set(pods) == set(OWNER_KINDS)
    for pod in pods.values():
        assert product.ask(pod)["allow"] is False
    real.wait(lambda: all(is_old(pod) for pod in real.pods(namespace)), "pods older than a second")
    cycle = product.run_cycle()
    decisions = [each for each in product.decisions(namespace) if each["asker"] == "policy"]
    assert {each["owner_kind"] for each in decisions} == set(OWNER_KINDS), repr(cycle)[:3000]
    for each in decisions:
        product.api("POST", f"decisions/{each['id']}/approve/", {"version": each["version"]})
    for each in decisions:
        if each["owner_kind"] != "DaemonSet":  # of which the second waits for the first
            product.wait_for_eviction(each["id"], "evicted")
    return Account(real.audit(since))


def test_no_call_of_ours_was_refused(account: Account) -> None:
    assert account.refused == []


def test_every_right_that_was_given_was_used(account: Account) -> None:
    done = used(account.entries)
    unused = [right for right in listed() if not any(right.covers(each) for each in done)]
    assert unused == [], "take these out of deploy/base/rbac.yaml and deploy/rights.yaml, or use them here"


def test_nothing_was_done_by_any_other_right(account: Account) -> None:
    given = listed()
    beyond = {each for each in used(account.entries) if not any(right.covers(each) for right in given)}
    assert beyond == set()


def test_beside_its_rights_an_account_reads_nothing_but_the_version(account: Account) -> None:
    paths = {entry["requestURI"] for entry in account.entries if "objectRef" not in entry}
    assert paths <= {"/version"}


def test_a_right_that_is_not_used_would_be_found(account: Account) -> None:
    spare = Right("deschedui-web", "get", "", "nodes")
    assert not any(spare.covers(each) for each in used(account.entries))
