"""A cluster in memory with the methods of ``deschedui.kube.client.ClusterClient``, for tests of the domain.

It is passed in through ``connections.using``. Evictions do what an API server does (the UID precondition, a pod
that ends and then goes, a replacement of the same owner), unless a test puts its own answer or error into
``script``. ``at_send`` and ``after_send`` are places to let the world change, or a worker die, in the middle.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, cast

import msgspec

from decisions.models import Cluster
from decisions.services import connections
from deschedui.descheduler.objects import Node, Pod, PodDisruptionBudget, encode
from deschedui.descheduler.snapshot import owner_of
from deschedui.kube.answers import RawAnswer
from deschedui.kube.budget import Budget, Lane
from deschedui.kube.client import ClusterClient, PodView
from deschedui.kube.config import ClusterConnection
from deschedui.kube.errors import Conflict, KubeError
from deschedui.kube.events import EventRequest
from deschedui.kube.eviction import EvictionRequest, EvictionResult, PodLook, interpret, resolve
from deschedui.kube.leases import LeaseClaim, LeaseView
from deschedui.kube.lists import PodBrief, SnapshotLists
from deschedui.kube.owners import OwnerView, missing_owner
from tests.builders import NOW
from tests.engine.builders import build_pod

Answer = RawAnswer | BaseException
ACCEPTED = RawAnswer(201, {}, b'{"kind":"Status","apiVersion":"v1","status":"Success","code":201}')


@dataclass
class FakeClock:
    """A clock that stands still until it is told."""

    moment: datetime = NOW

    def now(self) -> datetime:
        """The time."""
        return self.moment

    def in_query(self) -> datetime:
        """The same inside a query."""
        return self.moment

    def advance(self, seconds: float) -> datetime:
        """Let time pass."""
        self.moment += timedelta(seconds=seconds)
        return self.moment


@dataclass
class FakeCluster:
    """The cluster; ``pods`` by namespace and name, ``owners`` by kind and name."""

    pods: dict[tuple[str, str], Pod] = field(default_factory=dict)
    owners: dict[tuple[str, str], OwnerView] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    pdbs: list[PodDisruptionBudget] = field(default_factory=list)
    config_maps: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    script: list[Answer] = field(default_factory=list)
    """What the next evictions are answered with, first one first; afterwards they are accepted."""
    broken: KubeError | None = None
    """What every read raises, but that of the Lease."""
    at_send: Callable[[EvictionRequest], object] = lambda _: None
    after_send: Callable[[EvictionRequest], object] = lambda _: None
    sent: list[EvictionRequest] = field(default_factory=list)
    evicted: list[str] = field(default_factory=list)
    """UIDs whose eviction was accepted, in order, one entry for each call."""
    events: list[EventRequest] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    leases: dict[str, LeaseView] = field(default_factory=dict)
    """By namespace: the Lease ``deschedui``. Made at first contact."""
    lease_broken: KubeError | None = None
    """What every read and write of a Lease raises."""
    at_lease_write: Callable[[LeaseClaim], object] = lambda _: None
    lease_writes: list[int] = field(default_factory=list)
    """The counters that were written, in order."""
    lease_reads: int = 0
    hidden_from_lists: set[str] = field(default_factory=set)
    """UIDs that a list does not show although they are there."""
    lock: threading.RLock = field(default_factory=threading.RLock)

    # --- setting it up

    def add(self, pod: Pod) -> Pod:
        """Put a pod there."""
        self.pods[pod.metadata.namespace, pod.metadata.name] = pod
        return pod

    def add_owner(
        self,
        kind: str = "ReplicaSet",
        name: str = "web-5fc9",
        *,
        uid: str = "rs-uid",
        desired: int = 3,
        ready: int = 3,
    ) -> OwnerView:
        """Put a workload there."""
        self.owners[kind, name] = OwnerView(kind, name, uid=uid, desired=desired, ready=ready)
        return self.owners[kind, name]

    def set_ready(self, ready: int, kind: str = "ReplicaSet", name: str = "web-5fc9", **fields: Any) -> None:
        """How many replicas of it are ready now."""
        self.owners[kind, name] = replace(self.owners[kind, name], ready=ready, **fields)

    def remove(self, uid: str) -> None:
        """The pod of this UID is gone."""
        with self.lock:
            self.pods = {key: pod for key, pod in self.pods.items() if pod.metadata.uid != uid}

    def terminate(self, uid: str, *, at: datetime = NOW) -> None:
        """The pod of this UID is ending."""
        for key, pod in list(self.pods.items()):
            if pod.metadata.uid == uid:
                meta = msgspec.structs.replace(pod.metadata, deletion_timestamp=at)
                self.pods[key] = msgspec.structs.replace(pod, metadata=meta)

    # --- ClusterClient

    def check(self) -> str:
        """The version."""
        self._read("version")
        return "v1.37.2"

    def read_pod(self, namespace: str, name: str) -> PodView | None:
        """A pod."""
        self._read(f"pod {namespace}/{name}")
        pod = self.pods.get((namespace, name))
        return None if pod is None else PodView(pod, encode(pod))

    def read_owner(self, namespace: str, kind: str, name: str, *, api_version: str = "") -> OwnerView:
        """A workload."""
        self._read(f"owner {namespace}/{kind}/{name}")
        return self.owners.get((kind, name)) or missing_owner(kind, name)

    def read_config_map(self, namespace: str, name: str) -> dict[str, str]:
        """The data of a ConfigMap."""
        self._read(f"config map {namespace}/{name}")
        return self.config_maps[namespace, name]

    def list_pdbs(self, namespace: str) -> list[PodDisruptionBudget]:
        """The budgets of a namespace."""
        self._read(f"pdbs {namespace}")
        return [pdb for pdb in self.pdbs if pdb.metadata.namespace == namespace]

    def list_pods_brief(self, namespaces: Iterable[str] | None = None, **options: Any) -> list[PodBrief]:
        """The pods in brief."""
        self._read("list pods")
        wanted = None if namespaces is None else set(namespaces)
        listed = [pod for pod in self.pods.values() if pod.metadata.uid not in self.hidden_from_lists]
        return [brief(pod) for pod in listed if wanted is None or pod.metadata.namespace in wanted]

    def snapshot_lists(
        self, should_stop: Callable[[], bool] = lambda: False, **options: Any
    ) -> SnapshotLists:
        """Everything that a cycle reads."""
        self._read("snapshot")
        pods = list(self.pods.values())
        return SnapshotLists(
            nodes=list(self.nodes.values()),
            pods=pods,
            namespaces=[],
            priority_classes=[],
            pdbs=list(self.pdbs),
            pvcs=[],
            replica_sets=[],
            stateful_sets=[],
            raw_pods={pod.metadata.uid: msgspec.Raw(encode(pod)) for pod in pods},
        )

    def evict(
        self,
        request: EvictionRequest,
        *,
        pdbs: Sequence[PodDisruptionBudget] = (),
        labels: Mapping[str, str] | None = None,
        before_send: Callable[[], None] | None = None,
        look: bool = True,
    ) -> EvictionResult:
        """One eviction."""
        self.at_send(request)
        if before_send is not None:
            before_send()
        with self.lock:
            answer = self._answer(request)
        self.after_send(request)
        if isinstance(answer, BaseException):
            raise answer
        result = interpret(answer, namespace=request.namespace, name=request.name, pdbs=pdbs, labels=labels)
        if result.status != "unknown":
            return result
        try:
            view = self.read_pod(request.namespace, request.name)
        except KubeError:
            return result
        return resolve(result, view.look if view else PodLook(""), uid=request.uid)

    def post_event(self, event: EventRequest) -> None:
        """An event."""
        self.events.append(event)

    def read_lease(self, namespace: str, name: str) -> LeaseView | None:
        """A Lease."""
        self.lease_reads += 1
        if self.lease_broken is not None:
            raise self.lease_broken
        with self.lock:
            return self.leases.get(namespace)

    def create_lease(self, namespace: str, name: str, claim: LeaseClaim) -> LeaseView:
        """Make a Lease."""
        return self._write_lease(namespace, claim, None)

    def update_lease(self, namespace: str, name: str, claim: LeaseClaim, *, seen: LeaseView) -> LeaseView:
        """Write a Lease over the version that was seen."""
        return self._write_lease(namespace, claim, seen)

    def _write_lease(self, namespace: str, claim: LeaseClaim, seen: LeaseView | None) -> LeaseView:
        self.at_lease_write(claim)
        if self.lease_broken is not None:
            raise self.lease_broken
        with self.lock:
            there = self.leases.get(namespace)
            if there != seen:
                raise Conflict("the object has been modified", status=409)
            self.lease_writes.append(claim.counter)
            version = str(int(there.resource_version) + 1 if there else 1)
            self.leases[namespace] = LeaseView(claim.holder, claim.counter, version)
            return self.leases[namespace]

    def close(self) -> None:
        """Nothing to close."""

    # --- inside

    def _read(self, what: str) -> None:
        self.reads.append(what)
        if self.broken is not None:
            raise self.broken

    def _answer(self, request: EvictionRequest) -> Answer:
        self.sent.append(request)
        if self.script:
            return self.script.pop(0)
        pod = self.pods.get((request.namespace, request.name))
        if pod is None:
            return status(404, "NotFound", f'pods "{request.name}" not found')
        if pod.metadata.uid != request.uid:
            return status(409, "Conflict", "the UID in the precondition does not match the UID in record")
        self.evicted.append(request.uid)
        self.terminate(request.uid)
        return ACCEPTED


def status(
    code: int,
    reason: str,
    message: str,
    *,
    causes: Sequence[Mapping[str, str]] = (),
    headers: Mapping[str, str] | None = None,
) -> RawAnswer:
    """An API server's ``Status``."""
    body = {
        "kind": "Status",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
        "details": {"causes": list(causes)},
    }
    return RawAnswer(code, dict(headers or {}), msgspec.json.encode(body))


