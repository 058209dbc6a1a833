"""A plan: what a policy wants to do with a cluster, given the answers that are known.

``plan(policy, snapshot, answers, now)`` is a pure function. A nomination that nobody has answered counts as
evicted and is listed as a question; add its answer and plan again.
"""

from __future__ import annotations

from datetime import datetime

from .course import Course
from .groundwork import Groundwork
from .overlay import EvictedPods
from .policy.model import Policy
from .results import (
    Answer,
    AnswerKind,
    Answers,
    Counts,
    FilteredOut,
    LimitHit,
    Nomination,
    OpenPod,
    Plan,
    QuestionKey,
)
from .snapshot import Snapshot

__all__ = [
    "Answer",
    "AnswerKind",
    "Answers",
    "Counts",
    "EvictedPods",
    "FilteredOut",
    "LimitHit",
    "Nomination",
    "OpenPod",
    "Plan",
    "QuestionKey",
    "plan",
    "plan_on",
]


def plan(
    policy: Policy,
    snapshot: Snapshot,
    answers: Answers,
    now: datetime,
    *,
    assume: EvictedPods = EvictedPods.REMOVE,
) -> Plan:
    """Plan one cycle of a bound policy.

    ``now`` is the moment that ages are counted to, aware. ``assume`` is what later steps see of pods that
    are assumed evicted, a modelling choice.
    """
    return plan_on(Groundwork(policy, snapshot, now), answers, assume=assume)


def plan_on(ground: Groundwork, answers: Answers, *, assume: EvictedPods = EvictedPods.REMOVE) -> Plan:
    """The same, on groundwork that was laid before."""
    course = Course(ground, answers, assume, thorough=True)
    course.walk()
    return course.plan()
