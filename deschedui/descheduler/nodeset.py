"""Sets of nodes as bit masks.

A node's number is its place by name; a set of nodes is one ``int`` with those bits set. And, or and not over
5,000 nodes cost a fraction of a microsecond, so a pod's node selector, affinity and tolerations are answered
for all nodes at once instead of node by node.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from .objects import Node, Taint

NodeSet = int
"""A bit for every node of a :class:`NodeIndex`."""


def is_ready(node: Node) -> bool:
    """No ``Ready`` condition says otherwise; a node without one counts as ready (semantics 2.2)."""
    return all(item.status == "True" for item in node.status.conditions if item.type == "Ready")


def numbers(nodes: NodeSet) -> Iterator[int]:
    """The numbers of the nodes in a set, in order."""
    while nodes:
        lowest = nodes & -nodes
        yield lowest.bit_length() - 1
        nodes ^= lowest


class NodeIndex:
    """Labels, names, taints and cordons of a list of nodes, each as sets."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = nodes
        self.all: NodeSet = (1 << len(nodes)) - 1
        self.number: Mapping[str, int] = {node.metadata.name: place for place, node in enumerate(nodes)}

    def where(self, holds: Callable[[Node], bool]) -> NodeSet:
        """The nodes for which something holds."""
        return _union(1 << place for place, node in enumerate(self.nodes) if holds(node))

    def named(self, name: str) -> NodeSet:
        """The node of that name, or none."""
        place = self.number.get(name)
        return 0 if place is None else 1 << place

    def with_label(self, key: str, value: str) -> NodeSet:
        """Nodes whose label has exactly this value."""
        return self._labels.get(key, {}).get(value, 0)

    def with_key(self, key: str) -> NodeSet:
        """Nodes that have the label, whatever its value."""
        return _union(self._labels.get(key, {}).values())

    def with_value(self, key: str, holds: Callable[[str], bool]) -> NodeSet:
        """Nodes that have the label with a value for which something holds."""
        return _union(found for value, found in self._labels.get(key, {}).items() if holds(value))

    @cached_property
    def ready(self) -> NodeSet:
        """Nodes that are ready."""
        return self.where(is_ready)

    @cached_property
    def schedulable(self) -> NodeSet:
        """Nodes that are not cordoned."""
        return self.where(lambda node: not node.spec.unschedulable)

    @cached_property
    def taint_groups(self) -> Mapping[tuple[Taint, ...], NodeSet]:
        """The nodes of each distinct list of taints; clusters have few of them."""
        groups: defaultdict[tuple[Taint, ...], int] = defaultdict(int)
        for place, node in enumerate(self.nodes):
            groups[node.spec.taints] |= 1 << place
        return groups

    @cached_property
    def _labels(self) -> Mapping[str, Mapping[str, NodeSet]]:
        found: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
        for place, node in enumerate(self.nodes):
            for key, value in node.metadata.labels.items():
                found[key][value] |= 1 << place
        return found


def _union(sets: Iterable[NodeSet]) -> NodeSet:
    found = 0
    for nodes in sets:
        found |= nodes
    return found
