"""A database that was restored, and one that was copied: neither evicts anything until an admin says so.

The product runs as it is deployed, on PostgreSQL and a real control plane, with the rights of ``deploy/``; the API
server's own audit log says which evictions there were.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
import yaml

from tests.real.controlplane import RealCluster
from tests.real.product import CLUSTER, Product
from tests.real.services import Missing, postgresql_programs, postgresql_url, redis_of_its_own, skip

__all__ = ["postgresql_url"]

pytestmark = [pytest.mark.real, pytest.mark.timeout(400)]

UNDO_SECONDS = 45
# So long nothing happens where something would: the approvals are due, and a worker has had several ticks since.
QUIET_SECONDS = 12
SETTINGS = {"requests_per_second": 1000, "in_flight_per_owner": 5}
POLICY = {
    "apiVersion": "descheduler/v1alpha2",
    "kind": "DeschedulerPolicy",
    "profiles": [
        {
            "name": "age",
            "pluginConfig": [
                {"name": "DefaultEvictor", "args": {}},
                {
                    "name": "PodLifeTime",
                    "args": {
                        "maxPodLifeTimeSeconds": 1,
                        "labelSelector": {"matchLabels": {"restored": "old"}},
                    },
                },
            ],
            "plugins": {"deschedule": {"enabled": ["PodLifeTime"]}},
        }
    ],
}


class Databases:
    """Databases on the session's PostgreSQL: dumped and restored with its own tools."""

    def __init__(self, url: str, folder: Path) -> None:
        self._server, self._folder = url.rpartition("/")[0], folder

    def url(self, name: str) -> str:
        return f"{self._server}/{name}"

    def create(self, name: str) -> str:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def dump(self, name: str) -> Path:
        file = self._folder / f"{name}.dump"
        self._run("pg_dump", "--format=custom", f"--file={file}", self.url(name))
        return file

    def restore(self, file: Path, name: str) -> str:
        url = self.create(name)
        self._run("pg_restore", "--no-owner", f"--dbname={url}", str(file))
        return url

    @staticmethod
    def _run(program: str, *arguments: str) -> None:
        argv = [str(postgresql_programs() / program), *arguments]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{program}: {done.stderr[-2000:]}"


class Copied(Product):
    """An installation of its own on a copy of another's database: nothing is set up in it any more."""

    def __init__(self, folder: Path, *, of: Product, database: str, broker: str) -> None:
        environment = {
            **{
                name: of.environment[name] for name in ("DESCHEDUI_POLICY_FILE", "DESCHEDUI_API_UNDO_SECONDS")
            },
            "DESCHEDUI_DATABASE_URL": database,
            "DESCHEDUI_BROKER_URL": broker,
        }
        super().__init__(folder, environment=environment, kubeconfigs=of.kubeconfigs, settings={})
        self.token, self.caller_token = of.token, of.caller_token

    def _prepare(self) -> None:
        """All of it came with the copy."""


@dataclass(frozen=True)
class Stage:
    """The cluster, the first installation, and its databases."""

    real: RealCluster
    product: Product
    databases: Databases

    def queue(self, name: str) -> tuple[str, list[dict[str, Any]]]:
        """Two approved decisions about pods of a namespace of their own, due in a while; and the namespace."""
        namespace = self.real.namespace()
        labels = {"app": name, "restored": "old"}
        path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
        self.real.post(path, deployment(name, labels))
        self.real.ready_pods(namespace, 2)
        time.sleep(4)  # Older than the policy says, in whole seconds.
        self.product.run_cycle()
        found = self.product.decisions(namespace)
        assert len(found) == 2
        return namespace, [approve(self.product, row) for row in found]

    def evicted(self, namespace: str) -> list[str]:
        """UIDs of the pods whose eviction the API server accepted, by its own account."""
        accepted = [e for e in self.real.audited(namespace) if e["responseStatus"]["code"] == 201]
        return [entry["requestObject"]["deleteOptions"]["preconditions"]["uid"] for entry in accepted]

    def lease(self) -> dict[str, Any]:
        """The Lease, as the API server has it."""
        found = self.real.get("/apis/coordination.k8s.io/v1/namespaces/deschedui/leases/deschedui")
        count = int(found["metadata"]["annotations"]["deschedui/counter"])
        return {"holder": found["spec"]["holderIdentity"], "count": count}

    def wait_for_two_heartbeats(self) -> None:
        """Until the Lease is above whatever was dumped before."""
        count = self.lease()["count"] + 2
        self.real.wait(lambda: self.lease()["count"] >= count, "two heartbeats", seconds=60)


def deployment(name: str, labels: Mapping[str, str]) -> dict[str, Any]:
    container = {"name": "main", "image": "registry.example/app:1"}
    pods = {"containers": [container], "nodeSelector": {"restored": "yes"}}
    template = {"metadata": {"labels": labels}, "spec": pods}
    return {
        "metadata": {"name": name},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": template},
    }


