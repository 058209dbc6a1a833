"""What would happen if a pod were evicted: where it could go, what a budget would say, who else keeps
serving.

Pure, from one snapshot. A forecast informs a person; it forbids nothing, and the API server may still decide
otherwise.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import islice
from typing import Any, Final

import msgspec

from .evictor import warnings_of
from .nodefit import NodeFit
from .nodeset import is_ready, numbers
from .objects import OwnerReference, PersistentVolumeClaim, Pod, PodDisruptionBudget, Workload
from .policy.model import Policy
from .quantities import milli
from .resources import PODS, Amounts, add, is_terminal, pod_requests
from .room import Room
from .snapshot import Snapshot, owner_of

MOST_NODES: Final = 200
"""How many nodes of each list are named; the counts are of all."""

SELECTED_NODE_ANNOTATION: Final = "volume.kubernetes.io/selected-node"


class Fit(StrEnum):
    """Whether there is room elsewhere."""

    FITS = "fits"
    CROWDED = "crowded"
    """Only if others that are asked for stay: their replacements would take the room."""
    NOWHERE = "nowhere"


class PdbForecast(msgspec.Struct, frozen=True):
    """A budget that covers the pod, with its numbers of just now."""

    name: str
    disruptions_allowed: int
    current_healthy: int
    desired_healthy: int
    blocks: bool
    """Whether it would refuse the eviction of this pod now."""
    stale: bool = False
    """Its controller has not looked at its newest version yet."""


class BoundVolume(msgspec.Struct, frozen=True):
    """A claim that the pod uses; ``node`` is where its volume was made for, '' if nobody said."""

    claim: str
    volume: str
    storage_class: str
    node: str


class Chip(msgspec.Struct, frozen=True):
    """A word about the pod for a dense row. ``bad`` ones ask once more before an approval."""

    code: str
    text: str
    bad: bool = False


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about a pod's future; all of it can be stored as JSON."""

    fit: Fit
    fits_on: tuple[str, ...]
    """Ready nodes other than its own where it fits, by name; at most 200."""
    fits_count: int
    target: str
    """Where it would go if those before it in the list were moved first; '' if nowhere."""
    missing: Mapping[str, str]
    """By node: what keeps it away (``has 200m cpu free, the pod requests 2``); at most 200."""
    missing_counts: Mapping[str, int]
    """How many nodes for each cause: cordoned, notReady, selector, taints, antiAffinity, or a resource."""
    pdbs: tuple[PdbForecast, ...]
    pdb_applies: bool
    pdb_why_not: str
    """Why budgets do not matter for this pod, or ''."""
    owner_kind: str
    owner_name: str
    ready: int
    desired: int
    ready_after: int
    only_replica: bool
    same_name: bool
    """Its owner is a StatefulSet: it will come back under the same name."""
    bound_volumes: tuple[BoundVolume, ...]
    local_volumes: tuple[str, ...]
    """Volumes (emptyDir, hostPath) whose data does not move with it."""
    priority: int | None
    warnings: tuple[str, ...]
    owner_ready: int | None = None
    """Ready pods of its direct owner, which may be one of several ReplicaSets of a Deployment."""
    owner_desired: int | None = None

    @property
    def blocked_by(self) -> tuple[str, ...]:
        """The budgets that would refuse the eviction now."""
        return tuple(pdb.name for pdb in self.pdbs if pdb.blocks)

    @property
    def chips(self) -> tuple[Chip, ...]:
        """The forecast in a few words."""
        return tuple(_chips(self))

    def as_dict(self) -> dict[str, Any]:
        """Everything as JSON types."""
        made: dict[str, Any] = msgspec.to_builtins(self)
        return made

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Forecast:
        """Read what :meth:`as_dict` gave. Raises msgspec.ValidationError for anything else."""
        return msgspec.convert(stored, cls)


def forecast(snapshot: Snapshot, pod: Pod, policy: Policy | None = None) -> Forecast:
    """The forecast for one pod. For many of one snapshot use a :class:`Forecaster`."""
    return Forecaster(snapshot, policy).of(pod)


def forecast_all(
    snapshot: Snapshot, pods: Iterable[Pod], policy: Policy | None = None
) -> tuple[Forecast, ...]:
    """Forecasts for pods that are asked for together, in order.

    The replacement of each takes its place before the next is looked at, so one free slot fits one of ten.
    """
    forecaster = Forecaster(snapshot, policy)
    return tuple(forecaster.of(pod, reserve=True) for pod in pods)


_Outlook = tuple[list[int], dict[str, str], dict[str, int]]
"""Numbers of the nodes where it fits, what others miss, and how many miss what."""


