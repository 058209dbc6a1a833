"""The sample cluster has what the demo promises."""

from collections import Counter
from datetime import datetime, timedelta

import pytest

from deschedui.demo.apiserver.resources import BUDGETS, NODES, PODS
from deschedui.demo.apiserver.store import Store
from deschedui.demo.controller import Controller
from deschedui.demo.samplecluster import WEEK, load
from tests.demo.cluster import NOW


@pytest.fixture(scope="module")
def store() -> Store:
    filled = Store(lambda: NOW)
    load(filled)
    return filled


def overdue(store: Store, now: datetime) -> Counter[str]:
    """Pods older than a week, by namespace."""
    ages = {
        p["metadata"]["uid"]: now - datetime.fromisoformat(p["metadata"]["creationTimestamp"])
        for p in store.all(PODS)
    }
    return Counter(
        p["metadata"]["namespace"]
        for p in store.all(PODS)
        if ages[p["metadata"]["uid"]].total_seconds() > WEEK
    )


def test_there_are_three_zones_a_dozen_nodes_and_about_150_pods(store: Store) -> None:
    nodes = list(store.all(NODES))
    assert len({n["metadata"]["labels"]["topology.kubernetes.io/zone"] for n in nodes}) == 3
    assert len(nodes) == 12
    assert 140 <= len(list(store.all(PODS))) <= 165


def test_every_pod_runs_somewhere(store: Store) -> None:
    assert {p["status"]["phase"] for p in store.all(PODS)} == {"Running"}
    assert all(p["spec"].get("nodeName") for p in store.all(PODS))


def test_something_is_overdue_from_the_start_in_each_part_of_the_policy(store: Store) -> None:
    assert set(overdue(store, NOW)) >= {
        "shop",
        "databases",
        "monitoring",
        "analytics",
        "staging",
        "legacy",
        "identity",
    }


def test_more_is_overdue_within_a_minute_and_after(store: Store) -> None:
    counts = [overdue(store, NOW + timedelta(seconds=s)).total() for s in (0, 60, 180, 300)]
    assert counts == sorted(set(counts))


def test_some_budgets_allow_nothing(store: Store) -> None:
    allowed = {b["metadata"]["name"]: b["status"]["disruptionsAllowed"] for b in store.all(BUDGETS)}
    assert (allowed["payments"], allowed["loki"]) == (0, 0)
    assert allowed["cart"] == 1


def test_the_first_tainted_node_has_pods_that_must_leave(store: Store) -> None:
    Controller(store, drama=True).step(NOW)
    tainted = [
        n["metadata"]["name"]
        for n in store.all(NODES)
        if any(t["key"] == "maintenance" for t in n["spec"].get("taints") or ())
    ]
    leaving = [p for p in store.all(PODS) if p["spec"]["nodeName"] in tainted]
    assert len(tainted) == 1
    assert {"ReplicaSet"} <= {p["metadata"]["ownerReferences"][0]["kind"] for p in leaving}


def test_an_empty_cluster_has_only_what_every_cluster_has() -> None:
    empty = Store(lambda: NOW)
    load(empty, empty=True)
    assert list(empty.all(PODS)) == []
    assert list(empty.all(NODES)) == []
