"""One moment of a cluster, immutable, and indexed so that deciding needs no loop over all of it.

The order is always the same: nodes by name, pods by (namespace, name). What is read only by some policies
(requests, free resources) is computed at its first use and then kept. Pods that a plan assumes evicted are
not taken out of here: they are kept in a cheap layer over it (:mod:`.overlay`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TypeVar

from .nodeset import NodeIndex
from .objects import (
    Namespace,
    Node,
    OwnerReference,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    StatefulSet,
    Workload,
)
from .resources import Amounts, add, is_terminal, pod_requests

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The cluster as one cycle sees it. Build it with :meth:`build`."""

    nodes: tuple[Node, ...]
    """By name."""
    pods: tuple[Pod, ...]
    """By namespace and name; a pod's place in it is its number."""
    namespaces: Mapping[str, Namespace]
    priority_classes: Mapping[str, PriorityClass]
    pdbs: tuple[PodDisruptionBudget, ...]
    pvcs: Mapping[tuple[str, str], PersistentVolumeClaim]
    """By namespace and name."""
    replica_sets: Mapping[str, ReplicaSet]
    """By UID."""
    stateful_sets: Mapping[str, StatefulSet]
    """By UID."""

    @classmethod
    def build(
        cls,
        *,
        nodes: Iterable[Node],
        pods: Iterable[Pod],
        namespaces: Iterable[Namespace] = (),
        priority_classes: Iterable[PriorityClass] = (),
        pdbs: Iterable[PodDisruptionBudget] = (),
        pvcs: Iterable[PersistentVolumeClaim] = (),
        replica_sets: Iterable[ReplicaSet] = (),
        stateful_sets: Iterable[StatefulSet] = (),
    ) -> Snapshot:
        """Sort and index what was listed; the order it came in does not matter."""
        return cls(
            nodes=tuple(sorted(nodes, key=lambda node: node.metadata.name)),
            pods=tuple(sorted(pods, key=lambda pod: (pod.metadata.namespace, pod.metadata.name))),
            namespaces=MappingProxyType({item.metadata.name: item for item in namespaces}),
            priority_classes=MappingProxyType({item.metadata.name: item for item in priority_classes}),
            pdbs=tuple(sorted(pdbs, key=lambda pdb: (pdb.metadata.namespace, pdb.metadata.name))),
            pvcs=MappingProxyType({(pvc.metadata.namespace, pvc.metadata.name): pvc for pvc in pvcs}),
            replica_sets=MappingProxyType({item.metadata.uid: item for item in replica_sets}),
            stateful_sets=MappingProxyType({item.metadata.uid: item for item in stateful_sets}),
        )

    # ---- looking up

    def pod(self, uid: str) -> Pod | None:
        """The pod with this UID."""
        number = self._number_by_uid.get(uid)
        return None if number is None else self.pods[number]

    def node(self, name: str) -> Node | None:
        """The node with this name."""
        return self._node_by_name.get(name)

    def pods_on(self, node: str) -> tuple[Pod, ...]:
        """The pods bound to this node, finished ones too, by namespace and name."""
        return tuple(self.pods[number] for number in self.numbers_on.get(node, ()))

    def pods_of(self, owner_uid: str) -> tuple[Pod, ...]:
        """The pods that name this owner, of any namespace, node and phase."""
        return tuple(self.pods[number] for number in self.numbers_of.get(owner_uid, ()))

    def claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        """The claim of that name."""
        return self.pvcs.get((namespace, name))

    def owner_of(self, pod: Pod) -> OwnerReference | None:
        """The controller of the pod, else its first owner."""
        return owner_of(pod)

    def workload(self, owner: OwnerReference) -> Workload | None:
        """The ReplicaSet or StatefulSet behind an owner reference, where it was listed."""
        return self.replica_sets.get(owner.uid) or self.stateful_sets.get(owner.uid)

    def pdbs_for(self, pod: Pod) -> tuple[PodDisruptionBudget, ...]:
        """The budgets whose selector matches the pod. No selector matches none, an empty one all."""
        namespace, labels = pod.metadata.namespace, pod.metadata.labels
        places = list(self._pdbs_by_label.get((namespace, "", ""), ()))
        for label in labels.items():
            places += self._pdbs_by_label.get((namespace, *label), ())
        return tuple(pdb for place in sorted(places) if _selects(pdb := self.pdbs[place], labels))

    # ---- numbers

    @cached_property
    def numbers_on(self) -> Mapping[str, tuple[int, ...]]:
        """Pod numbers by node."""
        bound = ((pod.spec.node_name, number) for number, pod in enumerate(self.pods) if pod.spec.node_name)
        return _grouped(bound)

    @cached_property
    def numbers_of(self) -> Mapping[str, tuple[int, ...]]:
        """Pod numbers by owner UID."""
        return _grouped(
            (owner_uid, number) for number, pod in enumerate(self.pods) for owner_uid in owner_uids(pod)
        )

    @cached_property
    def numbers_in(self) -> Mapping[str, tuple[int, ...]]:
        """Pod numbers by namespace."""
        return _grouped((pod.metadata.namespace, number) for number, pod in enumerate(self.pods))

    def numbers_selected(self, namespace: str, labels: Mapping[str, str]) -> tuple[int, ...]:
        """Pod numbers of a namespace, narrowed by the rarest of these labels; a superset of those with all."""
        if not labels:
            return self.numbers_in.get(namespace, ())
        groups = [self._numbers_labelled.get((namespace, *label), ()) for label in labels.items()]
        return min(groups, key=len)

    @cached_property
    def _numbers_labelled(self) -> Mapping[tuple[str, str, str], tuple[int, ...]]:
        return _grouped(
            ((pod.metadata.namespace, key, value), number)
            for number, pod in enumerate(self.pods)
            for key, value in pod.metadata.labels.items()
        )

    @cached_property
    def node_index(self) -> NodeIndex:
        """Label, taint and cordon indexes over all nodes."""
        return NodeIndex(self.nodes)

    @cached_property
    def requests(self) -> tuple[Amounts, ...]:
        """The requests of every pod, by number."""
        return tuple(pod_requests(pod) for pod in self.pods)

    @cached_property
    def used(self) -> Mapping[str, Amounts]:
        """By node: the sum of the requests of its active pods."""
        return {node: self._sum(numbers) for node, numbers in self.active_on.items()}

    @cached_property
    def active_on(self) -> Mapping[str, tuple[int, ...]]:
        """By node: the numbers of the pods that have not finished."""
        return {
            node: tuple(number for number in numbers if not is_terminal(self.pods[number]))
            for node, numbers in self.numbers_on.items()
        }

    @cached_property
    def _number_by_uid(self) -> Mapping[str, int]:
        return {pod.metadata.uid: number for number, pod in enumerate(self.pods) if pod.metadata.uid}

    @cached_property
    def _node_by_name(self) -> Mapping[str, Node]:
        return {node.metadata.name: node for node in self.nodes}

    @cached_property
    def _pdbs_by_label(self) -> Mapping[tuple[str, str, str], tuple[int, ...]]:
        """Places of the budgets that can match at all, by namespace and one label that they demand."""
        usable = (
            (pdb.metadata.namespace, pdb.spec.selector, place)
            for place, pdb in enumerate(self.pdbs)
            if pdb.spec.selector is not None and not pdb.spec.selector.problem()
        )
        return _grouped(
            ((namespace, *next(iter((selector.match_labels or {}).items()), ("", ""))), place)
            for namespace, selector, place in usable
        )

    def _sum(self, numbers: Iterable[int]) -> Amounts:
        total: Amounts = {}
        for number in numbers:
            add(total, self.requests[number])
        return total


def owner_of(pod: Pod) -> OwnerReference | None:
    """The controller of the pod, else its first owner."""
    owners = pod.metadata.owner_references
    return next((owner for owner in owners if owner.controller), owners[0] if owners else None)


def owner_uids(pod: Pod) -> tuple[str, ...]:
    """The distinct UIDs of the pod's owners."""
    owners = pod.metadata.owner_references
    if len(owners) == 1:
        return (owners[0].uid,)
    return tuple(dict.fromkeys(owner.uid for owner in owners))


def _selects(pdb: PodDisruptionBudget, labels: Mapping[str, str]) -> bool:
    return pdb.spec.selector is not None and pdb.spec.selector.matches(labels)


def _grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, tuple[V, ...]]:
    groups: defaultdict[K, list[V]] = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return {key: tuple(values) for key, values in groups.items()}
