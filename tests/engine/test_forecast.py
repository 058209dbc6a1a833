"""What an eviction would do: room, budgets, replicas, volumes, in words and numbers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deschedui.descheduler.forecast import Fit, Forecast, Forecaster, forecast, forecast_all
from deschedui.descheduler.objects import Pod
from deschedui.descheduler.plugins.default_evictor_args import DefaultEvictorArgs
from tests.engine.builders import (
    build_claim,
    build_node,
    build_nodes,
    build_pdb,
    build_pod,
    build_policy,
    build_profile,
    build_replica_set,
    build_snapshot,
    build_stateful_set,
    owned_by,
    uid_of,
)

READY = [{"type": "Ready", "status": "True"}]
NOT_READY = [{"type": "Ready", "status": "False"}]


def foresee(pod: Pod, *others: Pod, **cluster: Any) -> Forecast:
    return forecast(build_snapshot(pods=[pod, *others], **cluster), pod)


def chips(made: Forecast) -> list[str]:
    return [chip.text for chip in made.chips]


def test_nodes_where_it_fits_are_named_and_what_others_miss() -> None:
    nodes = [
        build_node("n1"),
        build_node("n2"),
        build_node("n3", taints=["a=b"]),
        build_node("n4", ready=False),
    ]
    made = foresee(build_pod(), nodes=nodes)
    assert (made.fits_on, made.target) == (("n2",), "n2")
    assert made.missing == {
        "n3": "has taint a=b:NoSchedule, which the pod does not tolerate",
        "n4": "is not ready",
    }
    assert made.missing_counts == {"taints": 1, "notReady": 1}


def test_the_node_it_leaves_is_no_place_to_go() -> None:
    made = foresee(build_pod(), nodes=[build_node("n1")])
    assert (made.fit, made.missing, chips(made)[0]) == (Fit.NOWHERE, {}, "no room")


def test_lists_are_bounded_and_counts_are_not() -> None:
    made = foresee(build_pod(node="n1"), nodes=build_nodes(300))
    assert (len(made.fits_on), made.fits_count) == (200, 299)


def test_a_budget_that_allows_nothing_blocks() -> None:
    made = foresee(build_pod(), pdbs=[build_pdb(allowed=0, healthy=2, desired=2)])
    assert (made.blocked_by, made.pdbs[0].current_healthy) == (("web",), 2)
    assert "PDB web allows 0" in chips(made)


def test_a_budget_that_allows_some_does_not() -> None:
    assert foresee(build_pod(), pdbs=[build_pdb(allowed=1)]).blocked_by == ()


@pytest.mark.parametrize("phase", ["Pending", "Succeeded", "Failed"])
def test_budgets_do_not_apply_to_pods_that_do_not_run(phase: str) -> None:
    made = foresee(build_pod(phase=phase), pdbs=[build_pdb()])
    assert (made.pdb_applies, made.blocked_by) == (False, ())
    assert made.pdb_why_not == f"PodDisruptionBudgets do not apply to pods that are {phase}"


def test_an_unready_pod_may_go_while_its_budget_is_kept_without_it() -> None:
    pod = build_pod(status={"conditions": NOT_READY})
    assert foresee(pod, pdbs=[build_pdb(allowed=0, healthy=2, desired=2)]).blocked_by == ()
    assert foresee(pod, pdbs=[build_pdb(allowed=0, healthy=1, desired=2)]).blocked_by == ("web",)


def test_two_budgets_are_warned_about() -> None:
    made = foresee(build_pod(), pdbs=[build_pdb("a", allowed=1), build_pdb("b", allowed=1)])
    assert made.warnings[0] == "2 PodDisruptionBudgets match (a, b); the API server evicts no such pod"


def test_the_deployment_above_the_replica_set_is_named_and_counted_over_all_its_sets() -> None:
    sets = [
        build_replica_set("web", replicas=2, ready=2, deployment="web"),
        build_replica_set("web-new", replicas=1, ready=0, deployment="web"),
        build_replica_set("other", replicas=5, ready=5, deployment="other"),
    ]
    made = foresee(build_pod(), replica_sets=sets)
    assert (made.owner_kind, made.owner_name, made.ready, made.desired) == ("Deployment", "web", 2, 3)
    assert "leaves 1 of 3 Ready" in chips(made)
    assert (made.owner_ready, made.owner_desired) == (2, 2)


def test_a_replica_set_of_its_own_counts_itself() -> None:
    made = foresee(build_pod(), replica_sets=[build_replica_set(replicas=3, ready=3)])
    assert (made.owner_kind, made.owner_name, made.ready_after) == ("ReplicaSet", "web", 2)


def test_a_pod_that_is_not_ready_costs_no_ready_replica() -> None:
    pod = build_pod(status={"conditions": NOT_READY})
    assert foresee(pod, replica_sets=[build_replica_set(replicas=3, ready=2)]).ready_after == 2


def test_an_owner_that_was_not_listed_is_counted_by_its_pods() -> None:
    job = owned_by("nightly", kind="Job")
    pods = [build_pod(f"nightly-{number}", owner=job, status={"conditions": READY}) for number in range(3)]
    made = foresee(*pods)
    assert (made.owner_kind, made.ready, made.desired) == ("Job", 3, 3)


def test_the_only_replica_is_said_and_how_to_leave_such_pods_alone() -> None:
    made = foresee(build_pod(), replica_sets=[build_replica_set(replicas=1, ready=1)])
    assert made.only_replica
    assert "only replica" in chips(made)
    assert "minReplicas: 2" in made.warnings[0]


def test_the_hint_is_left_out_where_the_policy_follows_it_already() -> None:
    pod = build_pod()
    snapshot = build_snapshot(pods=[pod], replica_sets=[build_replica_set(replicas=1, ready=1)])
    careful = build_policy(build_profile(evictor=DefaultEvictorArgs(min_replicas=2)))
    assert Forecaster(snapshot, careful).of(pod).warnings == ()


def test_a_stateful_set_gives_its_pods_their_names_back() -> None:
    pod = build_pod("db-0", owner=owned_by("db", kind="StatefulSet"))
    made = foresee(pod, stateful_sets=[build_stateful_set()])
    assert made.same_name
    assert "StatefulSet, will come back under the same name" in chips(made)


def test_volumes_that_tie_it_to_a_node_are_told() -> None:
    claim = build_claim("data-0", annotations={"volume.kubernetes.io/selected-node": "n1"})
    volumes = [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-0"}},
        {"name": "lost", "persistentVolumeClaim": {"claimName": "lost"}},
        {"name": "cache", "emptyDir": {}},
    ]
    made = foresee(build_pod(spec={"volumes": volumes}), pvcs=[claim])
    data, lost = made.bound_volumes
    assert (data.volume, data.storage_class, data.node) == ("pv-data-0", "fast", "n1")
    assert (lost.claim, lost.volume) == ("lost", "")
    assert made.local_volumes == ("cache (emptyDir)",)


def test_pods_that_are_asked_for_together_do_not_share_a_place() -> None:
    pods = [build_pod(f"big-{number}", requests={"cpu": "3"}) for number in range(3)]
    made = forecast_all(build_snapshot(pods=pods), pods)
    assert [item.fit for item in made] == [Fit.FITS, Fit.CROWDED, Fit.CROWDED]
    assert [item.target for item in made] == ["n2", "", ""]


def test_a_forecast_is_stored_and_read_back_as_json() -> None:
    made = foresee(
        build_pod(), pdbs=[build_pdb()], replica_sets=[build_replica_set(uid=uid_of("ReplicaSet", "web"))]
    )
    assert Forecast.from_dict(json.loads(json.dumps(made.as_dict()))) == made
