"""The one way to an API server: typed calls in, engine objects, views and own errors out.

Reads come back as the engine's structs, decoded from bytes; calls that change state are sent once and never
repeated here. Every call has a connect timeout and a total one, and waits for the cluster's budget first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from types import TracebackType
from typing import Any, Final, Self, TypeVar
from urllib.parse import quote

import msgspec

from deschedui.descheduler import objects
from deschedui.kube import config, lists, owners, redact
from deschedui.kube.answers import RawAnswer, error_for
from deschedui.kube.budget import Budget, Lane
from deschedui.kube.config import ClusterConnection
from deschedui.kube.errors import (
    InvalidAnswer,
    InvalidName,
    KubeError,
    NotFound,
    Throttled,
    Unauthorized,
    Unreachable,
)
from deschedui.kube.events import EventRequest
from deschedui.kube.eviction import (
    DEFAULT_THROTTLE_SECONDS,
    EvictionRequest,
    EvictionResult,
    PodLook,
    interpret,
    resolve,
)
from deschedui.kube.leases import LeaseClaim, LeaseView, lease_body, lease_view
from deschedui.kube.lists import HasMeta, Listing, PodBrief, RawListing, SnapshotLists, decode_as, read_all
from deschedui.kube.text import one_line
from deschedui.kube.wire import Call, Wire

EVICTION_SECONDS: Final = 30.0
"""Total time of an eviction call. The server may spend 10 s on conflicts; a lease is three times this."""
BUDGET_SECONDS: Final = 30.0

_MAX_PAGE_BYTES: Final = 512 * 1024 * 1024

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds. Each but ``connect`` covers a whole call, first byte to last."""

    connect: float = 5.0
    read: float = 10.0
    page: float = 60.0
    write: float = 10.0
    eviction: float = EVICTION_SECONDS


_TIMEOUTS: Final = {Lane.WORK: Timeouts(), Lane.LOOKUP: Timeouts(connect=1.0, read=2.0, page=2.0)}
"""A door has a caller who waits, and must say something in time."""


@dataclass(frozen=True)
class PodView:
    """A pod as it was read: decoded, and raw."""

    pod: objects.Pod
    data: bytes

    @cached_property
    def raw(self) -> dict[str, Any]:
        """All of it, as JSON gave it. Not for storing: see ``record``."""
        return _json_object(self.data)

    @cached_property
    def record(self) -> dict[str, Any]:
        """What may be stored of it (:func:`deschedui.kube.redact.pod_record`)."""
        return redact.pod_record(self.raw)

    @property
    def extender_body(self) -> dict[str, Any]:
        """What an extender is sent."""
        return redact.extender_body(self.raw)

    @property
    def look(self) -> PodLook:
        """Its UID and whether it is ending."""
        return PodLook(self.pod.metadata.uid, self.pod.metadata.deletion_timestamp is not None)


class _ConfigMap(msgspec.Struct, frozen=True):
    data: dict[str, str] | None = None


