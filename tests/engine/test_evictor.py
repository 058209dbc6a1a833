"""DefaultEvictor: every protection with its sentence, its upstream text, and its place in the order."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from deschedui.descheduler.evictor import DefaultEvictor, Objection, counted, warnings_of
from deschedui.descheduler.objects import Pod
from deschedui.descheduler.overlay import Overlay
from deschedui.descheduler.plugins.default_evictor_args import (
    DefaultEvictorArgs,
    PodProtections,
    PodProtectionsConfig,
    PodsWithPVCConfig,
    StorageClass,
)
from deschedui.descheduler.selectors import LabelSelector
from tests.engine.builders import (
    NOW,
    build_claim,
    build_namespace,
    build_node,
    build_pdb,
    build_pod,
    build_snapshot,
    owned_by,
)

EVICT = "descheduler.alpha.kubernetes.io/evict"
PREFER_NOT = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
CLAIM = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data-0"}}]}


def judge(pod: Pod, args: DefaultEvictorArgs | None = None, **cluster: Any) -> tuple[Objection, ...]:
    """What the filter says of the pod."""
    threshold = cluster.pop("threshold", 2_000_000_000)
    others = cluster.pop("others", ())
    snapshot = build_snapshot(pods=[pod, *others], **cluster)
    evictor = DefaultEvictor(snapshot, args or DefaultEvictorArgs(), threshold, NOW)
    return evictor.objections(snapshot.pods.index(pod), Overlay(snapshot))


def before_eviction(pod: Pod, args: DefaultEvictorArgs, **cluster: Any) -> tuple[Objection, ...]:
    """What the pre-eviction filter says of the pod."""
    snapshot = build_snapshot(pods=[pod], **cluster)
    return DefaultEvictor(snapshot, args, 0, NOW).before_eviction(0, Overlay(snapshot))


def checks(objections: tuple[Objection, ...]) -> list[str]:
    return [objection.check for objection in objections]


def protecting(
    *names: str, without: tuple[str, ...] = (), classes: tuple[str, ...] = ()
) -> DefaultEvictorArgs:
    config = PodProtectionsConfig(pods_with_pvc=PodsWithPVCConfig(tuple(map(StorageClass, classes))))
    return DefaultEvictorArgs(
        pod_protections=PodProtections(extra_enabled=names, default_disabled=without, config=config)
    )


def test_an_ordinary_pod_may_go() -> None:
    assert judge(build_pod()) == ()


@pytest.mark.parametrize(
    ("pod", "reason", "upstream"),
    [
        (
            build_pod(annotations={"kubernetes.io/config.mirror": ""}),
            "is a mirror pod: it only shows what the kubelet runs from a file on its node",
            "pod is a mirror pod",
        ),
        (
            build_pod(annotations={"kubernetes.io/config.source": "file"}),
            "is a static pod: the kubelet would start it again on its node",
            "pod is a static pod",
        ),
        (
            build_pod(metadata={"deletionTimestamp": "2026-11-30T11:59:00Z"}),
            "is already terminating",
            "pod is terminating",
        ),
        (
            build_pod(owner=None),
            "has no owner, so nothing would create it again",
            "pod does not have any ownerRefs",
        ),
        (
            build_pod(spec={"volumes": [{"name": "cache", "emptyDir": {}}]}),
            "has local storage that would be lost: cache (emptyDir)",
            "pod has local storage and is protected against eviction",
        ),
        (
            build_pod(spec={"volumes": [{"name": "logs", "hostPath": {"path": "/var/log"}}]}),
            "has local storage that would be lost: logs (hostPath)",
            "pod has local storage and is protected against eviction",
        ),
        (
            build_pod(owner=owned_by("proxy", kind="DaemonSet")),
            "belongs to DaemonSet proxy, which would start it again on the same node",
            "daemonset pods are protected against eviction",
        ),
    ],
    ids=["mirror", "static", "terminating", "bare", "emptyDir", "hostPath", "DaemonSet"],
)
def test_the_default_protections_say_why(pod: Pod, reason: str, upstream: str) -> None:
    (objection,) = judge(pod)
    assert (objection.reason, objection.upstream) == (reason, upstream)


def test_a_system_critical_pod_is_over_the_default_threshold_too() -> None:
    assert checks(judge(build_pod(priority=2_000_000_000))) == ["systemCritical", "priority"]


def test_a_priority_at_the_threshold_is_protected_and_one_below_is_not() -> None:
    (objection,) = judge(build_pod(priority=500), threshold=500)
    assert objection.reason == "has priority 500; the policy protects priorities from 500 on"
    assert judge(build_pod(priority=499), threshold=500) == ()
    assert judge(build_pod(), threshold=-5) == ()


def test_switching_off_critical_protection_switches_off_the_threshold() -> None:
    args = protecting(without=("SystemCriticalPods",))
    assert judge(build_pod(priority=2_000_000_000), args, threshold=5) == ()


def test_a_bare_pod_may_go_once_it_failed_where_that_is_allowed() -> None:
    args = DefaultEvictorArgs(evict_failed_bare_pods=True)
    assert judge(build_pod(owner=None, phase="Failed"), args) == ()
    (objection,) = judge(build_pod(owner=None), args)
    assert objection.upstream == "pod does not have any ownerRefs and is not in failed phase"


def test_all_objections_are_collected_in_upstreams_order() -> None:
    pod = build_pod(
        annotations={"kubernetes.io/config.mirror": "", "kubernetes.io/config.source": "file"},
        owner=None,
        metadata={"deletionTimestamp": "2026-11-30T11:59:00Z"},
        priority=2_000_000_001,
        spec={
            "volumes": [{"name": "a", "emptyDir": {}}, *CLAIM["volumes"]],
            "resourceClaims": [{"name": "g"}],
        },
    )
    args = DefaultEvictorArgs(
        pod_protections=PodProtections(
            extra_enabled=("PodsWithPVC", "PodsWithoutPDB", "PodsWithResourceClaims")
        ),
        label_selector=LabelSelector(match_labels={"app": "db"}),
        min_pod_age=timedelta(hours=3),
    )
    expected = "mirror static terminating systemCritical priority bare localStorage pvc pdb resourceClaims"
    assert checks(judge(pod, args)) == [*expected.split(), "labels", "minPodAge"]


def test_the_evict_annotation_lifts_every_check_whatever_its_value() -> None:
    pod = build_pod(
        annotations={EVICT: "false", PREFER_NOT: "", "kubernetes.io/config.mirror": ""}, owner=None
    )
    args = DefaultEvictorArgs(no_eviction_policy="Mandatory", min_replicas=9)
    assert judge(pod, args) == ()


def test_the_value_false_of_the_evict_annotation_is_warned_about() -> None:
    (warning,) = warnings_of(build_pod(annotations={EVICT: "false"}))
    assert warning.startswith(f'{EVICT}: "false" does not protect this pod')
    assert "noEvictionPolicy: Mandatory" in warning


def test_a_wish_not_to_be_evicted_binds_only_where_it_is_mandatory() -> None:
    pod = build_pod(annotations={PREFER_NOT: "false"}, owner=None)
    assert checks(judge(pod, DefaultEvictorArgs(no_eviction_policy="Mandatory"))) == ["preferNoEviction"]
    assert checks(judge(pod)) == ["bare"]


def test_claims_protect_where_that_is_switched_on() -> None:
    (objection,) = judge(build_pod(spec=CLAIM), protecting("PodsWithPVC"))
    assert objection.reason == "uses persistent volume claims: data-0"
    assert judge(build_pod(spec=CLAIM)) == ()


@pytest.mark.parametrize(
    ("claims", "upstream"),
    [
        ([build_claim("data-0")], 'pod using protected storage class "fast"'),
        (
            [],
            'failed to get persistent volume claim "shop"/"data-0": persistentvolumeclaim "data-0" not found',
        ),
        (
            [build_claim("data-0", storage_class=None)],
            'failed to resolve storage class for pod "shop"/"data-0"',
        ),
    ],
)
def test_a_storage_class_list_narrows_it(claims: list[Any], upstream: str) -> None:
    args = protecting("PodsWithPVC", classes=("fast",))
    (objection,) = judge(build_pod(spec=CLAIM), args, pvcs=claims)
    assert objection.upstream == upstream


def test_another_storage_class_does_not_protect() -> None:
    args = protecting("PodsWithPVC", classes=("fast",))
    assert judge(build_pod(spec=CLAIM), args, pvcs=[build_claim("data-0", storage_class="slow")]) == ()


def test_a_budget_makes_a_pod_evictable_where_one_is_demanded() -> None:
    args = protecting("PodsWithoutPDB")
    assert checks(judge(build_pod(), args)) == ["pdb"]
    assert judge(build_pod(), args, pdbs=[build_pdb()]) == ()


def test_too_few_replicas_are_counted() -> None:
    args = DefaultEvictorArgs(min_replicas=3)
    (objection,) = judge(build_pod(), args, others=[build_pod("web-2", phase="Succeeded")])
    assert (
        objection.reason
        == "belongs to ReplicaSet web, which has 2 replicas; the policy evicts from 3 replicas on"
    )
    assert objection.upstream == "owner has 2 replicas which is less than minReplicas of 3"


def test_min_replicas_leaves_pods_of_two_owners_alone() -> None:
    pod = build_pod(metadata={"ownerReferences": [owned_by("a"), owned_by("b")]})
    assert judge(pod, DefaultEvictorArgs(min_replicas=3)) == ()


def test_a_young_pod_is_protected_by_min_pod_age() -> None:
    args = DefaultEvictorArgs(min_pod_age=timedelta(minutes=5))
    (objection,) = judge(build_pod(age=timedelta(minutes=3)), args)
    assert objection.reason == "started 3m ago; the policy protects pods for their first 5m"
    assert objection.upstream == "pod age is not older than MinPodAge: &Duration{Duration:5m0s,} seconds"
    assert judge(build_pod(age=timedelta(minutes=5)), args) == ()


def test_a_pod_that_has_not_started_is_young() -> None:
    args = DefaultEvictorArgs(min_pod_age=timedelta(minutes=5))
    assert checks(judge(build_pod(status={"startTime": None}), args)) == ["minPodAge"]


def test_a_pod_must_fit_on_another_node() -> None:
    nodes = [build_node("n1"), build_node("n2", unschedulable=True)]
    (objection,) = before_eviction(build_pod(), DefaultEvictorArgs(node_fit=True), nodes=nodes)
    assert (objection.check, objection.reason) == (
        "nodeFit.cordoned",
        "fits on none of 1 other node: 1 cordoned",
    )


def test_node_fit_looks_only_at_ready_nodes_of_its_own_selector() -> None:
    nodes = [build_node("n1"), build_node("n2", labels={"pool": "a"}), build_node("n3", ready=False)]
    args = DefaultEvictorArgs(node_fit=True, node_selector="pool=b")
    assert checks(before_eviction(build_pod(), args, nodes=nodes)) == ["nodeFit.noNodes"]


def test_a_node_selector_that_cannot_be_read_holds_every_pod_back() -> None:
    args = DefaultEvictorArgs(node_fit=True, node_selector="a in (b")
    (objection,) = before_eviction(build_pod(), args)
    assert (objection.check, objection.upstream) == ("evictorNodeSelector", "unable to list ready nodes")


def test_the_pods_namespace_must_be_selected() -> None:
    args = DefaultEvictorArgs(namespace_label_selector=LabelSelector(match_labels={"tier": "web"}))
    assert checks(before_eviction(build_pod(), args)) == ["namespaceLabels"]
    assert before_eviction(build_pod(), args, namespaces=[build_namespace("shop", tier="web")]) == ()


def test_objections_can_be_counted_in_words() -> None:
    assert counted("daemonSet") == "DaemonSet pods"
    assert counted("nodeFit.cpu") == "pods that fit on no other node: cpu"