BLOCKED = status(
    429,
    "TooManyRequests",
    "Cannot evict pod as it would violate the pod's disruption budget.",
    causes=[
        {
            "reason": "DisruptionBudget",
            "message": "The disruption budget web needs 3 healthy pods and has 3 currently",
        }
    ],
)
THROTTLED = RawAnswer(
    429, {"Retry-After": "7", "Content-Type": "text/plain"}, b"Too many requests, please try again later.\n"
)
NO_ANSWER = RawAnswer.missing("read timeout")
REFUSED_CREDENTIALS = status(401, "Unauthorized", "Unauthorized")
NO_RIGHT = status(
    403,
    "Forbidden",
    'pods "web" is forbidden: User "system:serviceaccount:deschedui:worker" cannot create resource '
    '"pods/eviction" in API group "" in the namespace "shop"',
)
IN_BACKGROUND = status(
    429,
    "TooManyRequests",
    'admission webhook "virt.example" denied the request: Eviction triggered evacuation of VMI "vm-1"',
)


def brief(pod: Pod) -> PodBrief:
    """A pod in brief."""
    owner, meta = owner_of(pod), pod.metadata
    return PodBrief(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        node_name=pod.spec.node_name,
        phase=pod.status.phase,
        ready=any(found.type == "Ready" and found.status == "True" for found in pod.status.conditions),
        deletion_timestamp=meta.deletion_timestamp,
        owner_kind=owner.kind if owner else "",
        owner_name=owner.name if owner else "",
        owner_uid=owner.uid if owner else "",
        eviction_in_progress=meta.annotations.get("descheduler.alpha.kubernetes.io/eviction-in-progress", ""),
        creation_timestamp=meta.creation_timestamp,
    )


