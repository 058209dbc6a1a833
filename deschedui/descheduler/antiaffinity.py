"""A pod's own required anti-affinity, as node fit looks at it (the descheduler's semantics, section 4.5,
check 4).

Only pods on the very node count, pods of the candidate's own name are passed over (whatever their
namespace), and the node must carry the term's topology key. Pods on other nodes of a topology are not
looked at: upstream does not either.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property

from .nodeset import NodeSet
from .objects import AntiAffinityTerm, Pod, encode
from .snapshot import Snapshot

_TermKey = tuple[tuple[str, ...], bytes]


class AntiAffinity:
    """Which nodes hold pods that a term speaks of; every distinct term is looked up once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._index = snapshot.node_index
        self._found: dict[_TermKey, Mapping[int, list[int]]] = {}

    def key(self, pod: Pod) -> tuple[_TermKey, ...]:
        """Equal for pods whose terms mean the same."""
        return tuple(_term_key(pod, term) for term in _terms(pod))

    def free_of_others(self, pod: Pod) -> NodeSet:
        """The nodes without any pod that the terms speak of, namesakes counted."""
        free = self._index.all
        for term in _terms(pod):
            if _is_invalid(term):
                return 0
            for place in self._matched(pod, term):
                free &= ~(1 << place)
        return free

    def kept_from(self, pod: Pod, place: int, gone: Collection[int] = (), *, namesakes: bool = False) -> str:
        """Whom on this node the pod keeps apart from, as a clause about the node, or ''.

        With ``namesakes``, pods of the candidate's own name count too.
        """
        for term in _terms(pod):
            if _is_invalid(term):
                return "cannot be judged: the selector of the pod's anti-affinity is invalid"
            for number in self._matched(pod, term).get(place, ()):
                other = self._snapshot.pods[number].metadata
                if number not in gone and (namesakes or other.name != pod.metadata.name):
                    return f"runs {other.namespace}/{other.name}, from which the pod keeps apart"
        return ""

    def namesake_nodes(self, pod: Pod) -> NodeSet:
        """The nodes with pods of the same name, where the pod has terms at all."""
        nodes = 0
        for number in self._by_name.get(pod.metadata.name, ()) if _terms(pod) else ():
            nodes |= self._index.named(self._snapshot.pods[number].spec.node_name)
        return nodes

    @cached_property
    def _by_name(self) -> Mapping[str, list[int]]:
        found: dict[str, list[int]] = {}
        for number, pod in enumerate(self._snapshot.pods):
            found.setdefault(pod.metadata.name, []).append(number)
        return found

    def _matched(self, pod: Pod, term: AntiAffinityTerm) -> Mapping[int, list[int]]:
        key = _term_key(pod, term)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._look_up(key[0], term)
        return found

    def _look_up(self, namespaces: tuple[str, ...], term: AntiAffinityTerm) -> Mapping[int, list[int]]:
        found: dict[int, list[int]] = {}
        if term.label_selector is None:
            return found
        keyed = self._index.with_key(term.topology_key)
        for namespace in dict.fromkeys(namespaces):
            for number in self._snapshot.numbers_selected(namespace, term.label_selector.match_labels or {}):
                labels = self._snapshot.pods[number].metadata.labels
                place = self._place(number) if term.label_selector.matches(labels) else None
                if place is not None and keyed >> place & 1:
                    found.setdefault(place, []).append(number)
        return found

    def _place(self, number: int) -> int | None:
        pod = self._snapshot.pods[number]
        active = pod.status.phase not in {"Succeeded", "Failed"}
        return self._index.number.get(pod.spec.node_name) if active else None


def _terms(pod: Pod) -> tuple[AntiAffinityTerm, ...]:
    affinity = pod.spec.affinity
    return affinity.pod_anti_affinity.required if affinity and affinity.pod_anti_affinity else ()


def _term_key(pod: Pod, term: AntiAffinityTerm) -> _TermKey:
    return term.namespaces or (pod.metadata.namespace,), encode(term)


def _is_invalid(term: AntiAffinityTerm) -> bool:
    return term.label_selector is not None and term.label_selector.problem() is not None
