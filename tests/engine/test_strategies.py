"""The plugins that nominate: whom they want, and the sentence they give."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from deschedui.descheduler.objects import Pod
from deschedui.descheduler.plugins import external_decision, node_taints, pod_life_time
from deschedui.descheduler.plugins.arg_types import Namespaces, OwnerKinds
from deschedui.descheduler.plugins.external_decision_args import ExternalDecisionArgs
from deschedui.descheduler.plugins.node_taints_args import RemovePodsViolatingNodeTaintsArgs
from deschedui.descheduler.plugins.pod_life_time_args import ConditionFilter, PodLifeTimeArgs
from deschedui.descheduler.podfilter import left_out
from deschedui.descheduler.selectors import LabelSelector
from tests.engine.builders import EXTENDER, NOW, asking, build_node, build_pod, owned_by, rfc3339

NODE = build_node("n1")


def life(pod: Pod, **args: Any) -> str | None:
    return pod_life_time.decide(pod, NODE, PodLifeTimeArgs(**args), NOW)


def container(name: str, **state: Any) -> dict[str, Any]:
    return {"name": name, "state": state}


# ---- PodLifeTime


def test_a_pod_must_be_strictly_older_than_the_limit() -> None:
    pod = build_pod(age=timedelta(hours=24))
    assert life(pod, max_pod_life_time_seconds=86400) is None
    assert life(pod, max_pod_life_time_seconds=86399) == (
        "pod is 24h old, the policy allows at most 23h59m59s"
    )


def test_a_pod_from_the_future_is_not_too_old() -> None:
    assert life(build_pod(age=timedelta(seconds=-5)), max_pod_life_time_seconds=0) is None


def test_a_pod_without_a_creation_time_is_the_oldest() -> None:
    pod = build_pod(metadata={"creationTimestamp": None})
    assert (
        life(pod, max_pod_life_time_seconds=60) == "pod has no creation time, the policy allows at most 60s"
    )


def test_the_longest_limit_there_is_does_no_harm() -> None:
    assert life(build_pod(), max_pod_life_time_seconds=2**64 - 1) is None


@pytest.mark.parametrize(
    ("status", "args", "reason"),
    [
        ({"phase": "Pending"}, {"states": ("Pending",)}, "pod is in phase Pending"),
        ({"reason": "Evicted"}, {"states": ("Evicted",)}, "pod has the status reason Evicted"),
        (
            {"containerStatuses": [container("main", waiting={"reason": "CrashLoopBackOff"})]},
            {"states": ("CrashLoopBackOff",)},
            "pod has container main waiting with CrashLoopBackOff",
        ),
        (
            {"containerStatuses": [container("main", terminated={"reason": "OOMKilled", "exitCode": 137})]},
            {"states": ("OOMKilled",)},
            "pod has container main ended with OOMKilled",
        ),
        (
            {"initContainerStatuses": [container("prepare", waiting={"reason": "ErrImagePull"})]},
            {"states": ("ErrImagePull",), "including_init_containers": True},
            "pod has init container prepare waiting with ErrImagePull",
        ),
        (
            {"ephemeralContainerStatuses": [container("debug", terminated={"reason": "Error"})]},
            {"states": ("Error",), "including_ephemeral_containers": True},
            "pod has ephemeral container debug ended with Error",
        ),
        (
            {"containerStatuses": [container("main", terminated={"exitCode": 137})]},
            {"exit_codes": (137,)},
            "pod has container main ended with exit code 137",
        ),
    ],
)
def test_a_state_is_named(status: dict[str, Any], args: dict[str, Any], reason: str) -> None:
    assert life(build_pod(status=status), **args) == reason


@pytest.mark.parametrize(
    ("status", "args"),
    [
        ({"reason": ""}, {"states": ("Evicted", "")}),
        ({"initContainerStatuses": [container("p", waiting={"reason": "Error"})]}, {"states": ("Error",)}),
        (
            {"ephemeralContainerStatuses": [container("d", waiting={"reason": "Error"})]},
            {"states": ("Error",)},
        ),
        (
            {"ephemeralContainerStatuses": [container("d", terminated={"exitCode": 1})]},
            {"exit_codes": (1,), "including_ephemeral_containers": True},
        ),
        ({"containerStatuses": [container("main", running={})]}, {"exit_codes": (0,)}),
    ],
)
def test_other_states_do_not_count(status: dict[str, Any], args: dict[str, Any]) -> None:
    assert life(build_pod(status=status), **args) is None


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (ConditionFilter(type="Ready", status="False"), True),
        (ConditionFilter(type="Ready", status="True"), False),
        (ConditionFilter(reason="ContainersNotReady"), True),
        (ConditionFilter(min_time_since_last_transition_seconds=7200), True),
        (ConditionFilter(min_time_since_last_transition_seconds=7201), False),
    ],
)
def test_every_field_of_a_condition_must_agree(wanted: ConditionFilter, *, found: bool) -> None:
    since = rfc3339(NOW - timedelta(hours=2))
    condition = {
        "type": "Ready",
        "status": "False",
        "reason": "ContainersNotReady",
        "lastTransitionTime": since,
    }
    reason = life(build_pod(status={"conditions": [condition]}), conditions=(wanted,))
    sentence = "pod has had the condition Ready=False (ContainersNotReady) for 120m"
    assert reason == (sentence if found else None)


def test_a_condition_without_a_time_has_not_lasted() -> None:
    pod = build_pod(status={"conditions": [{"type": "Ready", "status": "False"}]})
    assert life(pod, conditions=(ConditionFilter(min_time_since_last_transition_seconds=0),)) is None


def test_all_criteria_must_hold_and_all_are_told() -> None:
    pod = build_pod(phase="Pending")
    assert life(pod, max_pod_life_time_seconds=60, states=("Pending",)) == (
        "pod is 120m old, the policy allows at most 60s and is in phase Pending"
    )
    assert life(pod, max_pod_life_time_seconds=60, states=("Running",)) is None


def test_owner_kinds_choose() -> None:
    job, bare = build_pod(owner=owned_by("nightly", kind="Job")), build_pod(owner=None)
    only_jobs, no_jobs = OwnerKinds(include=("Job",)), OwnerKinds(exclude=("Job",))
    assert life(job, max_pod_life_time_seconds=0, owner_kinds=only_jobs)
    assert not life(bare, max_pod_life_time_seconds=0, owner_kinds=only_jobs)
    assert not life(job, max_pod_life_time_seconds=0, owner_kinds=no_jobs)
    assert life(bare, max_pod_life_time_seconds=0, owner_kinds=no_jobs)


# ---- RemovePodsViolatingNodeTaints


def taints(pod: Pod, *taints: str, **args: Any) -> str | None:
    node = build_node("n3", taints=taints)
    return node_taints.decide(pod, node, RemovePodsViolatingNodeTaintsArgs(**args), NOW)


def test_the_taint_and_the_node_are_named() -> None:
    assert taints(build_pod(), "dedicated=gpu:NoSchedule") == (
        "does not tolerate taint dedicated=gpu:NoSchedule of node n3"
    )


def test_all_taints_that_are_not_tolerated_are_named() -> None:
    assert (
        taints(build_pod(), "a=b", "c") == "does not tolerate taints a=b:NoSchedule, c:NoSchedule of node n3"
    )


def test_a_tolerated_taint_is_no_reason() -> None:
    assert taints(build_pod(tolerations=[{"key": "a", "operator": "Exists"}]), "a=b") is None


def test_no_execute_is_never_looked_at() -> None:
    assert taints(build_pod(), "a=b:NoExecute", include_prefer_no_schedule=True) is None


def test_prefer_no_schedule_counts_where_it_is_included() -> None:
    assert taints(build_pod(), "a=b:PreferNoSchedule") is None
    assert taints(build_pod(), "a=b:PreferNoSchedule", include_prefer_no_schedule=True)


@pytest.mark.parametrize(
    ("args", "wanted"),
    [
        ({"excluded_taints": ("a",)}, False),
        ({"excluded_taints": ("a=b",)}, False),
        ({"excluded_taints": ("a=c",)}, True),
        ({"included_taints": ("a",)}, True),
        ({"included_taints": ("a=c",)}, False),
        ({"included_taints": ()}, False),
        ({"included_taints": None}, True),
    ],
)
def test_taints_can_be_included_and_excluded(args: dict[str, Any], *, wanted: bool) -> None:
    assert (taints(build_pod(), "a=b", **args) is not None) is wanted


# ---- ExternalDecision and the pod filter


@pytest.mark.parametrize(
    ("args", "who"),
    [
        (asking(), "the extender"),
        (ExternalDecisionArgs(extenders=(EXTENDER, EXTENDER)), "the extenders"),
        (ExternalDecisionArgs(), "a human"),
    ],
)
def test_external_decision_says_who_is_asked(args: ExternalDecisionArgs, who: str) -> None:
    reason = external_decision.decide(build_pod(), NODE, args, NOW)
    assert reason == f"ExternalDecision asks {who} about every pod that the filters let through"


@pytest.mark.parametrize(
    ("args", "check"),
    [
        (PodLifeTimeArgs(), ""),
        (PodLifeTimeArgs(namespaces=Namespaces()), ""),
        (PodLifeTimeArgs(namespaces=Namespaces(include=("media",))), "namespace"),
        (PodLifeTimeArgs(namespaces=Namespaces(exclude=("shop",))), "namespace"),
        (PodLifeTimeArgs(label_selector=LabelSelector(match_labels={"app": "db"})), "labels"),
        (PodLifeTimeArgs(label_selector=LabelSelector()), ""),
    ],
)
def test_the_pod_filter_restricts_by_namespace_and_label(args: PodLifeTimeArgs, check: str) -> None:
    objection = left_out(build_pod(), args)
    assert (objection.check if objection else "") == check