OWNED = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "name": "web-5fc9",
    "uid": "rs-uid",
    "controller": True,
}


def a_pod(name: str = "web-5fc9-kdpx9", *, uid: str, ready: bool = True, **fields: Any) -> Pod:
    """A pod of ReplicaSet web-5fc9, as ``tests.builders.make_decision`` speaks of it."""
    ready_now = {"conditions": [{"type": "Ready", "status": "True" if ready else "False"}]}
    return build_pod(name, **{"uid": uid, "owner": OWNED, "now": NOW, "status": ready_now, **fields})


@contextmanager
def using(fakes: Mapping[str, FakeCluster] | FakeCluster) -> Iterator[None]:
    """Let every client be this fake cluster, or the one of the cluster's name."""

    def connect(
        connection: ClusterConnection, *, budget: Budget, lane: Lane, budget_seconds: float
    ) -> ClusterClient:
        fake = fakes if isinstance(fakes, FakeCluster) else fakes[connection.name]
        return cast("ClusterClient", fake)

    with connections.using(connect):
        yield


def standing_in_for(cluster: Cluster, *uids: str) -> FakeCluster:
    """A cluster with ReplicaSet web-5fc9 and pods of these UIDs."""
    fake = FakeCluster()
    fake.add_owner(desired=max(3, len(uids)), ready=max(3, len(uids)))
    for number, uid in enumerate(uids):
        fake.add(a_pod("web-5fc9-kdpx9" if not number else f"web-5fc9-{number}", uid=uid))
    return fake
