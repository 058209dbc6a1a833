"""Plan, ask, plan again, until nothing is open.

All open questions are asked at once. Where denials free a place of a limit, the next candidates are asked
along with the open questions, twice as many as the round before, up to the concurrency: one free place and
an extender that says no 5,000 times costs a few hundred rounds of waiting. A round resumes the plan where
an answer changed it.

For answers that depend on the pod alone the result is that of asking one by one, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from .course import Course
from .groundwork import Groundwork
from .plan import plan_on
from .policy.model import Policy
from .results import Answer, AnswerKind, Answers, Nomination, Plan, QuestionKey
from .snapshot import Snapshot

Ask = Callable[[Sequence[Nomination]], Mapping[QuestionKey, Answer]]
"""Asks about these nominations, handed over in the plan's order, and returns what was answered.

It may leave some out, when time is over. A circuit breaker belongs here: between two calls it sees all
answers of the round before, in the plan's order.
"""

NOT_ASKED = "was not asked: the cycle's time was over"


def _never() -> bool:
    return False


def decide(
    policy: Policy,
    snapshot: Snapshot,
    answers: Answers,
    now: datetime,
    ask: Ask,
    *,
    concurrency: int = 32,
    out_of_time: Callable[[], bool] = _never,
) -> Plan:
    """Plan a cycle of a bound policy and ask until every question is answered or time is over.

    Only profiles with an enabled ExternalDecision that has extenders ask; what other profiles nominate has
    no answer here and waits for a human. Questions that time left open come back skipped, and keep their
    places.
    """
    ground = Groundwork(policy, snapshot, now)
    known = _ask_until_settled(ground, answers, ask, concurrency, out_of_time)
    return _skip_the_rest(plan_on(ground, replace(answers, known=known)))


def _ask_until_settled(
    ground: Groundwork, answers: Answers, ask: Ask, concurrency: int, out_of_time: Callable[[], bool]
) -> Mapping[QuestionKey, Answer]:
    known = dict(answers.known)
    course, ahead = Course(ground, answers), 0
    while True:
        course.walk(ahead)
        questions = course.questions(ahead, concurrency)
        if not questions or out_of_time():
            return known
        new = ask(questions)
        if not new:
            return known
        known.update(new)
        if course.answer(new):
            ahead = min(concurrency, max(1, 2 * ahead))


def _skip_the_rest(plan: Plan) -> Plan:
    """Say of what nobody was asked about that it is left alone this cycle."""
    if not plan.questions:
        return plan
    skipped = Answer(AnswerKind.SKIPPED, NOT_ASKED)
    nominations = tuple(
        replace(item, answer=skipped) if item.asks and item.answer is None else item
        for item in plan.nominations
    )
    return replace(plan, nominations=nominations, questions=())
