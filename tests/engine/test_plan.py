"""What a plan nominates, in which order, what it leaves alone and why, and how limits hold it back."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from deschedui.descheduler.objects import Pod
from deschedui.descheduler.plan import Answer, AnswerKind, Answers, EvictedPods, OpenPod, Plan, plan
from deschedui.descheduler.plugins.arg_types import Namespaces
from deschedui.descheduler.plugins.default_evictor_args import DefaultEvictorArgs
from deschedui.descheduler.plugins.external_decision_args import ExternalDecisionArgs
from deschedui.descheduler.plugins.node_taints_args import RemovePodsViolatingNodeTaintsArgs
from deschedui.descheduler.policy.model import Limits, Policy
from deschedui.descheduler.selectors import parse_string_selector
from tests.engine.builders import (
    DAY_AT_MOST,
    HOUR_AT_MOST,
    NOW,
    asking,
    build_node,
    build_nodes,
    build_pod,
    build_policy,
    build_profile,
    build_snapshot,
    owned_by,
)

TAINTS = ("RemovePodsViolatingNodeTaints", RemovePodsViolatingNodeTaintsArgs())
LIFE = ("PodLifeTime", HOUR_AT_MOST)
ASK = ("ExternalDecision", asking())
DENIED = Answer(AnswerKind.DENIED, "not tonight")


def planned(*pods: Pod, policy: Policy | None = None, answers: Answers | None = None, **cluster: Any) -> Plan:
    snapshot = build_snapshot(pods=pods, **cluster)
    return plan(policy or build_policy(), snapshot, answers or Answers(), NOW)


def names(made: Plan) -> list[str]:
    return [item.pod.metadata.name for item in made.nominations]


def aged(name: str, hours: float, **more: Any) -> Pod:
    return build_pod(name, age=timedelta(hours=hours), **more)


def opened(pod: Pod, decision: str = "d1") -> OpenPod:
    return OpenPod(pod.metadata.uid, pod.spec.node_name, pod.metadata.namespace, decision)


def gated(**limits: int) -> Policy:
    return build_policy(build_profile(gate=asking()), limits=Limits(**limits))


# ---- nominations


def test_a_nomination_says_why_with_numbers() -> None:
    made = planned(aged("old", 26), policy=build_policy(build_profile(("PodLifeTime", DAY_AT_MOST))))
    (item,) = made.nominations
    assert item.reason == "pod is 26h old, the policy allows at most 24h"
    assert (item.profile, item.plugin, item.extension_point, item.node) == (
        "main",
        "PodLifeTime",
        "deschedule",
        "n1",
    )


def test_the_oldest_goes_first_over_all_nodes() -> None:
    assert names(planned(aged("a", 2), aged("b", 4, node="n2"), aged("c", 3))) == ["b", "c", "a"]


def test_equal_ages_go_by_node_then_by_name() -> None:
    made = planned(aged("b", 2, node="n2"), aged("c", 2), aged("a", 2, node="n2"))
    assert names(made) == ["c", "a", "b"]


def test_profiles_and_their_plugins_have_their_turn_in_order() -> None:
    nodes = [build_node("n1", taints=["a=b"]), build_node("n2")]
    policy = build_policy(build_profile(TAINTS, name="one"), build_profile(LIFE, index=1, name="two"))
    made = planned(aged("old", 9, node="n2"), aged("young", 2), policy=policy, nodes=nodes)
    assert [(item.pod.metadata.name, item.profile) for item in made.nominations] == [
        ("young", "one"),
        ("old", "two"),
    ]


def test_a_pod_that_two_plugins_want_is_nominated_once() -> None:
    nodes = [build_node("n1", taints=["a=b"]), build_node("n2")]
    made = planned(build_pod(), policy=build_policy(build_profile(TAINTS, LIFE)), nodes=nodes)
    assert [item.plugin for item in made.nominations] == ["RemovePodsViolatingNodeTaints"]


def test_external_decision_nominates_every_active_pod_that_the_filters_let_through() -> None:
    made = planned(
        build_pod("a"),
        build_pod("b", owner=None),
        build_pod("c", phase="Succeeded"),
        policy=build_policy(build_profile(ASK)),
    )
    assert names(made) == ["a"]
    assert made.nominations[0].asks


# ---- nodes


@pytest.mark.parametrize(
    "nodes", [[], build_nodes(1), [build_node("n1"), build_node("n2", ready=False)]], ids=["0", "1", "1 of 2"]
)
def test_fewer_than_two_nodes_skip_the_cycle(nodes: list[Any]) -> None:
    made = planned(build_pod(), nodes=nodes)
    assert made.nominations == ()
    assert made.skipped_cycle.startswith("needs at least 2 ready nodes that the policy selects, and found ")


def test_pods_on_nodes_that_the_policy_does_not_select_do_not_exist() -> None:
    nodes = [build_node(f"n{number}", labels={"pool": "a" if number < 3 else "b"}) for number in (1, 2, 3)]
    policy = build_policy(node_selector=parse_string_selector("pool=a"))
    made = planned(build_pod("a"), build_pod("b", node="n3"), policy=policy, nodes=nodes)
    assert (names(made), made.counts.nodes, made.counts.seen) == (["a"], 2, 1)


def test_a_node_without_a_ready_condition_is_ready() -> None:
    nodes = [build_node("n1"), build_node("n2", status={"conditions": []})]
    assert planned(nodes=nodes).skipped_cycle == ""


# ---- filtered out


def test_a_pod_that_is_filtered_out_says_why_in_both_tongues() -> None:
    made = planned(build_pod(owner=None))
    (out,) = made.filtered
    assert (out.plugin, out.check, out.reason) == (
        "DefaultEvictor",
        "bare",
        "has no owner, so nothing would create it again",
    )
    assert out.upstream == "pod does not have any ownerRefs"


def test_further_objections_are_kept() -> None:
    made = planned(build_pod(owner=None, annotations={"kubernetes.io/config.mirror": ""}))
    assert (made.filtered[0].check, [item.check for item in made.filtered[0].more]) == ("mirror", ["bare"])


def test_a_plugins_own_filter_is_named() -> None:
    args = RemovePodsViolatingNodeTaintsArgs(namespaces=Namespaces(exclude=("shop",)))
    policy = build_policy(build_profile(("RemovePodsViolatingNodeTaints", args)))
    (out,) = planned(build_pod(), policy=policy).filtered
    assert (out.plugin, out.reason) == (
        "RemovePodsViolatingNodeTaints",
        "is in namespace shop, which the plugin excludes",
    )


def test_a_pod_without_a_uid_is_left_alone() -> None:
    (out,) = planned(build_pod(uid="")).filtered
    assert (out.check, out.upstream) == ("missingUid", "pod shop/web-1 is missing UID")


def test_the_funnel_counts_distinct_pods() -> None:
    made = planned(aged("old", 9), aged("young", 0.5), build_pod("bare", owner=None))
    assert (made.counts.seen, made.counts.eligible, made.counts.nominated) == (3, 2, 1)


def test_replicas_are_counted_without_the_pods_that_went_before() -> None:
    nodes = [build_node("n1", taints=["a=b"]), build_node("n2", taints=["a=b"])]
    profile = build_profile(TAINTS, evictor=DefaultEvictorArgs(min_replicas=2))
    made = planned(build_pod("a"), build_pod("b", node="n2"), policy=build_policy(profile), nodes=nodes)
    assert names(made) == ["a"]
    assert made.filtered[0].reason == (
        "belongs to ReplicaSet web, which has 1 replica; the policy evicts from 2 replicas on"
    )


def test_a_denied_pod_still_counts_as_a_replica() -> None:
    nodes = [build_node("n1", taints=["a=b"]), build_node("n2", taints=["a=b"])]
    profile = build_profile(TAINTS, evictor=DefaultEvictorArgs(min_replicas=2), gate=asking())
    first, second = build_pod("a"), build_pod("b", node="n2")
    answers = Answers(known={(0, first.metadata.uid): DENIED})
    made = planned(first, second, policy=build_policy(profile), answers=answers, nodes=nodes)
    assert names(made) == ["a", "b"]


def test_room_that_an_eviction_frees_counts_for_later_plugins() -> None:
    nodes = [build_node("n1"), build_node("n2", taints=["a=b"])]
    big = {"cpu": "3"}
    tolerant = build_pod("wide", requests=big, tolerations=[{"operator": "Exists"}], age=timedelta(hours=2))
    leaving = build_pod("leaving", node="n2", requests={"cpu": "2"}, age=timedelta(minutes=1))
    profile = build_profile(TAINTS, LIFE)
    fit = build_profile(LIFE, index=1, evictor=DefaultEvictorArgs(node_fit=True))
    snapshot = build_snapshot(nodes=nodes, pods=[tolerant, leaving])
    policy = build_policy(build_profile(TAINTS), fit)
    assert profile.deschedule == ("RemovePodsViolatingNodeTaints", "PodLifeTime")
    assert names(plan(policy, snapshot, Answers(), NOW)) == ["leaving", "wide"]
    assert names(plan(policy, snapshot, Answers(), NOW, assume=EvictedPods.TERMINATE)) == ["leaving"]


# ---- answers


def test_an_unanswered_nomination_of_an_asking_profile_is_a_question() -> None:
    made = planned(build_pod(), policy=build_policy(build_profile(gate=asking())))
    assert made.questions == made.nominations


@pytest.mark.parametrize("gate", [None, ExternalDecisionArgs()], ids=["no plugin", "no extender"])
def test_without_an_extender_a_nomination_waits_for_a_human(gate: ExternalDecisionArgs | None) -> None:
    made = planned(build_pod(), policy=build_policy(build_profile(gate=gate)))
    assert (len(made.nominations), made.questions) == (1, ())


@pytest.mark.parametrize("place", ["filter", "preevictionfilter"])
def test_the_gate_stands_at_both_filters(place: str) -> None:
    made = planned(build_pod(), policy=build_policy(build_profile(gate=asking(), gate_at=place)))
    assert len(made.questions) == 1


def test_a_gate_asks_only_about_the_pods_of_its_own_filter() -> None:
    gate = asking(namespaces=Namespaces(include=("media",)))
    made = planned(
        build_pod("a"), build_pod("b", namespace="media"), policy=build_policy(build_profile(gate=gate))
    )
    assert (names(made), [item.pod.metadata.name for item in made.questions]) == (["b", "a"], ["b"])


def test_nominating_is_no_gate_for_other_plugins() -> None:
    nodes = [build_node("n1", taints=["a=b"]), build_node("n2")]
    made = planned(build_pod(), policy=build_policy(build_profile(TAINTS, ASK)), nodes=nodes)
    assert [(item.plugin, item.asks) for item in made.nominations] == [
        ("RemovePodsViolatingNodeTaints", False)
    ]


def test_an_answer_stands_on_its_nomination() -> None:
    pod = build_pod()
    answers = Answers(known={(0, pod.metadata.uid): DENIED})
    made = planned(pod, policy=build_policy(build_profile(gate=asking())), answers=answers)
    assert (made.nominations[0].answer, made.questions) == (DENIED, ())


def test_a_denied_pod_can_be_asked_about_by_the_next_profile() -> None:
    pod = build_pod()
    policy = build_policy(build_profile(gate=asking()), build_profile(gate=asking(), index=1))
    made = planned(pod, policy=policy, answers=Answers(known={(0, pod.metadata.uid): DENIED}))
    assert [item.key[0] for item in made.nominations] == [0, 1]
    assert [item.key[0] for item in made.questions] == [1]


def test_what_the_record_denies_is_said_once_for_all_profiles() -> None:
    pod = build_pod()
    policy = build_policy(build_profile(), build_profile(index=1))
    made = planned(pod, policy=policy, answers=Answers(pods={pod.metadata.uid: DENIED}))
    assert [item.answer for item in made.nominations] == [DENIED]


def test_what_the_record_filters_is_listed_among_the_filtered() -> None:
    pod = build_pod()
    answer = Answer(AnswerKind.FILTERED, "nobody answered, asks again at 13:00")
    made = planned(pod, answers=Answers(pods={pod.metadata.uid: answer}))
    assert made.nominations == ()
    assert (made.filtered[0].check, made.filtered[0].reason) == ("record", answer.reason)


# ---- limits


def test_a_total_limit_holds_the_rest_back() -> None:
    made = planned(aged("a", 4), aged("b", 3), aged("c", 2), policy=build_policy(limits=Limits(total=1)))
    assert names(made) == ["a"]
    (hit,) = made.limits
    assert (hit.kind, hit.limit, hit.held_back, made.counts.held_back) == ("total", 1, 2, 2)


def test_zero_is_a_limit() -> None:
    assert names(planned(build_pod(), policy=build_policy(limits=Limits(total=0)))) == []


def test_a_full_node_does_not_stop_the_others() -> None:
    pods = [aged("a", 5), aged("b", 4), aged("c", 3, node="n2")]
    made = planned(*pods, policy=build_policy(limits=Limits(per_node=1)))
    assert names(made) == ["a", "c"]
    assert [(hit.kind, hit.name, hit.held_back) for hit in made.limits] == [("node", "n1", 1)]


def test_a_full_namespace_does_not_stop_the_others() -> None:
    pods = [aged("a", 5), aged("b", 4), aged("c", 3, namespace="media")]
    made = planned(*pods, policy=build_policy(limits=Limits(per_namespace=1)))
    assert names(made) == ["a", "c"]
    assert made.limits[0].name == "shop"


@pytest.mark.parametrize("kind", [AnswerKind.DENIED, AnswerKind.SKIPPED, AnswerKind.FAILED])
def test_a_no_frees_the_place(kind: AnswerKind) -> None:
    first, second = aged("a", 4), aged("b", 3)
    answers = Answers(known={(0, first.metadata.uid): Answer(kind)})
    assert names(planned(first, second, policy=gated(total=1), answers=answers)) == [
        "a",
        "b",
    ]


@pytest.mark.parametrize("kind", [AnswerKind.ALLOWED, AnswerKind.WAITING])
def test_a_yes_and_a_wait_keep_the_place(kind: AnswerKind) -> None:
    first, second = aged("a", 4), aged("b", 3)
    answers = Answers(known={(0, first.metadata.uid): Answer(kind)})
    assert names(planned(first, second, policy=gated(total=1), answers=answers)) == ["a"]


def test_a_place_that_an_open_decision_fills_says_which() -> None:
    elsewhere = OpenPod("gone", "n9", "other", "d7")
    made = planned(
        build_pod(), policy=build_policy(limits=Limits(total=1)), answers=Answers(open=(elsewhere,))
    )
    assert names(made) == []
    assert made.limits[0].filled_by == ("d7",)


def test_an_open_decision_of_another_node_does_not_fill_this_ones_limit() -> None:
    elsewhere = OpenPod("gone", "n9", "other", "d7")
    policy = build_policy(limits=Limits(per_node=1))
    assert names(planned(build_pod(), policy=policy, answers=Answers(open=(elsewhere,)))) == ["web-1"]


def test_a_pod_with_an_open_decision_needs_no_second_place() -> None:
    first, second = aged("a", 4), aged("b", 3)
    answers = Answers(open=(opened(second),))
    assert names(planned(first, second, policy=gated(total=1), answers=answers)) == ["b"]


def test_an_open_decision_that_is_denied_now_frees_its_place_for_those_after_it() -> None:
    pods = [aged("a", 4), aged("b", 3), aged("c", 2)]
    answers = Answers(open=(opened(pods[1]),), known={(0, pods[1].metadata.uid): DENIED})
    made = planned(*pods, policy=gated(total=1), answers=answers)
    assert names(made) == ["b", "c"]


def test_an_open_decision_that_is_skipped_now_keeps_its_place() -> None:
    pods = [aged("a", 4), aged("b", 3)]
    answers = Answers(open=(opened(pods[0]),), known={(0, pods[0].metadata.uid): Answer(AnswerKind.SKIPPED)})
    assert names(planned(*pods, policy=gated(total=1), answers=answers)) == ["a"]


def test_the_same_uid_twice_among_the_open_counts_once() -> None:
    pod = aged("a", 4)
    answers = Answers(open=(opened(pod), opened(pod, "d2")))
    policy = build_policy(limits=Limits(total=2))
    assert names(planned(pod, aged("b", 3), policy=policy, answers=answers)) == ["a", "b"]


def test_a_plan_is_the_same_however_the_lists_came() -> None:
    pods = [aged(f"p{number}", 2, owner=owned_by(f"o{number % 3}")) for number in range(9)]
    policy = build_policy(limits=Limits(total=4))
    assert planned(*pods, policy=policy) == planned(*reversed(pods), policy=policy)


def test_a_named_priority_that_nobody_resolved_protects_everything_with_a_priority() -> None:
    from deschedui.descheduler.plugins.default_evictor_args import PriorityThreshold

    named = DefaultEvictorArgs(priority_threshold=PriorityThreshold(name="batch"))
    unbound = Policy(profiles=(build_profile(evictor=named),))
    assert names(planned(build_pod(priority=0), policy=unbound)) == []