class Forecaster:
    """Forecasts over one snapshot, with what they share worked out once."""

    def __init__(self, snapshot: Snapshot, policy: Policy | None = None) -> None:
        self._snapshot = snapshot
        self._policy = policy
        self._fit = NodeFit(snapshot)
        self._room = Room(snapshot)
        self._reserved: dict[int, Amounts] = {}
        self._outlooks: dict[Hashable, _Outlook] = {}

    def of(self, pod: Pod, *, reserve: bool = False) -> Forecast:
        """The forecast of a pod. With ``reserve`` its place is taken for those that come after."""
        requests = pod_requests(pod)
        fitting, missing, counts = self._nodes(pod, requests)
        target = self._target(fitting, requests)
        if reserve and target is not None:
            self._reserve(target, requests)
        workload = _Standing(self._snapshot, pod)
        why_not = _why_no_budget(pod)
        pdbs = tuple(_pdb(pdb, pod, applies=not why_not) for pdb in self._snapshot.pdbs_for(pod))
        names = [self._snapshot.nodes[place].metadata.name for place in fitting]
        return Forecast(
            fit=Fit.NOWHERE if not fitting else Fit.CROWDED if target is None else Fit.FITS,
            fits_on=tuple(names[:MOST_NODES]),
            fits_count=len(names),
            target="" if target is None else self._snapshot.nodes[target].metadata.name,
            missing=missing,
            missing_counts=counts,
            pdbs=pdbs,
            pdb_applies=not why_not,
            pdb_why_not=why_not,
            owner_kind=workload.kind,
            owner_name=workload.name,
            ready=workload.ready,
            desired=workload.desired,
            ready_after=max(0, workload.ready - _is_pod_ready(pod)),
            only_replica=workload.desired <= 1,
            same_name=workload.kind == "StatefulSet",
            bound_volumes=tuple(self._bound_volumes(pod)),
            local_volumes=tuple(_local_volumes(pod)),
            priority=pod.spec.priority,
            warnings=(*warnings_of(pod), *self._warnings(workload, pdbs)),
            owner_ready=workload.owner_ready,
            owner_desired=workload.owner_desired,
        )

    def _nodes(self, pod: Pod, requests: Amounts) -> _Outlook:
        """The same for all pods of a kind on a node, unless a namesake plays a part in its anti-affinity."""
        name = pod.metadata.name if pod.spec.affinity else ""
        key = (self._fit.kind_of(pod, requests), pod.spec.node_name, name)
        found = self._outlooks.get(key)
        if found is None:
            found = self._outlooks[key] = self._look_around(pod, requests)
        return found

    def _look_around(self, pod: Pod, requests: Amounts) -> _Outlook:
        index = self._snapshot.node_index
        others = left = index.all & ~index.named(pod.spec.node_name)
        counts: dict[str, int] = {}
        for cause, nodes in (("notReady", index.ready), *self._fit.steps(pod, requests)):
            if lost := (left & ~nodes).bit_count():
                counts[cause] = lost
            left &= nodes
        missing = {
            self._snapshot.nodes[place].metadata.name: self._obstacle(pod, place, requests)
            for place in islice(numbers(others & ~left), MOST_NODES)
        }
        return list(numbers(left)), missing, counts

    def _obstacle(self, pod: Pod, place: int, requests: Amounts) -> str:
        if not is_ready(self._snapshot.nodes[place]):
            return "is not ready"
        misfit = self._fit.misfit(pod, place, requests=requests)
        return misfit.reason if misfit else ""

    def _target(self, fitting: Iterable[int], requests: Amounts) -> int | None:
        return next((place for place in fitting if self._has_room(place, requests)), None)

    def _has_room(self, place: int, requests: Amounts) -> bool:
        taken = self._reserved.get(place)
        if taken is None:
            return True
        wanted = {**requests, PODS: 1_000_000_000}
        return all(
            milli(amount + taken.get(name, 0)) <= self._room.free(place, name)
            for name, amount in wanted.items()
        )

    def _reserve(self, place: int, requests: Amounts) -> None:
        taken = self._reserved.setdefault(place, {})
        add(taken, {**requests, PODS: 1_000_000_000})

    def _bound_volumes(self, pod: Pod) -> Iterator[BoundVolume]:
        for volume in pod.spec.volumes:
            if volume.persistent_volume_claim is not None:
                name = volume.persistent_volume_claim.claim_name
                yield _bound(name, self._snapshot.claim(pod.metadata.namespace, name))

    def _warnings(self, workload: _Standing, pdbs: tuple[PdbForecast, ...]) -> Iterator[str]:
        if len(pdbs) > 1:
            names = ", ".join(pdb.name for pdb in pdbs)
            yield f"{len(pdbs)} PodDisruptionBudgets match ({names}); the API server evicts no such pod"
        if workload.kind and workload.desired <= 1 and not self._hides_single_replicas:
            yield (
                "single replica: the service is down until the new pod is ready "
                "(minReplicas: 2 in DefaultEvictor leaves such pods alone)"
            )

    @property
    def _hides_single_replicas(self) -> bool:
        return self._policy is not None and all(
            profile.evictor.min_replicas >= 2 for profile in self._policy.profiles
        )


