"""Whether a pod would fit on another node, and if not, why not.

Rules: the descheduler's semantics, section 4.5. Pods with the same demands (requests, tolerations,
selectors, affinity) are answered together: their nodes are one bit set, computed once, and only nodes that
lost a pod since are looked at again. Evictions only ever make room, so a node that fitted still fits.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Final

from . import quantities
from .antiaffinity import AntiAffinity
from .matching import matching_nodes
from .nodeset import NodeSet, numbers
from .objects import NodeSelector, Pod, Toleration
from .overlay import Overlay
from .resources import PODS, Amounts, pod_requests
from .room import Room
from .snapshot import Snapshot
from .taints import show_all, untolerated

UPSTREAM_NO_FIT: Final = (
    "pod does not fit on any other node because of nodeSelector(s), Taint(s), "
    "or nodes marked as unschedulable"
)


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why a pod does not fit on one node.

    ``kind`` is cordoned, selector, taints, antiAffinity or the name of a resource.
    """

    kind: str
    reason: str
    """A clause about the node: ``has 500m cpu free, the pod requests 2``."""
    upstream: str


@dataclass(slots=True)
class _Demand:
    """What pods with the same demands are told; ``late`` are nodes that fit since somebody left them."""

    matching: NodeSet
    tolerated: NodeSet
    apart: NodeSet
    roomy: dict[str, NodeSet]
    fits: NodeSet
    late: NodeSet = 0
    seen: int = 0
    mark: object = None
    hopes: NodeSet = field(default=0)
    """Nodes that would fit if only somebody left them."""


