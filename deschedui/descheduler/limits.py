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
        self._limits = limits
        self._taken: Counter[LimitKey] = Counter()
        self._holders: dict[str, tuple[LimitKey, ...]] = {}
        self._decisions: dict[str, str] = {}
        for pod in open_pods:
            if pod.uid not in self._holders:
                self.take(pod.uid, pod.node, pod.namespace)
                self._decisions[pod.uid] = pod.decision

    def holds(self, uid: str) -> bool:
        """Whether this pod has its places already."""
        return uid in self._holders

    def blocked(self, node: str, namespace: str) -> LimitKey | None:
        """The first limit that has no place for one more pod of this node and namespace."""
        if self.full:
            return TOTAL
        limits = self._limits
        if limits.per_node is not None and self._taken[LimitKey("node", node)] >= limits.per_node:
            return LimitKey("node", node)
        if (
            limits.per_namespace is None
            or self._taken[LimitKey("namespace", namespace)] < limits.per_namespace
        ):
            return None
        return LimitKey("namespace", namespace)

    @property
    def full(self) -> bool:
        """Whether the total is reached."""
        return self._limits.total is not None and len(self._holders) >= self._limits.total

    def take(self, uid: str, node: str, namespace: str) -> None:
        """Give the pod its places."""
        keys = self._keys(node, namespace)
        self._holders[uid] = keys
        self._taken.update(keys)

    def give_back(self, uid: str) -> tuple[LimitKey, ...]:
        """Free the pod's places, and say which they were."""
        keys = self._holders.pop(uid)
        self._taken.subtract(keys)
        return keys

    def take_again(self, uid: str, keys: tuple[LimitKey, ...]) -> None:
        """Undo :meth:`give_back`."""
        self._holders[uid] = keys
        self._taken.update(keys)

    def keys_of(self, uid: str) -> tuple[LimitKey, ...]:
        """The limits in which the pod has a place."""
        return self._holders.get(uid, ())

    def limit(self, key: LimitKey) -> int:
        """How many places that limit has."""
        found = {
            "total": self._limits.total,
            "node": self._limits.per_node,
            "namespace": self._limits.per_namespace,
        }[key.kind]
        return found or 0

    def filled_by(self, key: LimitKey) -> tuple[str, ...]:
        """The decisions of earlier cycles that have a place in that limit."""
        return tuple(
            decision for uid, decision in self._decisions.items() if key in self._holders.get(uid, ())
        )

    def _keys(self, node: str, namespace: str) -> tuple[LimitKey, ...]:
        limits = self._limits
        keys = [TOTAL] if limits.total is not None else []
        if limits.per_node is not None:
            keys.append(LimitKey("node", node))
        if limits.per_namespace is not None:
            keys.append(LimitKey("namespace", namespace))
        return tuple(keys)
