"""Node fit: what keeps a pod off a node, and that the shared answers equal those for each pod and node alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deschedui.descheduler.nodefit import NodeFit
from deschedui.descheduler.objects import Node, Pod
from deschedui.descheduler.overlay import Overlay
from deschedui.descheduler.snapshot import Snapshot
from tests.engine.builders import build_node, build_pod, build_snapshot

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def required_nodes(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def apart_from(app: str, key: str = "kubernetes.io/hostname", **term: Any) -> dict[str, Any]:
    selector = {"matchLabels": {"app": app}}
    return {
        "affinity": {"podAntiAffinity": {REQUIRED: [{"labelSelector": selector, "topologyKey": key, **term}]}}
    }


def misfit(pod: Pod, node: Node, *others: Pod) -> str:
    """What keeps the pod (on n1) off this node."""
    snapshot = build_snapshot(nodes=[build_node("n1"), node], pods=[pod, *others])
    found = NodeFit(snapshot).misfit(pod, snapshot.node_index.number[node.metadata.name])
    return found.reason if found else ""


def test_an_empty_node_fits() -> None:
    assert misfit(build_pod(), build_node("n2")) == ""


def test_a_cordoned_node_does_not() -> None:
    assert misfit(build_pod(), build_node("n2", unschedulable=True)) == "is cordoned"


def test_a_node_selector_says_which_label_is_missing() -> None:
    pod = build_pod(spec={"nodeSelector": {"disk": "ssd"}})
    reason = misfit(pod, build_node("n2", labels={"disk": "hdd"}))
    assert reason == "does not have the label disk=ssd but disk=hdd, which the pod's nodeSelector asks for"


@pytest.mark.parametrize(
    ("term", "fits"),
    [
        (expression("zone", "In", "a", "b"), True),
        (expression("zone", "In", "b"), False),
        (expression("zone", "NotIn", "b"), True),
        (expression("other", "NotIn", "b"), True),
        (expression("zone", "Exists"), True),
        (expression("other", "Exists"), False),
        (expression("other", "DoesNotExist"), True),
        (expression("cores", "Gt", "7"), True),
        (expression("cores", "Lt", "8"), False),
        (expression("zone", "Gt", "7"), False),
        (expression("cores", "Gt", "1", "2"), False),
        (expression("zone", "In"), False),
        (expression("zone", "Like", "a"), False),
        (expression("bad key", "DoesNotExist"), False),
        ({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}, True),
        ({"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n2"]}]}, False),
        ({"matchFields": [{"key": "spec.x", "operator": "In", "values": [""]}]}, True),
        ({"matchFields": [{"key": "metadata.name", "operator": "Exists"}]}, False),
        ({}, False),
    ],
)
def test_required_affinity_is_matched_term_by_term(term: dict[str, Any], *, fits: bool) -> None:
    pod = build_pod(spec=required_nodes(term))
    assert (misfit(pod, build_node("n2", labels={"zone": "a", "cores": "8"})) == "") is fits


def test_one_matching_term_is_enough_and_no_term_is_none() -> None:
    node = build_node("n2", labels={"zone": "a"})
    either = required_nodes(expression("zone", "Like", "a"), expression("zone", "In", "a"))
    assert misfit(build_pod(spec=either), node) == ""
    assert misfit(build_pod(spec=required_nodes()), node) == "does not match the pod's required node affinity"


def test_a_taint_is_named() -> None:
    reason = misfit(build_pod(), build_node("n2", taints=["dedicated=gpu"]))
    assert reason == "has taint dedicated=gpu:NoSchedule, which the pod does not tolerate"


def test_a_taint_that_only_prefers_is_nothing() -> None:
    assert misfit(build_pod(), build_node("n2", taints=["a=b:PreferNoSchedule"])) == ""


def test_the_pod_it_keeps_apart_from_is_named() -> None:
    pod, other = build_pod(spec=apart_from("web")), build_pod("web-2", node="n2")
    assert misfit(pod, build_node("n2"), other) == "runs shop/web-2, from which the pod keeps apart"


@pytest.mark.parametrize(
    "other",
    [
        build_pod("web-2", node="n2", phase="Succeeded"),
        build_pod("web-2", node="n2", namespace="media"),
        build_pod("web-2", node="n2", labels={"app": "db"}),
        build_pod("web-1", node="n2", namespace="shop-2"),
    ],
    ids=["finished", "another namespace", "another app", "a namesake"],
)
def test_anti_affinity_passes_over_others(other: Pod) -> None:
    pod = build_pod(spec=apart_from("web", namespaces=["shop", "shop-2"]))
    assert misfit(pod, build_node("n2"), other) == ""


def test_anti_affinity_needs_the_topology_key_on_the_node() -> None:
    pod, other = build_pod(spec=apart_from("web", key="zone")), build_pod("web-2", node="n2")
    assert misfit(pod, build_node("n2"), other) == ""


def test_a_shortage_is_told_with_numbers() -> None:
    pod, other = build_pod(requests={"cpu": "2"}), build_pod("big", node="n2", requests={"cpu": "2500m"})
    assert misfit(pod, build_node("n2"), other) == "has 1.5 cpu free, the pod requests 2"


def test_pod_slots_run_out() -> None:
    full = build_node("n2", allocatable={"cpu": "4", "memory": "8Gi", "pods": "1"})
    assert misfit(build_pod(), full, build_pod("b", node="n2")) == (
        "has no room for another pod (1 run there)"
    )


def test_a_resource_that_a_node_does_not_list_is_none_of_it() -> None:
    assert misfit(build_pod(requests={"gpu": "1"}), build_node("n2")) == "has 0 gpu free, the pod requests 1"
    assert misfit(build_pod(requests={"gpu": "0"}), build_node("n2")) == ""


def test_why_a_pod_fits_nowhere_is_told_with_counts() -> None:
    nodes = [
        build_node("n1"),
        build_node("n2", unschedulable=True),
        build_node("n3", taints=["a=b"]),
        build_node("n4", allocatable={"cpu": "1", "memory": "8Gi", "pods": "9"}),
        build_node("n5", allocatable={"cpu": "1", "memory": "8Gi", "pods": "9"}),
    ]
    snapshot = build_snapshot(nodes=nodes, pods=[build_pod(requests={"cpu": "2"})])
    assert NodeFit(snapshot).why_nowhere(0) == (
        "cpu",
        "fits on none of 4 other nodes: 2 without room for cpu 2; 1 cordoned; 1 with taints it does not tolerate",
    )


# ---- shared answers against one by one

small = st.sampled_from(["0", "500m", "1", "2"])
specs = st.sampled_from(
    [
        {},
        {"nodeSelector": {"zone": "a"}},
        apart_from("web", namespaces=["ns0", "ns1", "ns2", "ns3"]),
        apart_from("db", key="zone", namespaces=["ns0", "ns4", "ns5"]),
        required_nodes({}),
    ]
)


@st.composite
def clusters(draw: st.DrawFn) -> Snapshot:
    nodes = [
        build_node(
            f"n{number}",
            labels={"zone": draw(st.sampled_from("ab"))},
            taints=draw(st.sampled_from([[], ["a=b"]])),
            unschedulable=draw(st.booleans()) and number > 2,
            allocatable={
                "cpu": draw(st.sampled_from(["1", "2"])),
                "pods": draw(st.sampled_from(["2", "5"])),
                "memory": "1Gi",
            },
        )
        for number in range(4)
    ]
    pods = [
        build_pod(
            f"p{draw(st.integers(0, 3))}",
            namespace=f"ns{number}",
            node=f"n{draw(st.integers(0, 3))}",
            labels={"app": draw(st.sampled_from(["web", "db"]))},
            requests={"cpu": draw(small)},
            tolerations=draw(st.sampled_from([[], [{"operator": "Exists"}]])),
            spec={**draw(specs)},
            phase=draw(st.sampled_from(["Running", "Running", "Succeeded"])),
        )
        for number in range(draw(st.integers(1, 7)))
    ]
    return build_snapshot(nodes=nodes, pods=pods)


def fits_one_by_one(snapshot: Snapshot, number: int, overlay: Overlay) -> bool:
    fit, pod = NodeFit(snapshot), snapshot.pods[number]
    return any(
        fit.misfit(pod, place, gone=overlay.gone_on.get(node.metadata.name, ())) is None
        for place, node in enumerate(snapshot.nodes)
        if node.metadata.name != pod.spec.node_name
    )


@given(clusters())
def test_the_steps_for_all_nodes_equal_those_of_each_node_alone(snapshot: Snapshot) -> None:
    fit = NodeFit(snapshot)
    for number, pod in enumerate(snapshot.pods):
        requests = snapshot.requests[number]
        for place, node in enumerate(snapshot.nodes):
            kept_off = [cause for cause, nodes in fit.steps(pod, requests) if not nodes >> place & 1]
            alone = fit.misfit(pod, place)
            if node.metadata.name != pod.spec.node_name:
                assert (alone.kind if alone else None) == next(iter(kept_off), None)


def check_all(fit: NodeFit, snapshot: Snapshot, overlay: Overlay, numbers: Sequence[int]) -> None:
    for number in numbers:
        assert fit.fits_elsewhere(number, overlay) == fits_one_by_one(snapshot, number, overlay)


@given(clusters(), st.data())
def test_shared_answers_equal_those_of_each_pod_and_node_alone(
    snapshot: Snapshot, data: st.DataObject
) -> None:
    fit, overlays = NodeFit(snapshot), [Overlay(snapshot), Overlay(snapshot)]
    numbers = range(len(snapshot.pods))
    for _ in range(data.draw(st.integers(1, 8))):
        overlay = data.draw(st.sampled_from(overlays))
        check_all(fit, snapshot, overlay, [n for n in numbers if n not in overlay.evicted])
        left = [number for number in numbers if number not in overlay.evicted]
        if overlay.log and (not left or data.draw(st.booleans())):
            overlay.take_back()
        elif left:
            overlay.evict(data.draw(st.sampled_from(left)))