class NodeFit:
    """Answers for the pods of one snapshot, over one set of candidate nodes."""

    def __init__(self, snapshot: Snapshot, candidates: NodeSet | None = None) -> None:
        self._snapshot = snapshot
        self._index = snapshot.node_index
        self.candidates = snapshot.node_index.all if candidates is None else candidates
        self._room = Room(snapshot)
        self._apart = AntiAffinity(snapshot)
        self._demands: dict[Hashable, _Demand] = {}
        self._demand_of: dict[int, _Demand] = {}
        self._matching: dict[tuple[tuple[tuple[str, str], ...], NodeSelector | None], NodeSet] = {}
        self._tolerated: dict[tuple[Toleration, ...], NodeSet] = {}

    # ---- is there any other node

    def fits_elsewhere(self, number: int, overlay: Overlay) -> bool:
        """Whether the pod fits a candidate other than the node it is on."""
        demand = self._demand(number)
        pod = self._snapshot.pods[number]
        others = ~self._index.named(pod.spec.node_name)
        if (demand.fits | demand.late) & others and self._still(demand, overlay) & others:
            return True
        self._look_again(demand, pod, number, overlay)
        return bool(demand.late & others) or self._namesake_fits(demand, pod, number, overlay, others)

    def fits_whatever_goes(self, number: int) -> bool:
        """Whether the pod fits elsewhere already now; then it does so after any evictions."""
        return bool(
            self._demand(number).fits & ~self._index.named(self._snapshot.pods[number].spec.node_name)
        )

    def why_nowhere(self, number: int) -> tuple[str, str]:
        """For a pod that fits nowhere else: the cause of most refusals, and a sentence with counts."""
        pod = self._snapshot.pods[number]
        losses = list(self._losses(self._demand(number), pod, number))
        if not losses:
            return "noNodes", "there is no other ready node it could move to"
        losses.sort(key=lambda loss: -loss[1])
        total = sum(count for _, count, _ in losses)
        return losses[0][0], f"fits on none of {_counted(total, 'other node')}: " + "; ".join(
            f"{count} {text}" for _, count, text in losses
        )

    # ---- one pod, one node

    def misfit(
        self, pod: Pod, place: int, *, requests: Amounts | None = None, gone: Collection[int] = ()
    ) -> Misfit | None:
        """Why this pod does not fit on the node with this number once some pods are gone; None if it does."""
        node = self._index.nodes[place]
        if node.spec.unschedulable:
            return Misfit("cordoned", "is cordoned", "node is not schedulable")
        if not self._matching_nodes(pod) >> place & 1:
            return Misfit(
                "selector",
                _unmatched(pod, node.metadata.labels),
                "pod node selector does not match the node label",
            )
        if taints := untolerated(pod.spec.tolerations, node.spec.taints):
            reason = f"has {show_all(taints)}, which the pod does not tolerate"
            return Misfit("taints", reason, "pod does not tolerate taints on the node")
        if other := self._apart.kept_from(pod, place, gone):
            upstream = "pod matches inter-pod anti-affinity rule of other pod on node"
            return Misfit("antiAffinity", other, upstream)
        if pod.spec.node_name == node.metadata.name:
            return None
        return self._shortage(pod_requests(pod) if requests is None else requests, place, gone)

    def steps(self, pod: Pod, requests: Amounts) -> list[tuple[str, NodeSet]]:
        """For each cause of :class:`Misfit`, in order, the nodes of the snapshot that it does not keep off."""
        demand = self._new_demand(pod, requests)
        apart = demand.apart
        for place in numbers(self._apart.namesake_nodes(pod) & ~apart):
            apart |= (not self._apart.kept_from(pod, place)) << place
        return [
            ("cordoned", self._index.schedulable),
            ("selector", demand.matching),
            ("taints", demand.tolerated),
            ("antiAffinity", apart),
            *demand.roomy.items(),
        ]

    def _shortage(self, requests: Amounts, place: int, gone: Collection[int]) -> Misfit | None:
        if self._room.free(place, PODS, gone) < 1000:
            count = self._room.pods_on(place, gone)
            return Misfit(PODS, f"has no room for another pod ({count} run there)", f"insufficient {PODS}")
        for name, amount in sorted(requests.items()):
            free = self._room.free(place, name, gone)
            if quantities.milli(amount) > free:
                has, wants = (quantities.show(nanos, name) for nanos in (max(free, 0) * 1_000_000, amount))
                return Misfit(
                    name, f"has {has} {name} free, the pod requests {wants}", f"insufficient {name}"
                )
        return None

    # ---- demands

    def kind_of(self, pod: Pod, requests: Amounts) -> Hashable:
        """Equal for pods that fit on the same nodes, but for the one they are on and for namesakes."""
        apart = self._apart.key(pod)
        return _selector_key(pod), pod.spec.tolerations, tuple(sorted(requests.items())), apart

    def _demand(self, number: int) -> _Demand:
        found = self._demand_of.get(number)
        if found is None:
            found = self._demand_of[number] = self._shared_demand(number)
        return found

    def _shared_demand(self, number: int) -> _Demand:
        pod, requests = self._snapshot.pods[number], self._snapshot.requests[number]
        key = self.kind_of(pod, requests)
        found = self._demands.get(key)
        if found is None:
            found = self._demands[key] = self._new_demand(pod, requests)
        return found

    def _new_demand(self, pod: Pod, requests: Amounts) -> _Demand:
        matching, tolerated = self._matching_nodes(pod), self._tolerated_nodes(pod.spec.tolerations)
        apart = self._apart.free_of_others(pod)
        roomy = {PODS: self._room.with_at_least(PODS, 1000)}
        for name, amount in sorted(requests.items()):
            roomy[name] = self._room.with_at_least(name, quantities.milli(amount))
        hopes = self.candidates & self._index.schedulable & matching & tolerated
        fits = hopes & apart
        for nodes in roomy.values():
            fits &= nodes
        return _Demand(matching, tolerated, apart, roomy, fits, hopes=hopes)

    def _matching_nodes(self, pod: Pod) -> NodeSet:
        key = _selector_key(pod)
        found = self._matching.get(key)
        if found is None:
            found = self._matching[key] = matching_nodes(pod, self._index)
        return found

    def _tolerated_nodes(self, tolerations: tuple[Toleration, ...]) -> NodeSet:
        found = self._tolerated.get(tolerations)
        if found is None:
            found = 0
            for taints, nodes in self._index.taint_groups.items():
                found |= 0 if untolerated(tolerations, taints) else nodes
            self._tolerated[tolerations] = found
        return found

    # ---- after evictions

    @staticmethod
    def _still(demand: _Demand, overlay: Overlay) -> NodeSet:
        """The nodes known to fit; what was found on another course of evictions is forgotten."""
        if demand.seen and not _same_course(demand, overlay):
            demand.late, demand.seen, demand.mark = 0, 0, None
        return demand.fits | demand.late

    def _look_again(self, demand: _Demand, pod: Pod, number: int, overlay: Overlay) -> None:
        """Look at the nodes that lost a pod since this demand was last looked at."""
        self._still(demand, overlay)
        changed = overlay.log[demand.seen :] if overlay.removes else []
        for evicted in changed:
            place = self._index.number.get(self._snapshot.pods[evicted].spec.node_name)
            if place is not None and demand.hopes >> place & 1 and not demand.late >> place & 1:
                fits = self._fits_now(pod, number, place, overlay, namesakes=True)
                demand.late |= fits << place
        if changed:
            demand.seen, demand.mark = len(overlay.log), overlay.marks[-1]

    def _fits_now(self, pod: Pod, number: int, place: int, overlay: Overlay, *, namesakes: bool) -> bool:
        """Room and company only: the rest cannot have changed."""
        gone = overlay.gone_on.get(self._index.nodes[place].metadata.name, ())
        if self._apart.kept_from(pod, place, gone, namesakes=namesakes):
            return False
        return self._shortage(self._snapshot.requests[number], place, gone) is None

    def _namesake_fits(
        self, demand: _Demand, pod: Pod, number: int, overlay: Overlay, others: NodeSet
    ) -> bool:
        """Anti-affinity looks past pods of the same name: their nodes are asked for this pod alone."""
        places = self._apart.namesake_nodes(pod) & demand.hopes & others
        return any(self._fits_now(pod, number, place, overlay, namesakes=False) for place in numbers(places))

    # ---- in words

    def _losses(self, demand: _Demand, pod: Pod, number: int) -> Iterator[tuple[str, int, str]]:
        left = self.candidates & ~self._index.named(pod.spec.node_name)
        steps = [
            ("cordoned", self._index.schedulable, "cordoned"),
            ("selector", demand.matching, "not matching its node selector or affinity"),
            ("taints", demand.tolerated, "with taints it does not tolerate"),
            ("antiAffinity", demand.apart, "with pods that it keeps apart from"),
        ]
        requests = self._snapshot.requests[number]
        for name, nodes in demand.roomy.items():
            wants = "another pod" if name == PODS else f"{name} {quantities.show(requests[name], name)}"
            steps.append((name, nodes, f"without room for {wants}"))
        for kind, nodes, text in steps:
            if lost := (left & ~nodes).bit_count():
                yield kind, lost, text
            left &= nodes


def _same_course(demand: _Demand, overlay: Overlay) -> bool:
    return demand.seen <= len(overlay.marks) and overlay.marks[demand.seen - 1] is demand.mark


def _selector_key(pod: Pod) -> tuple[tuple[tuple[str, str], ...], NodeSelector | None]:
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    return tuple(sorted(pod.spec.node_selector.items())), affinity.required if affinity else None


def _unmatched(pod: Pod, labels: dict[str, str]) -> str:
    for key, value in sorted(pod.spec.node_selector.items()):
        if labels.get(key) != value:
            instead = f" but {key}={labels[key]}" if key in labels else ""
            return f"does not have the label {key}={value}{instead}, which the pod's nodeSelector asks for"
    return "does not match the pod's required node affinity"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