class ClusterClient:
    """Speaks to one cluster. Thread-safe; make it after a fork, not before.

    Args:
        wire: how calls are sent.
        budget: of the cluster; share it between the clients of one cluster.
        lane: on whose account its reads go: ``Lane.WORK`` (cycles, carrying out) or ``Lane.LOOKUP`` (doors).
        budget_seconds: how long a call waits for its place.
        page_size: items of one page of a list.
        timeouts: total times of the calls; by default those of the lane.
    """

    def __init__(
        self,
        wire: Wire,
        *,
        budget: Budget,
        lane: Lane = Lane.WORK,
        budget_seconds: float = BUDGET_SECONDS,
        page_size: int = lists.PAGE_SIZE,
        timeouts: Timeouts | None = None,
    ) -> None:
        self._wire, self._budget, self._lane = wire, budget, lane
        self._budget_seconds, self._page_size = budget_seconds, page_size
        self.timeouts = timeouts or _TIMEOUTS[lane]

    @classmethod
    def connect(
        cls,
        connection: ClusterConnection,
        *,
        budget: Budget,
        lane: Lane = Lane.WORK,
        budget_seconds: float = BUDGET_SECONDS,
        page_size: int = lists.PAGE_SIZE,
        timeouts: Timeouts | None = None,
    ) -> Self:
        """A client for this connection. Nothing is read or opened before the first call."""
        timeouts = timeouts or _TIMEOUTS[lane]
        wire = Wire(partial(config.load, connection), connect_seconds=timeouts.connect)
        return cls(
            wire,
            budget=budget,
            lane=lane,
            budget_seconds=budget_seconds,
            page_size=page_size,
            timeouts=timeouts,
        )

    def close(self) -> None:
        """Close idle connections; the client can be used again."""
        self._wire.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- one object

    def check(self) -> str:
        """Whether the cluster answers: its version (``v1.37.2``)."""
        version = _json_object(self._get("read the version", "/version")).get("gitVersion")
        if not isinstance(version, str) or not version:
            raise InvalidAnswer("read the version: the answer is not that of a Kubernetes API server")
        return one_line(version, 60)

    def read_pod(self, namespace: str, name: str) -> PodView | None:
        """The pod of this name; ``None`` where there is none. Compare its UID."""
        data = self.read_pod_raw(namespace, name)
        return None if data is None else PodView(decode_as(data, objects.Pod), data)

    def read_pod_raw(self, namespace: str, name: str) -> bytes | None:
        """The pod's JSON as the server sent it, e.g. for an extender; ``None`` where there is none."""
        return self._find(f"read pod {namespace}/{name}", _item("api/v1", "pods", namespace, name))

    def read_config_map(self, namespace: str, name: str) -> dict[str, str]:
        """The data of a ConfigMap, e.g. a policy.

        Raises:
            NotFound: there is none; and what every read can raise.
        """
        what = f"read ConfigMap {namespace}/{name}"
        data = self._get(what, _item("api/v1", "configmaps", namespace, name))
        return decode_as(data, _ConfigMap).data or {}

    def read_owner(self, namespace: str, kind: str, name: str, *, api_version: str = "") -> owners.OwnerView:
        """Replicas wanted and ready of a pod's owner, and the Deployment above a ReplicaSet.

        Kinds of others are not read: their view has a ``reason`` instead of numbers. So has one that is gone.
        """
        known = owners.owner_kind(kind, api_version)
        if known is None:
            return owners.unknown_owner(kind, name, api_version)
        path = _item(known.api, known.plural, namespace, name)
        data = self._find(f"read {kind} {namespace}/{name}", path)
        return owners.missing_owner(kind, name) if data is None else owners.owner_view(kind, data)

    # ---- lists

    def list_pdbs(self, namespace: str) -> list[objects.PodDisruptionBudget]:
        """The PodDisruptionBudgets of a namespace."""
        return self._list("poddisruptionbudgets", objects.PodDisruptionBudgetList, namespace).items

    def list_pods_brief(
        self,
        namespaces: Iterable[str] | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
        should_stop: Callable[[], bool] = lists.never,
    ) -> list[PodBrief]:
        """The pods of these namespaces (``None``: of all), with just what is needed to follow them."""
        query = {"labelSelector": label_selector, "fieldSelector": field_selector}
        query = {name: value for name, value in query.items() if value}
        found: list[PodBrief] = []
        for namespace in [""] if namespaces is None else sorted(set(namespaces)):
            fetch = self._fetch("pods", namespace)
            found += self._all(fetch, lists.decode_briefs, should_stop, query).items
        return found

    def snapshot_lists(
        self, should_stop: Callable[[], bool] = lists.never, *, keep_raw: bool = False
    ) -> SnapshotLists:
        """All that a cycle reads of the cluster.

        Args:
            should_stop: asked before each page.
            keep_raw: also keep the bytes of every pod and node, for a policy with extenders.

        Raises:
            Stopped, and what a list can raise.
        """
        versions: dict[str, str] = {}

        def read(plural: str, kind: type[lists.Page[T]]) -> list[T]:
            listing = self._list(plural, kind, should_stop=should_stop)
            versions[plural] = listing.resource_version
            return listing.items

        nodes = self._listed("nodes", objects.NodeList, objects.Node, should_stop, keep_raw=keep_raw)
        pods = self.list_pods(should_stop, keep_raw=keep_raw)
        versions.update(nodes=nodes.resource_version, pods=pods.resource_version)
        return SnapshotLists(
            nodes=nodes.items,
            pods=pods.items,
            namespaces=read("namespaces", objects.NamespaceList),
            priority_classes=read("priorityclasses", objects.PriorityClassList),
            pdbs=read("poddisruptionbudgets", objects.PodDisruptionBudgetList),
            pvcs=read("persistentvolumeclaims", objects.PersistentVolumeClaimList),
            replica_sets=read("replicasets", objects.ReplicaSetList),
            stateful_sets=read("statefulsets", objects.StatefulSetList),
            raw_pods=pods.raw,
            raw_nodes=nodes.raw,
            resource_versions=versions,
        )

    def list_pods(
        self, should_stop: Callable[[], bool] = lists.never, *, keep_raw: bool = False
    ) -> RawListing[objects.Pod]:
        """All pods of the cluster, on request with the bytes of each (see :meth:`snapshot_lists`)."""
        return self._listed("pods", objects.PodList, objects.Pod, should_stop, keep_raw=keep_raw)

    def _listed(
        self,
        plural: str,
        kind: type[lists.Page[HasMeta]],
        item: type[HasMeta],
        should_stop: Callable[[], bool],
        *,
        keep_raw: bool,
    ) -> RawListing[HasMeta]:
        if not keep_raw:
            plain = self._list(plural, kind, should_stop=should_stop)
            return RawListing(plain.items, {}, plain.resource_version)
        listing = self._all(self._fetch(plural), partial(lists.decode_with_raw, item), should_stop)
        raw = {found.item.metadata.uid: found.raw for found in listing.items}
        return RawListing([found.item for found in listing.items], raw, listing.resource_version)

    def _list(
        self,
        plural: str,
        kind: type[lists.Page[T]],
        namespace: str = "",
        *,
        should_stop: Callable[[], bool] = lists.never,
    ) -> Listing[T]:
        return self._all(self._fetch(plural, namespace), partial(_decode, kind), should_stop)

    def _all(
        self,
        fetch: lists.Fetch,
        decode: Callable[[bytes], lists.Page[T]],
        should_stop: Callable[[], bool],
        query: Mapping[str, str] | None = None,
    ) -> Listing[T]:
        return read_all(fetch, decode, query=query, should_stop=should_stop, page_size=self._page_size)

    def _fetch(self, plural: str, namespace: str = "") -> lists.Fetch:
        where = f" in {namespace}" if namespace else ""
        path = _collection(_LISTED[plural], plural, namespace)

        def fetch(query: Mapping[str, str]) -> bytes:
            call = Call("GET", path, self.timeouts.page, query=query, max_bytes=_MAX_PAGE_BYTES)
            return self._read(f"list {plural}{where}", call)

        return fetch

    # ---- what changes something

    def evict(
        self,
        request: EvictionRequest,
        *,
        pdbs: Iterable[objects.PodDisruptionBudget] = (),
        labels: Mapping[str, str] | None = None,
        before_send: Callable[[], None] | None = None,
        look: bool = True,
    ) -> EvictionResult:
        """Send one eviction, once, and say what its answer means.

        Where the answer leaves that open, the pod is read once; where that fails too, the result stays
        ``unknown``.

        Args:
            pdbs, labels: of the pod's namespace and of the pod, so that the message can name the PDBs.
            before_send: called when the eviction's turn has come, directly before it is sent; what it raises
                is passed on, and nothing was sent.
            look: read the pod where the answer leaves the outcome open; a dry run never looks.

        Raises:
            BudgetExhausted: there was no turn in time; nothing was sent.
            ConfigError: the connection cannot be loaded; nothing was sent.
        """
        deadline = self._budget.clock() + self._budget_seconds
        with self._budget.eviction(deadline=deadline):
            self._budget.take(Lane.WORK, deadline=deadline)
            if before_send is not None:
                before_send()
            answer = self._send_eviction(request)
        result = interpret(
            answer,
            namespace=request.namespace,
            name=request.name,
            pdbs=pdbs,
            labels=labels,
            dry_run=request.dry_run,
        )
        self._heed(answer.status, result)
        if result.status != "unknown" or request.dry_run or not look:
            return result
        return self._looked(result, request)

    def _send_eviction(self, request: EvictionRequest) -> RawAnswer:
        call = Call(
            "POST",
            _item("api/v1", "pods", request.namespace, request.name, "eviction"),
            self.timeouts.eviction,
            query={"dryRun": "All"} if request.dry_run else {},
            body=msgspec.json.encode(request.body()),
        )
        try:
            return self._wire.send(call)
        except (Unreachable, InvalidAnswer) as error:
            return RawAnswer.missing(str(error))

    def _heed(self, status: int, result: EvictionResult) -> None:
        if status == 401:
            self._wire.reload()
        if result.slows_cluster:
            self._budget.slow_down(result.retry_after or DEFAULT_THROTTLE_SECONDS)

    def _looked(self, result: EvictionResult, request: EvictionRequest) -> EvictionResult:
        try:
            view = self.read_pod(request.namespace, request.name)
        except KubeError:
            return result
        return resolve(result, PodLook("") if view is None else view.look, uid=request.uid)

    def post_event(self, event: EventRequest) -> None:
        """Put an event on a pod.

        Raises:
            KubeError: it was not accepted. Events are for people; go on without.
        """
        path = _collection("apis/events.k8s.io/v1", "events", event.namespace)
        call = Call("POST", path, self.timeouts.write, body=msgspec.json.encode(event.body()))
        self._read(f"create an event on pod {event.namespace}/{event.name}", call, lane=Lane.WORK)

    # ---- the Lease

    def read_lease(self, namespace: str, name: str) -> LeaseView | None:
        """The Lease as it is now; ``None`` where there is none (or no such namespace)."""
        data = self._find(f"read Lease {namespace}/{name}", _item(_LEASES, "leases", namespace, name))
        return None if data is None else lease_view(data)

    def create_lease(self, namespace: str, name: str, claim: LeaseClaim) -> LeaseView:
        """Make the Lease.

        Raises:
            Conflict: there is one.
            NotFound: there is no such namespace; and what every write can raise.
        """
        body = msgspec.json.encode(lease_body(namespace, name, claim))
        call = Call("POST", _collection(_LEASES, "leases", namespace), self.timeouts.write, body=body)
        return lease_view(self._read(f"create Lease {namespace}/{name}", call))

    def update_lease(self, namespace: str, name: str, claim: LeaseClaim, *, seen: LeaseView) -> LeaseView:
        """Write the Lease over exactly the version that was seen.

        Raises:
            Conflict, NotFound: it is another one by now, or gone; and what every write can raise. After
                ``Unreachable`` it may have been written.
        """
        body = msgspec.json.encode(lease_body(namespace, name, claim, instead_of=seen))
        call = Call("PUT", _item(_LEASES, "leases", namespace, name), self.timeouts.write, body=body)
        return lease_view(self._read(f"update Lease {namespace}/{name}", call))

    # ---- sending

    def _get(self, what: str, path: str) -> bytes:
        return self._read(what, Call("GET", path, self.timeouts.read))

    def _find(self, what: str, path: str) -> bytes | None:
        try:
            return self._get(what, path)
        except NotFound:
            return None

    def _read(self, what: str, call: Call, *, lane: Lane | None = None) -> bytes:
        self._budget.take(lane or self._lane, deadline=self._budget.clock() + self._budget_seconds)
        try:
            answer = self._wire.send(call)
        except (Unreachable, InvalidAnswer) as error:
            raise type(error)(f"{what}: {error}") from None
        if 200 <= answer.status < 300:
            return answer.body
        failure = error_for(answer, what)
        if isinstance(failure, Unauthorized):
            self._wire.reload()
        if isinstance(failure, Throttled) and self._lane is Lane.WORK:
            self._budget.slow_down(failure.retry_after or DEFAULT_THROTTLE_SECONDS)
        raise failure