class _Standing:
    """Who owns the pod, and how many of its kind are wanted and ready."""

    def __init__(self, snapshot: Snapshot, pod: Pod) -> None:
        self._snapshot = snapshot
        self.kind, self.name, self.ready, self.desired = "", "", int(_is_pod_ready(pod)), 1
        self.owner_ready: int | None = None
        self.owner_desired: int | None = None
        owner = owner_of(pod)
        if owner is not None:
            self.kind, self.name = owner.kind, owner.name
            self._count(owner)

    def _count(self, owner: OwnerReference) -> None:
        workload = self._snapshot.workload(owner)
        if workload is None:
            self._count_pods(owner)
            self.owner_ready, self.owner_desired = self.ready, self.desired
            return
        self._add_up([workload])
        self.owner_ready, self.owner_desired = self.ready, self.desired
        above = _controller(workload)
        if above is not None and above.kind == "Deployment":
            self.kind, self.name = above.kind, above.name
            self._add_up(self._replica_sets_of(above))

    def _add_up(self, workloads: Iterable[Workload]) -> None:
        workloads = list(workloads)
        self.ready = sum(item.status.ready_replicas for item in workloads)
        self.desired = sum(_wanted(item) for item in workloads)

    def _count_pods(self, owner: OwnerReference) -> None:
        """Kinds that are not listed (Jobs, DaemonSets, custom ones) are counted by their pods."""
        pods = [pod for pod in self._snapshot.pods_of(owner.uid) if not is_terminal(pod)]
        self.ready = sum(_is_pod_ready(pod) for pod in pods)
        self.desired = max(1, len(pods))

    def _replica_sets_of(self, deployment: OwnerReference) -> list[Workload]:
        return [
            item
            for item in self._snapshot.replica_sets.values()
            if (above := _controller(item)) is not None and above.uid == deployment.uid
        ]


def _controller(workload: Workload) -> OwnerReference | None:
    return next((owner for owner in workload.metadata.owner_references if owner.controller), None)


def _wanted(workload: Workload) -> int:
    return 1 if workload.spec.replicas is None else workload.spec.replicas


def _is_pod_ready(pod: Pod) -> bool:
    return any(item.type == "Ready" and item.status == "True" for item in pod.status.conditions)


def _why_no_budget(pod: Pod) -> str:
    if pod.status.phase in {"Pending", "Succeeded", "Failed"}:
        return f"PodDisruptionBudgets do not apply to pods that are {pod.status.phase}"
    if pod.metadata.deletion_timestamp is not None:
        return "PodDisruptionBudgets do not apply to pods that are terminating"
    return ""


def _pdb(pdb: PodDisruptionBudget, pod: Pod, *, applies: bool) -> PdbForecast:
    status = pdb.status
    return PdbForecast(
        name=pdb.metadata.name,
        disruptions_allowed=status.disruptions_allowed,
        current_healthy=status.current_healthy,
        desired_healthy=status.desired_healthy,
        blocks=applies and status.disruptions_allowed <= 0 and not _may_go_unready(pdb, pod),
        stale=status.observed_generation < pdb.metadata.generation,
    )


def _may_go_unready(pdb: PodDisruptionBudget, pod: Pod) -> bool:
    """A pod that is not Ready costs a budget nothing while it is kept without it, or where it says so."""
    if not pod.status.conditions or _is_pod_ready(pod):
        return False
    if pdb.spec.unhealthy_pod_eviction_policy == "AlwaysAllow":
        return True
    return 0 < pdb.status.desired_healthy <= pdb.status.current_healthy


def _bound(name: str, claim: PersistentVolumeClaim | None) -> BoundVolume:
    if claim is None:
        return BoundVolume(name, "", "", "")
    node = claim.metadata.annotations.get(SELECTED_NODE_ANNOTATION, "")
    return BoundVolume(name, claim.spec.volume_name, claim.spec.storage_class_name or "", node)


def _local_volumes(pod: Pod) -> Iterator[str]:
    for volume in pod.spec.volumes:
        if volume.empty_dir is not None:
            yield f"{volume.name} (emptyDir)"
        elif volume.host_path is not None:
            yield f"{volume.name} (hostPath)"


def _chips(made: Forecast) -> Iterator[Chip]:
    yield _fit_chip(made)
    for pdb in made.pdbs:
        text = f"PDB {pdb.name} allows {pdb.disruptions_allowed}"
        yield Chip("pdb", text, pdb.blocks)
    if made.pdb_why_not and made.pdbs:
        yield Chip("pdbDoesNotApply", made.pdb_why_not)
    if made.only_replica:
        yield Chip("onlyReplica", "only replica", bad=True)
    elif made.ready_after < made.desired:
        yield Chip("leaves", f"leaves {made.ready_after} of {made.desired} Ready", made.ready_after == 0)
    if made.same_name:
        yield Chip("sameName", "StatefulSet, will come back under the same name")
    if made.warnings:
        yield Chip("warnings", made.warnings[0], bad=True)


def _fit_chip(made: Forecast) -> Chip:
    match made.fit:
        case Fit.NOWHERE:
            return Chip("noRoom", "no room", bad=True)
        case Fit.CROWDED:
            return Chip("crowded", "fits only if others stay", bad=True)
        case Fit.FITS:
            count = made.fits_count
            return Chip("fits", f"fits on {count} node{'' if count == 1 else 's'}")
