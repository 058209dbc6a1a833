"""The policy's limits: how many distinct pods may go in all, from a node, from a namespace.

This cycle's nominations count, and what earlier cycles of the same policy left open; each pod UID once, and
0 is a limit like any other. The total is tested first, then the node, then the namespace (semantics,
section 2.5).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from .policy.model import Limits
from .results import OpenPod


class LimitKey(NamedTuple):
    """One limit: the total, or that of a node or a namespace."""

    kind: str
    name: str


TOTAL: Final = LimitKey("total", "")


class Places:
    """Who has taken a place of which limit."""

    def __init__(self, limits: Limits, open_pods: Iterable[OpenPod] = ()) -> None:
        self._places = {"total": limits.total, "node": limits.per_node, "namespace": limits.per_namespace}
        self._taken: Counter[LimitKey] = Counter()
        self._full: dict[str, set[str]] = {"total": set(), "node": set(), "namespace": set()}
        self._holders: dict[str, tuple[LimitKey, ...]] = {}
        self._decisions: dict[str, str] = {}
        if limits.total == 0:
            self._full["total"].add(TOTAL.name)
        for pod in open_pods:
            if pod.uid not in self._holders:
                self.take(pod.uid, pod.node, pod.namespace)
                self._decisions[pod.uid] = pod.decision

    @property
    def full(self) -> bool:
        """Whether the total is reached."""
        return bool(self._full["total"])

    def holds(self, uid: str) -> bool:
        """Whether this pod has its places already."""
        return uid in self._holders

    def blocked(self, node: str, namespace: str) -> LimitKey | None:
        """The first limit that has no place for one more pod of this node and namespace."""
        full = self._full
        if full["total"]:
            return TOTAL
        if node in full["node"] or self._places["node"] == 0:
            return LimitKey("node", node)
        if namespace in full["namespace"] or self._places["namespace"] == 0:
            return LimitKey("namespace", namespace)
        return None

    def take(self, uid: str, node: str, namespace: str) -> None:
        """Give the pod its places."""
        pairs = (TOTAL, LimitKey("node", node), LimitKey("namespace", namespace))
        self.take_again(uid, tuple(key for key in pairs if self._places[key.kind] is not None))

    def take_again(self, uid: str, keys: tuple[LimitKey, ...]) -> None:
        """Undo :meth:`give_back`."""
        self._holders[uid] = keys
        for key in keys:
            self._taken[key] += 1
            if self._taken[key] >= self.limit(key):
                self._full[key.kind].add(key.name)

    def give_back(self, uid: str) -> tuple[LimitKey, ...]:
        """Free the pod's places, and say which they were."""
        keys = self._holders.pop(uid)
        for key in keys:
            self._taken[key] -= 1
            if self._taken[key] < self.limit(key):
                self._full[key.kind].discard(key.name)
        return keys

    def keys_of(self, uid: str) -> tuple[LimitKey, ...]:
        """The limits in which the pod has a place."""
        return self._holders.get(uid, ())

    def limit(self, key: LimitKey) -> int:
        """How many places that limit has."""
        return self._places[key.kind] or 0

    def filled_by(self, key: LimitKey) -> tuple[str, ...]:
        """The decisions of earlier cycles that have a place in that limit."""
        return tuple(
            decision for uid, decision in self._decisions.items() if key in self._holders.get(uid, ())
        )
