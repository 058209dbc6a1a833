"""The evictions that a plan assumes, as a thin layer over a snapshot.

Nothing is copied: what was evicted is remembered in order, and can be taken back from the end. That is what
lets a round of questions resume a plan in its middle (:mod:`.course`).
"""

from __future__ import annotations

from collections import defaultdict
from enum import StrEnum

from .snapshot import Snapshot, owner_uids


class EvictedPods(StrEnum):
    """What later steps of the same plan see of a pod that is assumed evicted: a modelling choice.

    A real eviction becomes visible to a descheduler at some later moment, so each of the three can happen.
    """

    REMOVE = "remove"
    """It is gone at once: it frees its room and counts for nothing any more. What plans assume."""
    TERMINATE = "terminate"
    """It is still there and terminating: never nominated again, but it occupies its node and counts."""
    KEEP = "keep"
    """It stays as it was; it is not nominated again, but occupies its node and counts."""


class Overlay:
    """Assumed evictions, by pod number, newest last."""

    def __init__(self, snapshot: Snapshot, assume: EvictedPods = EvictedPods.REMOVE) -> None:
        self.snapshot = snapshot
        self.assume = assume
        self.evicted: set[int] = set()
        self.gone_on: defaultdict[str, list[int]] = defaultdict(list)
        """By node: the pods that freed their room."""
        self.log: list[int] = []
        """The evicted pods in order."""
        self.marks: list[object] = []
        """For each entry of the log an object of its own, by which caches notice another course of events."""
        self.lost: defaultdict[str, int] = defaultdict(int)
        """By owner UID: how many of its pods are gone."""

    @property
    def removes(self) -> bool:
        """Whether evicted pods vanish from lists and counts."""
        return self.assume is EvictedPods.REMOVE

    def evict(self, number: int) -> None:
        """Assume one more pod evicted."""
        self.evicted.add(number)
        self.log.append(number)
        self.marks.append(object())
        if self.removes:
            pod = self.snapshot.pods[number]
            self.gone_on[pod.spec.node_name].append(number)
            for uid in owner_uids(pod):
                self.lost[uid] += 1

    def take_back(self) -> None:
        """Forget the newest eviction."""
        number = self.log.pop()
        self.marks.pop()
        self.evicted.discard(number)
        if self.removes:
            pod = self.snapshot.pods[number]
            self.gone_on[pod.spec.node_name].pop()
            for uid in owner_uids(pod):
                self.lost[uid] -= 1

    def replicas(self, owner_uid: str) -> int:
        """How many pods of this owner there are, in any namespace, node and phase."""
        return len(self.snapshot.numbers_of.get(owner_uid, ())) - self.lost.get(owner_uid, 0)