def approve(product: Product, row: Mapping[str, Any]) -> dict[str, Any]:
    return product.api("POST", f"decisions/{row['id']}/approve/", {"version": row["version"]})


def ended_untried(product: Product, row: Mapping[str, Any]) -> bool:
    """Withdrawn; or its pod went, where the other installation was quicker than this one's first look."""
    seen = product.decision(row["id"])
    tried = any(event["kind"] == "eviction_tried" for event in seen["timeline"])
    return not tried and (seen["verdict"] == "withdrawn" or seen["eviction"] == "gone")


def cluster_of(product: Product) -> dict[str, Any]:
    return product.api("GET", f"clusters/{CLUSTER}/")


def ask_at_the_door(product: Product, namespace: str, pod: str) -> dict[str, Any]:
    answer = httpx.post(
        f"{product.url}/doors/evict",
        json={"podName": pod, "podNamespace": namespace},
        headers={"Authorization": f"Bearer {product.caller_token}"},
        timeout=20,
    )
    return dict(answer.json())


@pytest.fixture(scope="module")
def brokers() -> Iterator[tuple[str, str]]:
    """A broker for each of two installations."""
    try:
        with redis_of_its_own() as one, redis_of_its_own() as other:
            yield one.url, other.url
    except Missing as missing:
        skip(str(missing))


@pytest.fixture(scope="module")
def stage(
    real: RealCluster,
    postgresql_url: str,
    brokers: tuple[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("restored")
    databases = Databases(postgresql_url, folder)
    policy = folder / "policy.yaml"
    policy.write_text(yaml.safe_dump(POLICY), encoding="utf-8")
    for _ in range(2):  # of one node nothing is evicted
        real.node(labels={"restored": "yes"})
    product = Product(
        folder,
        environment={
            "DESCHEDUI_DATABASE_URL": databases.create("restored"),
            "DESCHEDUI_BROKER_URL": brokers[0],
            "DESCHEDUI_POLICY_FILE": str(policy),
            "DESCHEDUI_API_UNDO_SECONDS": str(UNDO_SECONDS),
        },
        kubeconfigs={account: real.plane.kubeconfig(account) for account in ("web", "worker")},
        settings=SETTINGS,
    )
    real.forget_installation()
    with product:
        yield Stage(real, product, databases)
    real.forget_installation()


def test_a_copied_installation_evicts_nothing_and_the_first_goes_on(
    stage: Stage, brokers: tuple[str, str], tmp_path: Path
) -> None:
    namespace, queued = stage.queue("cart")
    database = stage.databases.restore(stage.databases.dump("restored"), "copied")
    first = stage.lease()["holder"]

    with Copied(tmp_path / "copied", of=stage.product, database=database, broker=brokers[1]) as copy:
        copy.wait(lambda: cluster_of(copy)["stopped"] == "foreign", "the copy sees the first one's Lease")
        assert all(ended_untried(copy, row) for row in queued)
        answer = ask_at_the_door(copy, namespace, queued[0]["pod_name"])
        assert (answer["allow"], answer["state"]) == (False, "frozen")
        for row in queued:
            stage.product.wait_for_eviction(row["id"], "evicted", seconds=120)
        stage.real.ready_pods(namespace, 2)
        time.sleep(QUIET_SECONDS)
        assert all(ended_untried(copy, row) for row in queued)

    assert sorted(stage.evicted(namespace)) == sorted(row["pod_uid"] for row in queued)
    assert (cluster_of(stage.product)["stopped"], stage.lease()["holder"]) == ("", first)


def test_a_restored_database_evicts_nothing_until_an_admin_says_so(stage: Stage) -> None:
    namespace, queued = stage.queue("orders")
    started = time.monotonic()
    file = stage.databases.dump("restored")
    stage.product.api(
        "POST", f"decisions/{queued[0]['id']}/take-back/", {"reason": "not during the sale after all"}
    )
    stage.wait_for_two_heartbeats()

    with stage.product.stopped():
        stage.databases.restore(file, "restored")
    stage.product.wait(lambda: cluster_of(stage.product)["stopped"] == "ahead", "it sees that it is older")
    time.sleep(max(0.0, UNDO_SECONDS + QUIET_SECONDS - (time.monotonic() - started)))

    assert stage.evicted(namespace) == []
    assert {stage.product.decision(row["id"])["verdict"] for row in queued} == {"withdrawn"}
    assert cluster_of(stage.product)["stopped_withdrawn"] >= 2

    stage.product.api("POST", f"clusters/{CLUSTER}/confirm-installation/")
    stage.product.wait(lambda: cluster_of(stage.product)["stopped"] == "", "the Lease is taken over")
    stage.product.run_cycle()
    fresh = stage.product.decisions(namespace)[0]
    assert fresh["verdict"] == "pending"
    approve(stage.product, fresh)
    stage.product.wait_for_eviction(fresh["id"], "evicted", seconds=120)
    assert stage.evicted(namespace) == [fresh["pod_uid"]]
