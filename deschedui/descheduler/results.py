"""What goes into a plan and what comes out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final

import msgspec

from .evictor import Objection
from .objects import Pod

QuestionKey = tuple[int, str]
"""Profile number and pod UID: a question is asked once for a pod and a profile."""


class AnswerKind(StrEnum):
    """What is known about a nomination."""

    ALLOWED = "allowed"
    """May go. Takes a limit's place."""
    WAITING = "waiting"
    """A human has it before them. Takes a limit's place."""
    DENIED = "denied"
    """May not go; its place is free for another."""
    SKIPPED = "skipped"
    """Left alone this cycle; its place is free."""
    FAILED = "failed"
    """Its eviction failed; its place is free."""
    FILTERED = "filtered"
    """Not to be nominated at all; listed among the pods filtered out."""


TAKES_A_PLACE: Final = frozenset({AnswerKind.ALLOWED, AnswerKind.WAITING})


class Answer(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """An answer, with its reason as a sentence."""

    kind: AnswerKind
    reason: str = ""

    @property
    def evicts(self) -> bool:
        """Whether the plan goes on as if the pod were evicted."""
        return self.kind in TAKES_A_PLACE


class OpenPod(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A decision that an earlier cycle of this policy left open. It counts against the limits."""

    uid: str
    node: str
    namespace: str
    decision: str
    """The decision's id, for people."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What is known before and between the rounds of a cycle."""

    known: Mapping[QuestionKey, Answer] = field(default_factory=lambda: MappingProxyType({}))
    """This cycle's answers to questions. They count where the question is put, and only there: a candidate
    that was asked ahead and that a limit still holds back, or that another plugin nominates without asking,
    has none."""
    pods: Mapping[str, Answer] = field(default_factory=lambda: MappingProxyType({}))
    """By UID: what the record says whoever asks (a human's denial in its cool-down, an open decision, …)."""
    open: tuple[OpenPod, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Nomination:
    """A plugin's wish to evict one pod."""

    pod: Pod
    node: str
    profile_index: int
    profile: str
    plugin: str
    extension_point: str
    reason: str
    """A sentence about the pod, with numbers."""
    answer: Answer | None = None
    """None: nobody has answered yet. Without ``asks`` that means that a human has to."""
    asks: bool = False
    """Whether the profile's extenders have to be asked."""

    @property
    def key(self) -> QuestionKey:
        """Under which its answer is found."""
        return self.profile_index, self.pod.metadata.uid


class FilteredOut(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False, kw_only=True):
    """A pod that was left alone, and why."""

    uid: str
    namespace: str
    name: str
    node: str
    profile: str
    plugin: str
    """Whose filter it was: DefaultEvictor, or the plugin with its own namespaces and labelSelector."""
    check: str
    """The first objection as a word for machines; :func:`.evictor.counted` tells what to call such pods."""
    reason: str
    """The first objection as a clause about the pod, with numbers."""
    upstream: str = ""
    """What the real program logs for the first objection."""
    more: tuple[Objection, ...] = ()
    """The objections after the first."""


class LimitHit(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A limit that held pods back."""

    kind: str
    """``total``, ``node`` or ``namespace``."""
    name: str
    """The node or namespace; '' for the total."""
    limit: int
    held_back: int
    """How many pods would have been nominated but for it."""
    filled_by: tuple[str, ...] = ()
    """The decisions of earlier cycles that take its places."""


class Counts(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """The cycle's funnel, in distinct pods."""

    nodes: int = 0
    """Nodes that the policy selects and that are ready."""
    seen: int = 0
    """Pods on those nodes."""
    eligible: int = 0
    """Pods that the filters of a profile let through."""
    held_back: int = 0
    """Pods that only a limit kept from being nominated."""
    nominated: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What one cycle wants to do."""

    nominations: tuple[Nomination, ...] = ()
    """In the order in which they would be evicted."""
    filtered: tuple[FilteredOut, ...] = ()
    limits: tuple[LimitHit, ...] = ()
    questions: tuple[Nomination, ...] = ()
    """Those nominations that extenders have not answered yet, in the same order."""
    counts: Counts = field(default_factory=Counts)
    skipped_cycle: str = ""
    """Why the cycle did nothing at all, or ''."""
