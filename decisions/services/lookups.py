"""Looking at one pod now: for doors, for overrides, for an approval's moment. Never a list of the cluster."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Protocol

import msgspec

from decisions.models import Cluster, Decision
from decisions.services import carryout, connections, moment
from deschedui.descheduler import objects
from deschedui.kube import redact
from deschedui.kube.budget import Lane
from deschedui.kube.client import ClusterClient, PodView
from deschedui.kube.errors import KubeError
from deschedui.kube.eviction import matching_pdbs
from deschedui.kube.owners import OwnerView

SECONDS = 1.5
MEMORY_SECONDS = 5.0
REMEMBERED = 4096


class Sight(StrEnum):
    """What a look at the API server showed."""

    FOUND = "found"
    GONE = "gone"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Looked:
    """A pod as it is, or (``sight`` UNKNOWN) as somebody claims it to be."""

    sight: Sight
    uid: str = ""
    phase: str = ""
    terminating: bool = False
    node: str = ""
    owner_api: str = ""
    owner_kind: str = ""
    owner_name: str = ""
    owner_uid: str = ""
    workload: str = ""
    problem: str = ""
    record: Mapping[str, Any] = field(default_factory=dict)


class _Memory:
    """Looks of the last seconds, so that a caller that repeats itself costs the API server nothing."""

    def __init__(self) -> None:
        self._looks: OrderedDict[tuple[int, str, str], tuple[float, Looked]] = OrderedDict()
        self._problems: dict[int, tuple[float, str]] = {}
        self._lock = threading.Lock()

    def get(self, key: tuple[int, str, str], max_age: float) -> Looked | None:
        with self._lock:
            at, looked = self._looks.get(key, (0.0, None))
        return looked if looked is not None and time.monotonic() - at <= max_age else None

    def put(self, key: tuple[int, str, str], looked: Looked) -> None:
        with self._lock:
            self._looks[key] = (time.monotonic(), looked)
            self._looks.move_to_end(key)
            while len(self._looks) > REMEMBERED:
                self._looks.popitem(last=False)

    def fail(self, cluster_id: int, problem: str) -> None:
        """An API server that just did not answer is not waited for again by the next caller."""
        self._problems[cluster_id] = (time.monotonic(), problem)

    def problem(self, cluster_id: int) -> str:
        at, problem = self._problems.get(cluster_id, (0.0, ""))
        return problem if problem and time.monotonic() - at <= MEMORY_SECONDS else ""


_memory = _Memory()


def _client(cluster: Cluster) -> ClusterClient:
    return connections.client_for(cluster, lane=Lane.LOOKUP, budget_seconds=SECONDS)


class PodEdge(Protocol):
    """The API server's view of one pod, as the doors ask for it. None of these raise."""

    def look(self, *, max_age: float) -> Looked:
        """The pod, at most so many seconds old; what cannot be read is UNKNOWN, with the problem."""

    def around(self, looked: Looked) -> tuple[str, dict[str, Any]]:
        """Its workload (``Deployment/web``) and a forecast: the owner's replicas and the PDBs over it."""

    def moment(self, decision: Decision) -> moment.Now:
        """What the approval's moment is compared with."""


@dataclass(frozen=True)
class LivePod:
    """:class:`PodEdge` on the cluster's own API server."""

    cluster: Cluster
    namespace: str
    name: str

    def look(self, *, max_age: float) -> Looked:
        key = (self.cluster.pk, self.namespace, self.name)
        remembered = _memory.get(key, max_age) if max_age else None
        if remembered is not None:
            return remembered
        if problem := _memory.problem(self.cluster.pk):
            return Looked(Sight.UNKNOWN, problem=problem)
        try:
            view = _client(self.cluster).read_pod(self.namespace, self.name)
        except KubeError as error:
            _memory.fail(self.cluster.pk, str(error)[:300])
            return Looked(Sight.UNKNOWN, problem=str(error)[:300])
        looked = Looked(Sight.GONE) if view is None else _seen(view)
        _memory.put(key, looked)
        return looked

    def around(self, looked: Looked) -> tuple[str, dict[str, Any]]:
        client = _client(self.cluster)
        owner = _try(
            lambda: client.read_owner(
                self.namespace, looked.owner_kind, looked.owner_name, api_version=looked.owner_api
            )
        )
        pdbs: list[objects.PodDisruptionBudget] = _try(lambda: client.list_pdbs(self.namespace)) or []
        labels = looked.record.get("metadata", {}).get("labels", {})
        covering = matching_pdbs(pdbs, namespace=self.namespace, labels=labels)
        forecast: dict[str, Any] = {"pdbs": [_pdb(pdb) for pdb in pdbs if pdb.metadata.name in covering]}
        if owner is not None and owner.known:
            forecast |= {"ready": owner.ready, "desired": owner.desired, "only_replica": owner.desired == 1}
        if looked.owner_kind == "StatefulSet":
            forecast["same_name"] = True
        return _workload(owner, looked), forecast

    def moment(self, decision: Decision) -> moment.Now:
        if not decision.owner_kind:
            return moment.Now()
        try:
            api_version = self.look(max_age=MEMORY_SECONDS).owner_api
            owner = _client(self.cluster).read_owner(
                self.namespace, decision.owner_kind, decision.owner_name, api_version=api_version
            )
        except KubeError as error:
            return moment.Now(why_unknown=str(error)[:200])
        moved = carryout.moved_siblings(decision)
        return moment.Now(ready=owner.ready, desired=owner.desired, why_unknown=owner.reason, moved=moved)


def _seen(view: PodView) -> Looked:
    return replace(_facts(view.pod), sight=Sight.FOUND, record=view.record)


def _facts(pod: objects.Pod) -> Looked:
    owner = next((ref for ref in pod.metadata.owner_references if ref.controller), None)
    return Looked(
        Sight.UNKNOWN,
        uid=pod.metadata.uid,
        phase=pod.status.phase,
        terminating=pod.metadata.deletion_timestamp is not None,
        node=pod.spec.node_name,
        owner_api=owner.api_version if owner else "",
        owner_kind=owner.kind[:63] if owner else "",
        owner_name=owner.name[:253] if owner else "",
        owner_uid=owner.uid[:128] if owner else "",
        workload=f"{owner.kind}/{owner.name}"[:320] if owner else "",
    )


def claimed(pod: Mapping[str, Any]) -> Looked:
    """What a caller's body says of a pod, as far as it can be read; nobody checked it."""
    if not pod:
        return Looked(Sight.UNKNOWN)
    try:
        looked = _facts(msgspec.convert(pod, objects.Pod, strict=False))
        return replace(looked, record=redact.pod_record(pod))
    except (msgspec.ValidationError, TypeError, ValueError, RecursionError):
        return Looked(Sight.UNKNOWN, problem="the body's pod cannot be read as a v1.Pod")


def _try(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except KubeError:
        return None


def _pdb(pdb: objects.PodDisruptionBudget) -> dict[str, Any]:
    return {
        "name": pdb.metadata.name,
        "disruptions_allowed": pdb.status.disruptions_allowed,
        "current_healthy": pdb.status.current_healthy,
        "desired_healthy": pdb.status.desired_healthy,
    }


def _workload(owner: OwnerView | None, looked: Looked) -> str:
    return f"Deployment/{owner.deployment}" if owner is not None and owner.deployment else looked.workload


def pod_exists(decision: Decision) -> bool:
    """Whether the API server still has this UID, asked now.

    Raises:
        KubeError: it cannot be told.
    """
    view = _client(decision.cluster).read_pod(decision.namespace, decision.pod_name)
    return view is not None and view.pod.metadata.uid == decision.pod_uid
