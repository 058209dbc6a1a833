"""What every node has left, and which nodes have at least so much of something.

Rules: the descheduler's semantics, section 4.5, check 5. Only ``status.allocatable`` counts. Amounts here are
thousandths, since that is what upstream compares.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Final

from .nodeset import NodeSet
from .quantities import milli, value
from .resources import PODS, Amounts, amounts, is_terminal
from .snapshot import Snapshot

_BLOCK: Final = 64


class Room:
    """Free amounts by node and resource, in thousandths."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._ranked: dict[str, _Ranked] = {}

    def with_at_least(self, name: str, thousandths: int) -> NodeSet:
        """The nodes of the snapshot that have so much of a resource left."""
        ranked = self._ranked.get(name)
        if ranked is None:
            places = range(len(self._snapshot.nodes))
            ranked = self._ranked[name] = _Ranked([self.free(place, name) for place in places])
        return ranked.at_least(thousandths)

    def free(self, place: int, name: str, gone: Collection[int] = ()) -> int:
        """What the node with this number has left once these pods are gone; it may be negative."""
        if name == PODS:
            return 1000 * (value(self.allocatable[place].get(PODS, 0)) - self.pods_on(place, gone))
        listed = self.allocatable[place].get(name)
        used = self._used(place, name, gone)
        if name == "cpu":
            return milli(listed or 0) - milli(used)
        if listed is None and name != "memory":
            return 0
        return 1000 * (value(listed or 0) - value(used))

    def pods_on(self, place: int, gone: Collection[int] = ()) -> int:
        """How many active pods the node has once these are gone."""
        active = self._snapshot.active_on.get(self._snapshot.nodes[place].metadata.name, ())
        return len(active) - sum(not is_terminal(self._snapshot.pods[number]) for number in gone)

    @cached_property
    def allocatable(self) -> Sequence[Amounts]:
        """By node number: what pods may use."""
        return [amounts(node.status.allocatable) for node in self._snapshot.nodes]

    def _used(self, place: int, name: str, gone: Collection[int]) -> int:
        used = self._snapshot.used.get(self._snapshot.nodes[place].metadata.name, {}).get(name, 0)
        pods, requests = self._snapshot.pods, self._snapshot.requests
        return used - sum(requests[number].get(name, 0) for number in gone if not is_terminal(pods[number]))


class _Ranked:
    """Nodes by falling free amount, with the set of the first 64, 128, … kept ready."""

    def __init__(self, free: Sequence[int]) -> None:
        self._order = sorted(range(len(free)), key=lambda place: -free[place])
        self._keys = [-free[place] for place in self._order]
        self._blocks: list[NodeSet] = [0]
        for start in range(0, len(self._order) - _BLOCK + 1, _BLOCK):
            self._blocks.append(self._blocks[-1] | _as_set(self._order[start : start + _BLOCK]))

    def at_least(self, amount: int) -> NodeSet:
        count = bisect_right(self._keys, -amount)
        full = count // _BLOCK
        return self._blocks[full] | _as_set(self._order[full * _BLOCK : count])


def _as_set(places: Sequence[int]) -> NodeSet:
    found = 0
    for place in places:
        found |= 1 << place
    return found