_LEASES: Final = "apis/coordination.k8s.io/v1"
_LISTED: Final = {
    "pods": "api/v1",
    "nodes": "api/v1",
    "namespaces": "api/v1",
    "persistentvolumeclaims": "api/v1",
    "priorityclasses": "apis/scheduling.k8s.io/v1",
    "poddisruptionbudgets": "apis/policy/v1",
    "replicasets": "apis/apps/v1",
    "statefulsets": "apis/apps/v1",
}


def _collection(api: str, plural: str, namespace: str = "") -> str:
    """The path of a list; an empty namespace: of all of them, or of a kind that has none."""
    return f"/{api}/namespaces/{_segment(namespace)}/{plural}" if namespace else f"/{api}/{plural}"


def _item(api: str, plural: str, namespace: str, name: str, subresource: str = "") -> str:
    """The path of one object in a namespace."""
    path = f"/{api}/namespaces/{_segment(namespace)}/{plural}/{_segment(name)}"
    return f"{path}/{subresource}" if subresource else path


def _segment(name: str) -> str:
    """A name in a path. Names come from outside: one that is empty or would point elsewhere is refused."""
    if name in {"", ".", ".."} or "/" in name or "%" in name:
        raise InvalidName(f"not a Kubernetes name: {one_line(name, 100)!r}")
    return quote(name, safe="")


def _decode(kind: type[T], data: bytes) -> T:
    return decode_as(data, kind)


def _json_object(data: bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        found = None
    if not isinstance(found, dict):
        raise InvalidAnswer("the answer is not a JSON object")
    return found
