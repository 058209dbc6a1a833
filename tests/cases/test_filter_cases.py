"""Cases from real reports, area ``filter``, as far as this engine reaches; each stands under its id."""

from __future__ import annotations

from typing import Any

import pytest

from deschedui.descheduler.evictor import warnings_of
from deschedui.descheduler.forecast import Fit, forecast, forecast_all
from deschedui.descheduler.objects import Pod
from deschedui.descheduler.plan import Answers, plan
from deschedui.descheduler.plugins.default_evictor_args import DefaultEvictorArgs
from tests.engine.builders import (
    NOW,
    build_node,
    build_pdb,
    build_pod,
    build_policy,
    build_profile,
    build_replica_set,
    build_snapshot,
    owned_by,
)

EVICT = "descheduler.alpha.kubernetes.io/evict"
ALL_UPSTREAM = [
    "pod is a mirror pod",
    "pod is a static pod",
    "pod has system critical priority and is protected against eviction",
    "pod has higher priority than specified priority class threshold",
    "pod does not have any ownerRefs",
    "pod has local storage and is protected against eviction",
]


def test_ob_01_an_evict_annotation_of_false_lifts_every_protection_and_is_warned_about() -> None:
    pod = build_pod("blocky-0", namespace="dns", owner=None, annotations={EVICT: "false"})
    made = plan(build_policy(), build_snapshot(pods=[pod]), Answers(), NOW)
    assert [item.pod for item in made.nominations] == [pod]
    (warning,) = warnings_of(pod)
    assert "does not protect this pod" in warning
    assert "prefer-no-eviction and noEvictionPolicy: Mandatory" in warning


OB_02: dict[str, tuple[Pod, str]] = {
    "mirror": (build_pod(annotations={"kubernetes.io/config.mirror": "x"}), ALL_UPSTREAM[0]),
    "static": (build_pod(annotations={"kubernetes.io/config.source": "file"}), ALL_UPSTREAM[1]),
    "daemonset": (
        build_pod(owner=owned_by("proxy", kind="DaemonSet")),
        "daemonset pods are protected against eviction",
    ),
    "bare": (build_pod(owner=None), ALL_UPSTREAM[4]),
    "emptydir": (build_pod(spec={"volumes": [{"name": "tmp", "emptyDir": {}}]}), ALL_UPSTREAM[5]),
    "critical": (build_pod(priority=2_000_000_000), ALL_UPSTREAM[2]),
}


@pytest.mark.parametrize(("pod", "upstream"), OB_02.values(), ids=list(OB_02))
def test_ob_02_each_protected_pod_has_its_specific_reason(pod: Pod, upstream: str) -> None:
    made = plan(build_policy(), build_snapshot(pods=[pod]), Answers(), NOW)
    assert made.nominations == ()
    assert made.filtered[0].upstream == upstream
    assert made.filtered[0].reason


def test_ob_02_all_reasons_are_listed_when_several_apply() -> None:
    annotations = {"kubernetes.io/config.mirror": "x", "kubernetes.io/config.source": "file"}
    volumes = [{"name": "tmp", "emptyDir": {}}]
    pod = build_pod(owner=None, annotations=annotations, priority=2_000_000_000, spec={"volumes": volumes})
    (out,) = plan(build_policy(), build_snapshot(pods=[pod]), Answers(), NOW).filtered
    assert [out.upstream, *(item.upstream for item in out.more)] == ALL_UPSTREAM


def fitting(*pods: Pod, **cluster: Any) -> Any:
    profile = build_profile(evictor=DefaultEvictorArgs(node_fit=True))
    return plan(build_policy(profile), build_snapshot(pods=pods, **cluster), Answers(), NOW)


def test_ob_04_a_candidate_that_a_budget_blocks_says_so() -> None:
    pod = build_pod()
    cluster: dict[str, Any] = {
        "pdbs": [build_pdb(allowed=0)],
        "replica_sets": [build_replica_set(replicas=1, ready=1)],
    }
    made = forecast(build_snapshot(pods=[pod], **cluster), pod)
    assert len(fitting(pod, **cluster).nominations) == 1
    assert made.blocked_by == ("web",)
    assert "PDB web allows 0" in [chip.text for chip in made.chips]
    hint = "single replica: the service is down until the new pod is ready"
    assert made.warnings == (f"{hint} (minReplicas: 2 in DefaultEvictor leaves such pods alone)",)


def ob_05() -> tuple[list[Pod], dict[str, Any]]:
    big = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    full = {"cpu": "80", "memory": "160Gi", "pods": "110"}
    pods = [
        build_pod(f"p{number}", node="a", requests={"cpu": "8", "memory": "16Gi"}) for number in range(10)
    ]
    return pods, {"nodes": [build_node("a", allocatable=full), build_node("b", allocatable=big)]}


def test_ob_05_node_fit_looks_at_the_present_cluster() -> None:
    pods, cluster = ob_05()
    assert len(fitting(*pods, **cluster).nominations) == 10


def test_ob_05_the_forecast_reserves_the_place_of_those_before() -> None:
    pods, cluster = ob_05()
    made = forecast_all(build_snapshot(pods=pods, **cluster), pods)
    assert [item.fit for item in made].count(Fit.FITS) == 1
    assert (made[0].target, made[1].fit, made[1].chips[0].text) == (
        "b",
        Fit.CROWDED,
        "fits only if others stay",
    )


def test_ob_05_a_pod_that_two_profiles_want_is_counted_once() -> None:
    policy = build_policy(build_profile(), build_profile(index=1, name="second"))
    made = plan(policy, build_snapshot(pods=[build_pod()]), Answers(), NOW)
    assert (len(made.nominations), made.counts.nominated) == (1, 1)
