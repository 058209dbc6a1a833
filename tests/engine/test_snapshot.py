"""A snapshot is indexed once and always in the same order."""

from __future__ import annotations

from deschedui.descheduler.overlay import EvictedPods, Overlay
from tests.engine.builders import (
    build_node,
    build_pdb,
    build_pod,
    build_replica_set,
    build_snapshot,
    owned_by,
    uid_of,
)

WEB = uid_of("ReplicaSet", "web")


def test_nodes_and_pods_are_in_order_however_they_came() -> None:
    snapshot = build_snapshot(
        nodes=[build_node("n2"), build_node("n1")],
        pods=[build_pod("b"), build_pod("a"), build_pod("z", namespace="a")],
    )
    assert [node.metadata.name for node in snapshot.nodes] == ["n1", "n2"]
    assert [pod.metadata.name for pod in snapshot.pods_on("n1")] == ["z", "a", "b"]


def test_a_pod_is_found_by_uid_and_by_owner() -> None:
    pod = build_pod()
    snapshot = build_snapshot(pods=[pod])
    assert snapshot.pod(pod.metadata.uid) is pod
    assert snapshot.pods_of(WEB) == (pod,)
    assert snapshot.pod("unknown") is None


def test_the_owner_is_the_controller() -> None:
    helper = {**owned_by("helper"), "controller": False}
    pod = build_pod(metadata={"ownerReferences": [helper, owned_by("web")]})
    owner = build_snapshot(pods=[pod]).owner_of(pod)
    assert owner is not None
    assert owner.name == "web"


def test_the_owner_itself_is_found_where_it_was_listed() -> None:
    pod, web = build_pod(), build_replica_set()
    snapshot = build_snapshot(pods=[pod], replica_sets=[web])
    assert snapshot.workload(pod.metadata.owner_references[0]) is web


def test_finished_pods_use_nothing() -> None:
    snapshot = build_snapshot(pods=[build_pod("a"), build_pod("b", phase="Succeeded")])
    assert snapshot.used["n1"]["cpu"] == 100 * 10**6


def test_only_budgets_that_select_the_pod_cover_it() -> None:
    pod = build_pod()
    budgets = [
        build_pdb("mine"),
        build_pdb("all", selector={}),
        build_pdb("other", selector={"matchLabels": {"app": "db"}}),
        build_pdb("elsewhere", namespace="media"),
        build_pdb("broken", selector={"matchExpressions": [{"key": "app", "operator": "Foo"}]}),
    ]
    covering = build_snapshot(pods=[pod], pdbs=budgets).pdbs_for(pod)
    assert [pdb.metadata.name for pdb in covering] == ["all", "mine"]


def test_a_budget_without_a_selector_covers_nobody() -> None:
    pod = build_pod()
    budget = build_pdb()
    nobody = type(budget)(metadata=budget.metadata)
    assert build_snapshot(pods=[pod], pdbs=[nobody]).pdbs_for(pod) == ()


def test_an_assumed_eviction_counts_until_it_is_taken_back() -> None:
    overlay = Overlay(build_snapshot(pods=[build_pod("a"), build_pod("b")]))
    overlay.evict(0)
    assert (overlay.replicas(WEB), overlay.gone_on["n1"]) == (1, [0])
    overlay.take_back()
    assert (overlay.replicas(WEB), overlay.gone_on["n1"]) == (2, [])


def test_a_pod_that_stays_listed_still_counts() -> None:
    overlay = Overlay(build_snapshot(pods=[build_pod("a"), build_pod("b")]), EvictedPods.TERMINATE)
    overlay.evict(0)
    assert overlay.replicas(WEB) == 2
