"""Pace and moments on a real control plane (design.md sections 5 and 7), with pods that take their time to be Ready.

One cycle nominates everything; what has to wait for half a minute is begun first and looked at last.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
import yaml

from deschedui.demo.controlplane import READY_AFTER
from tests.real.controlplane import RealCluster
from tests.real.product import CLUSTER, PASSWORD, Product
from tests.real.reviewer import Reviewer, reviewer
from tests.real.services import Missing, postgresql_url, redis_of_its_own, skip
from tests.real.watching import Watch, ready_counts

__all__ = ["postgresql_url"]

pytestmark = [pytest.mark.real, pytest.mark.browser, pytest.mark.timeout(300)]

HELD_AFTER = 30
SETTINGS = {"undo_seconds": 0, "replacement_seconds": HELD_AFTER, "requests_per_second": 1000}


def profile(name: str, **args: Any) -> dict[str, Any]:
    """PodLifeTime for the pods with the label ``pace: <name>``; a human is asked."""
    old = {"maxPodLifeTimeSeconds": 1, "labelSelector": {"matchLabels": {"pace": name}}, **args}
    return {
        "name": name,
        "pluginConfig": [{"name": "DefaultEvictor", "args": {}}, {"name": "PodLifeTime", "args": old}],
        "plugins": {"deschedule": {"enabled": ["PodLifeTime"]}},
    }


def policy(*profiles: dict[str, Any]) -> str:
    head = {"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy"}
    return yaml.safe_dump({**head, "profiles": list(profiles)})


@dataclass
class Workload:
    """A ReplicaSet of three in a namespace of its own, and the decisions about its pods."""

    real: RealCluster
    name: str
    namespace: str
    decisions: list[dict[str, Any]] = field(default_factory=list)

    @property
    def path(self) -> str:
        """Of the ReplicaSet."""
        return f"/apis/apps/v1/namespaces/{self.namespace}/replicasets/{self.name}"

    def replace_after(self, seconds: str) -> None:
        """From now on its new pods take so long to be Ready."""
        template = {"metadata": {"annotations": {READY_AFTER: seconds}}}
        self.real.patch(self.path, {"spec": {"template": template}})

    def set_ready(self, uid: str, *, ready: bool) -> None:
        """Let a pod crash (or recover) as its kubelet would report it, and wait until its owner has counted it."""
        pod = next(pod for pod in self.real.pods(self.namespace) if pod["metadata"]["uid"] == uid)
        path = f"/api/v1/namespaces/{self.namespace}/pods/{pod['metadata']['name']}/status"
        before = self.ready
        condition = {
            "type": "Ready",
            "status": str(ready),
            "lastTransitionTime": f"{datetime.now(UTC):%FT%TZ}",
        }
        self.real.patch(path, {"status": {"phase": "Running", "conditions": [condition]}})
        self.real.wait(lambda: self.ready != before, f"{self.name} counts another number of Ready pods")

    @property
    def ready(self) -> int:
        """As its owner counts."""
        return int(self.real.get(self.path)["status"].get("readyReplicas", 0))

    def uids(self) -> set[str]:
        """Of the pods that are there."""
        return {pod["metadata"]["uid"] for pod in self.real.pods(self.namespace)}

    def evicted(self) -> list[str]:
        """UIDs of the pods whose eviction the API server accepted, by its own account."""
        accepted = [
            each for each in self.real.audited(self.namespace) if each["responseStatus"]["code"] == 201
        ]
        return [entry["requestObject"]["deleteOptions"]["preconditions"]["uid"] for entry in accepted]


@dataclass
class Stage:
    """The product on the cluster, its people, and the workloads that one cycle has nominated."""

    real: RealCluster
    product: Product
    ada: Reviewer
    workloads: dict[str, Workload]

    def approve(self, *decisions: dict[str, Any]) -> None:
        for decision in decisions:
            version = self.product.decision(decision["id"])["version"]
            self.product.api("POST", f"decisions/{decision['id']}/approve/", {"version": version})

    def wait_for(self, decision: dict[str, Any], **fields: Any) -> dict[str, Any]:
        """Wait until a decision has these fields, and return it."""

        def has_come() -> bool:
            row = self.product.decision(decision["id"])
            return all(row[name] == value for name, value in fields.items())

        try:
            self.product.wait(has_come, f"{fields}")
        except AssertionError as late:
            raise AssertionError(f"{self.product.story(decision['id'])}\n{late}") from None
        return self.product.decision(decision["id"])

    def wait_until_held(self, decision: dict[str, Any]) -> dict[str, Any]:
        self.product.wait(lambda: self.product.decision(decision["id"])["held"], "held", HELD_AFTER + 30)
        return self.product.decision(decision["id"])


NAMES = ("stuck", "late", "shrunk", "steady", "crashing", "edited", "kept")
PROFILES = [profile(name) for name in NAMES]


@pytest.fixture(scope="module")
def workloads(real: RealCluster) -> dict[str, Workload]:
    """Three Ready pods of each, older than a second."""
    for _ in range(2):
        real.node(labels={"pace": "yes"})
    made = {name: Workload(real, name, real.namespace()) for name in NAMES}
    for each in made.values():
        real.post(f"/apis/apps/v1/namespaces/{each.namespace}/replicasets", replica_set(each.name))
    for each in made.values():
        real.ready_pods(each.namespace, 3)
    for name in ("stuck", "late", "shrunk"):
        made[name].replace_after("1h")
    made["steady"].replace_after("4s")
    real.wait(lambda: all(is_old(pod) for each in made.values() for pod in real.pods(each.namespace)))
    return made


def replica_set(name: str) -> dict[str, Any]:
    labels = {"app": name, "pace": name}
    container = {"name": "main", "image": "registry.example/app:1"}
    spec = {"containers": [container], "nodeSelector": {"pace": "yes"}}
    template = {"metadata": {"labels": labels}, "spec": spec}
    selector = {"matchLabels": {"app": name}}
    return {"metadata": {"name": name}, "spec": {"replicas": 3, "selector": selector, "template": template}}


def is_old(pod: dict[str, Any]) -> bool:
    created = datetime.fromisoformat(pod["metadata"]["creationTimestamp"])
    return datetime.now(UTC) - created > timedelta(seconds=2)


@pytest.fixture(scope="module")
def product(
    real: RealCluster, postgresql_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Product]:
    real.forget_installation()
    folder = tmp_path_factory.mktemp("pace")
    (folder / "policy.yaml").write_text(policy(*PROFILES), encoding="utf-8")
    with psycopg.connect(postgresql_url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE pace")
    try:
        with (
            redis_of_its_own() as broker,
            Product(
                folder,
                environment={
                    "DESCHEDUI_DATABASE_URL": f"{postgresql_url.rpartition('/')[0]}/pace",
                    "DESCHEDUI_BROKER_URL": broker.url,
                    "DESCHEDUI_POLICY_FILE": str(folder / "policy.yaml"),
                },
                kubeconfigs={account: real.plane.kubeconfig(account) for account in ("web", "worker")},
                settings=SETTINGS,
            ) as product,
        ):
            yield product
            assert product.errors() == []
    except Missing as missing:
        skip(str(missing))


@pytest.fixture(scope="module")
def stage(real: RealCluster, product: Product, workloads: dict[str, Workload]) -> Iterator[Stage]:
    """All are nominated; two of each of the first three are approved, of which the first gets no replacement."""
    cycle = product.run_cycle()
    for each in workloads.values():
        each.decisions = product.decisions(each.namespace)
        assert len(each.decisions) == 3, repr(cycle)[:3000]
    with reviewer(product.url) as ada:
        ada.sign_in("ada", PASSWORD)
        stage = Stage(real, product, ada, workloads)
        for name in ("stuck", "late", "shrunk"):
            stage.approve(*workloads[name].decisions[:2])
        yield stage


def test_approving_three_of_three_never_leaves_fewer_than_two_ready(stage: Stage) -> None:
    steady = stage.workloads["steady"]
    pods = f"/api/v1/namespaces/{steady.namespace}/pods"
    owner = f"/apis/apps/v1/namespaces/{steady.namespace}/replicasets"
    with Watch(stage.real.plane, pods) as seen, Watch(stage.real.plane, owner) as counted:
        stage.approve(*steady.decisions)
        for decision in steady.decisions:
            stage.wait_for(decision, eviction="evicted")
        stage.real.ready_pods(steady.namespace, 3)

    assert sorted(steady.evicted()) == sorted(each["pod_uid"] for each in steady.decisions)
    assert min(ready_counts(seen.events)) == 2
    assert min(each["status"].get("readyReplicas", 0) for _, each in counted.events) == 2


@pytest.fixture(scope="module")
def changed(stage: Stage) -> Stage:
    """While nothing may go, three are approved; then a sibling crashes and the policy of another is edited."""
    crashing, edited, kept = (stage.workloads[name] for name in ("crashing", "edited", "kept"))
    freeze = stage.product.api("POST", "freezes/", {"cluster": CLUSTER, "reason": "while the world changes"})
    stage.approve(crashing.decisions[0], edited.decisions[0], kept.decisions[0])
    crashing.set_ready(crashing.decisions[1]["pod_uid"], ready=False)
    others = [each for each in PROFILES if each["name"] != "edited"]
    text = policy(*others, profile("edited", maxPodLifeTimeSeconds=3600))
    (stage.product.folder / "policy.yaml").write_text(text, encoding="utf-8")
    stage.product.run_cycle(dry=True)
    stage.product.api("POST", f"freezes/{freeze['id']}/lift/")
    return stage


def difference(row: dict[str, Any]) -> dict[str, list[str]]:
    """What the timeline says changed when it went back to pending."""
    (event,) = [event for event in row["timeline"] if event["kind"] == "back_to_pending"]
    return dict(event["detail"]["changes"])


def test_a_sibling_that_crashes_after_the_approval_asks_again(changed: Stage) -> None:
    crashing = changed.workloads["crashing"]
    row = changed.wait_for(crashing.decisions[0], verdict="pending")
    assert (row["eviction"], crashing.evicted()) == ("none", [])
    assert difference(row) == {"ready replicas": ["3 of 3", "2 of 3"]}
    assert "ready replicas: 3 of 3 before, 2 of 3 now" in changed.ada.read(row["id"])

    changed.approve(row)  # A second yes is one to what is shown now.

    changed.wait_for(row, eviction="evicted")
    assert crashing.evicted() == [row["pod_uid"]]


def test_a_policy_that_now_says_something_else_for_it_asks_again(changed: Stage) -> None:
    edited = changed.workloads["edited"]
    row = changed.wait_for(edited.decisions[0], verdict="pending")
    assert (row["eviction"], edited.evicted()) == ("none", [])
    assert difference(row) == {"policy": ["version 1", "version 2"]}
    assert "policy: version 1 before, version 2 now" in changed.ada.read(row["id"])


def test_a_policy_that_says_the_same_for_it_holds_nothing_up(changed: Stage) -> None:
    kept = changed.workloads["kept"]
    changed.wait_for(kept.decisions[0], eviction="evicted")
    assert kept.evicted() == [kept.decisions[0]["pod_uid"]]


def test_without_a_ready_replacement_the_owners_rest_is_held_until_somebody_says_go_on(stage: Stage) -> None:
    stuck = stage.workloads["stuck"]
    first, second, _ = stuck.decisions
    row = stage.wait_until_held(second)
    assert row["held"].startswith(f"no Ready replacement for {stuck.namespace}/{first['pod_name']}")
    assert (row["eviction"], stuck.evicted()) == ("queued", [first["pod_uid"]])

    stage.ada.go_on(second["id"])

    # The first one is still missing; but its own decision moved it, so it is not lost.
    stage.wait_for(second, eviction="evicted")
    assert stuck.evicted() == [first["pod_uid"], second["pod_uid"]]


def test_the_held_is_left_when_the_replacement_becomes_ready(stage: Stage) -> None:
    late = stage.workloads["late"]
    first, second, third = late.decisions
    stage.wait_until_held(second)
    (replacement,) = late.uids() - {second["pod_uid"], third["pod_uid"]}
    late.set_ready(replacement, ready=True)
    row = stage.wait_for(second, eviction="evicted")
    assert [event["kind"] for event in row["timeline"]].count("released") == 1
    assert late.evicted() == [first["pod_uid"], second["pod_uid"]]


def test_the_held_is_left_when_the_owner_wants_no_more_pods(stage: Stage) -> None:
    shrunk = stage.workloads["shrunk"]
    first, second, _ = shrunk.decisions
    stage.wait_until_held(second)
    stage.real.patch(shrunk.path, {"spec": {"replicas": 2}})
    stage.wait_for(second, eviction="evicted")
    assert shrunk.evicted() == [first["pod_uid"], second["pod_uid"]]
    events = stage.product.decision(first["id"])["timeline"]
    assert any("wants no more pods than the 2" in event["reason"] for event in events)
