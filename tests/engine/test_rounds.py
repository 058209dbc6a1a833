"""Plan, ask, plan again: few rounds, and the result of asking one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from deschedui.descheduler.evictor import DefaultEvictor
from deschedui.descheduler.overlay import Overlay
from deschedui.descheduler.plan import (
    Answer,
    AnswerKind,
    Answers,
    Nomination,
    OpenPod,
    Plan,
    QuestionKey,
    plan,
)
from deschedui.descheduler.plugins.default_evictor_args import DefaultEvictorArgs
from deschedui.descheduler.plugins.node_taints_args import RemovePodsViolatingNodeTaintsArgs
from deschedui.descheduler.policy.model import Limits, Policy
from deschedui.descheduler.rounds import NOT_ASKED, decide
from deschedui.descheduler.snapshot import Snapshot
from tests.engine.builders import (
    HOUR_AT_MOST,
    NOW,
    asking,
    build_node,
    build_pod,
    build_policy,
    build_profile,
    build_snapshot,
    owned_by,
)

YES, NO = Answer(AnswerKind.ALLOWED, "fine"), Answer(AnswerKind.DENIED, "no")
LIFE = ("PodLifeTime", HOUR_AT_MOST)
TAINTS = ("RemovePodsViolatingNodeTaints", RemovePodsViolatingNodeTaintsArgs())
ASK = ("ExternalDecision", asking())


class Extender:
    """Answers by a function of the nomination, and remembers the rounds."""

    def __init__(self, answer: Callable[[Nomination], Answer]) -> None:
        self.answer = answer
        self.rounds: list[list[QuestionKey]] = []

    def __call__(self, asked: Sequence[Nomination]) -> Mapping[QuestionKey, Answer]:
        self.rounds.append([item.key for item in asked])
        return {item.key: self.answer(item) for item in asked}


def says(answer: Answer) -> Callable[[Nomination], Answer]:
    return lambda _item: answer


def many(count: int, **more: Any) -> Snapshot:
    """So many pods, the first the oldest, spread over two nodes."""
    pods = [
        build_pod(f"p{number:04}", node=f"n{number % 2 + 1}", age=timedelta(hours=9, seconds=-number), **more)
        for number in range(count)
    ]
    return build_snapshot(pods=pods)


def gated(**changes: Any) -> Policy:
    return build_policy(build_profile(gate=asking()), **changes)


def run(snapshot: Snapshot, policy: Policy, extender: Extender, **more: Any) -> Plan:
    return decide(policy, snapshot, Answers(), NOW, extender, **more)


def test_all_open_questions_are_asked_at_once_and_in_the_plans_order() -> None:
    extender = Extender(says(YES))
    made = run(many(50), gated(), extender)
    assert extender.rounds == [[item.key for item in made.nominations]]
    assert len(made.nominations) == 50


def test_a_profile_without_an_extender_asks_nobody() -> None:
    extender = Extender(says(NO))
    made = run(many(3), build_policy(), extender)
    assert (extender.rounds, [item.answer for item in made.nominations]) == ([], [None] * 3)


def test_candidates_ahead_are_asked_in_doubling_numbers_up_to_the_concurrency() -> None:
    extender = Extender(says(NO))
    made = run(many(100), gated(limits=Limits(total=1)), extender, concurrency=8)
    assert [len(asked) for asked in extender.rounds][:6] == [1, 2, 3, 5, 8, 8]
    assert (len(made.nominations), made.questions) == (100, ())


def test_one_place_and_many_denials_cost_few_rounds_and_ask_nobody_twice() -> None:
    extender = Extender(says(NO))
    run(many(2000), gated(limits=Limits(total=1)), extender)
    asked = [key for keys in extender.rounds for key in keys]
    assert len(extender.rounds) < 75
    assert max(map(len, extender.rounds)) == 32
    assert len(asked) == len(set(asked)) == 2000


def test_a_round_goes_in_the_plans_order_when_several_limits_are_full() -> None:
    extender = Extender(says(NO))
    made = run(many(40), gated(limits=Limits(per_node=1)), extender, concurrency=8)
    order = {item.key: place for place, item in enumerate(made.nominations)}
    assert all(asked == sorted(asked, key=order.__getitem__) for asked in extender.rounds)


def test_nobody_is_asked_ahead_of_a_place_that_a_human_fills() -> None:
    extender = Extender(says(NO))
    filled = Answers(open=(OpenPod("elsewhere", "n1", "shop", "d1"),))
    made = decide(gated(limits=Limits(total=1)), many(5), filled, NOW, extender)
    assert (extender.rounds, made.nominations, made.limits[0].filled_by) == ([], (), ("d1",))


def test_a_yes_beyond_the_place_that_was_filled_changes_nothing() -> None:
    extender = Extender(lambda item: NO if item.pod.metadata.name < "p0003" else YES)
    made = run(many(20), gated(limits=Limits(total=1)), extender)
    assert [item.pod.metadata.name for item in made.nominations] == ["p0000", "p0001", "p0002", "p0003"]
    assert made.limits[0].held_back == 16


def test_what_was_not_asked_in_time_is_skipped_and_says_so() -> None:
    times = iter([False, True])
    extender = Extender(says(NO))
    made = run(many(10), gated(limits=Limits(total=1)), extender, out_of_time=lambda: next(times))
    assert [item.answer for item in made.nominations] == [NO, Answer(AnswerKind.SKIPPED, NOT_ASKED)]
    assert made.questions == ()


def test_an_ask_that_runs_out_of_time_ends_the_rounds() -> None:
    made = decide(gated(), many(2), Answers(), NOW, lambda _asked: {})
    assert [item.answer and item.answer.kind for item in made.nominations] == [AnswerKind.SKIPPED] * 2


def test_an_ask_that_answers_some_is_asked_again_for_the_rest() -> None:
    def first_only(asked: Sequence[Nomination]) -> Mapping[QuestionKey, Answer]:
        return {asked[0].key: YES}

    made = decide(gated(), many(3), Answers(), NOW, first_only)
    assert [item.answer for item in made.nominations] == [YES] * 3


# ---- properties

KINDS = [AnswerKind.ALLOWED, AnswerKind.WAITING, AnswerKind.DENIED, AnswerKind.SKIPPED, AnswerKind.FAILED]


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    limit = st.one_of(st.none(), st.integers(0, 3))
    profiles = [
        build_profile(
            *draw(
                st.lists(
                    st.sampled_from([LIFE, TAINTS, ASK]), min_size=1, max_size=2, unique_by=lambda x: x[0]
                )
            ),
            index=index,
            name=f"profile-{index}",
            gate=asking() if draw(st.booleans()) else None,
            evictor=DefaultEvictorArgs(
                min_replicas=draw(st.sampled_from([0, 0, 2, 3])), node_fit=draw(st.booleans())
            ),
        )
        for index in range(draw(st.integers(1, 2)))
    ]
    limits = Limits(total=draw(limit), per_node=draw(limit), per_namespace=draw(limit))
    return build_policy(*(profile for profile in profiles), limits=limits)


@st.composite
def clusters(draw: st.DrawFn) -> Snapshot:
    nodes = [
        build_node(
            f"n{number}",
            taints=draw(st.sampled_from([[], ["a=b"]])),
            allocatable={"cpu": "2", "memory": "1Gi", "pods": draw(st.sampled_from(["3", "9"]))},
        )
        for number in range(draw(st.integers(2, 3)))
    ]
    pods = [
        build_pod(
            f"p{number}",
            namespace=draw(st.sampled_from(["shop", "media"])),
            node=f"n{draw(st.integers(0, len(nodes) - 1))}",
            owner=draw(st.sampled_from([None, *(owned_by(f"o{owner}") for owner in range(4))])),
            age=timedelta(minutes=draw(st.sampled_from([5, 70, 80, 90]))),
            requests={"cpu": draw(st.sampled_from(["100m", "1"]))},
        )
        for number in range(draw(st.integers(0, 10)))
    ]
    return build_snapshot(nodes=nodes, pods=pods)


@st.composite
def answers_for(draw: st.DrawFn, snapshot: Snapshot) -> Answers:
    """What the record may know: some pods are open, some are denied or filtered for whoever asks."""
    uids = [pod.metadata.uid for pod in snapshot.pods]
    chosen = draw(st.lists(st.sampled_from(uids), max_size=3, unique=True)) if uids else []
    open_pods = [
        OpenPod(pod.metadata.uid, pod.spec.node_name, pod.metadata.namespace, f"d-{pod.metadata.name}")
        for uid in chosen
        if (pod := snapshot.pod(uid))
    ]
    recorded = (
        draw(st.dictionaries(st.sampled_from(uids), st.sampled_from(list(AnswerKind)), max_size=2))
        if uids
        else {}
    )
    return Answers(
        open=tuple(open_pods), pods={uid: Answer(kind, "recorded") for uid, kind in recorded.items()}
    )


@st.composite
def cycles(draw: st.DrawFn) -> tuple[Policy, Snapshot, Answers, Extender, int]:
    snapshot = draw(clusters())
    fixed = {
        (profile, pod.metadata.uid): Answer(draw(st.sampled_from(KINDS)), "extender")
        for pod in snapshot.pods
        for profile in (0, 1)
    }
    extender = Extender(lambda item: fixed[item.key])
    return draw(policies()), snapshot, draw(answers_for(snapshot)), extender, draw(st.integers(1, 5))


def one_by_one(policy: Policy, snapshot: Snapshot, answers: Answers, extender: Extender) -> Plan:
    """Ask the first open question, plan from the start, and so on."""
    while True:
        made = plan(policy, snapshot, answers, NOW)
        if not made.questions:
            return made
        first = made.questions[0]
        answers = replace(answers, known={**answers.known, first.key: extender.answer(first)})


def in_short(made: Plan) -> list[tuple[str, int, str, str]]:
    return [
        (item.pod.metadata.name, item.profile_index, item.plugin, item.answer.kind if item.answer else "")
        for item in made.nominations
    ]


def goes(item: Nomination) -> bool:
    return item.answer is None or item.answer.evicts


@settings(max_examples=200)
@given(cycles())
def test_the_result_is_that_of_asking_one_by_one(
    cycle: tuple[Policy, Snapshot, Answers, Extender, int],
) -> None:
    policy, snapshot, answers, extender, concurrency = cycle
    made = decide(policy, snapshot, answers, NOW, extender, concurrency=concurrency)
    patient = one_by_one(policy, snapshot, answers, extender)
    assert in_short(made) == in_short(patient)
    assert made == patient
    asked = [key for keys in extender.rounds for key in keys]
    assert len(asked) == len(set(asked))


@given(cycles())
def test_a_plan_keeps_its_promises(cycle: tuple[Policy, Snapshot, Answers, Extender, int]) -> None:
    policy, snapshot, answers, extender, _ = cycle
    made = decide(policy, snapshot, answers, NOW, extender)
    going = [item.pod.metadata.uid for item in made.nominations if goes(item)]
    assert made.questions == ()
    assert len(going) == len(set(going)), "no pod twice"
    assert len({item.key for item in made.nominations}) == len(made.nominations), "no question twice"
    assert made == decide(policy, snapshot, answers, NOW, extender), "the same input gives the same plan"


@given(cycles())
def test_nobody_who_is_protected_is_nominated(cycle: tuple[Policy, Snapshot, Answers, Extender, int]) -> None:
    policy, snapshot, answers, extender, _ = cycle
    made = decide(policy, snapshot, answers, NOW, extender)
    for item in made.nominations:
        evictor = DefaultEvictor(snapshot, policy.profiles[item.profile_index].evictor, 2**31, NOW)
        assert evictor.objections(snapshot.pods.index(item.pod), Overlay(snapshot)) == ()


@given(cycles())
def test_limits_hold(cycle: tuple[Policy, Snapshot, Answers, Extender, int]) -> None:
    policy, snapshot, answers, extender, _ = cycle
    made = decide(policy, snapshot, answers, NOW, extender)
    already = {item.uid for item in answers.open}
    new = [item.pod for item in made.nominations if goes(item) and item.pod.metadata.uid not in already]
    limits = policy.limits
    assert limits.total is None or len(new) <= limits.total
    for pod in new:
        same_node = sum(other.spec.node_name == pod.spec.node_name for other in new)
        same_namespace = sum(other.metadata.namespace == pod.metadata.namespace for other in new)
        assert limits.per_node is None or same_node <= limits.per_node
        assert limits.per_namespace is None or same_namespace <= limits.per_namespace
