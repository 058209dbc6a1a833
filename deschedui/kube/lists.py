"""Lists, page by page, decoded from their bytes straight into the engine's structs.

The first page is asked for without a ``resourceVersion``, so it is as fresh as etcd; the API server keeps
later pages at that same state. When it has forgotten that state in between (410), the list starts again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from deschedui.descheduler import objects
from deschedui.kube.errors import Expired, InvalidAnswer, Stopped

PAGE_SIZE: Final = 500
MAX_STARTS: Final = 4
MAX_PAGES: Final = 4000

T = TypeVar("T")
Item_co = TypeVar("Item_co", covariant=True)

Fetch = Callable[[Mapping[str, str]], bytes]
"""Query to the bytes of one page; raises :class:`Expired` for a 410."""


class Page(Protocol[Item_co]):
    """A list type of the engine."""

    @property
    def metadata(self) -> objects.ListMeta: ...
    @property
    def items(self) -> Sequence[Item_co]: ...


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """All items of one list, and the state of the cluster that it shows."""

    items: list[T]
    resource_version: str = ""


def never() -> bool:
    """A ``should_stop`` that never stops."""
    return False


def read_all(
    fetch: Fetch,
    decode: Callable[[bytes], Page[T]],
    *,
    query: Mapping[str, str] | None = None,
    should_stop: Callable[[], bool] = never,
    page_size: int = PAGE_SIZE,
) -> Listing[T]:
    """Read a whole list.

    Raises:
        Stopped: ``should_stop`` said so between two pages.
        Expired: the state was forgotten in the middle of it, four times in a row.
        InvalidAnswer: a page is no such list, or the pages do not end.
    """
    for start in range(1, MAX_STARTS + 1):
        items: list[T] = []
        version = ""
        try:
            for page in _pages(fetch, decode, {**(query or {}), "limit": str(page_size)}, should_stop):
                items.extend(page.items)
                version = version or page.metadata.resource_version
        except Expired:
            if start == MAX_STARTS:
                raise
        else:
            return Listing(items, version)
    raise AssertionError("unreachable: the last start returns or raises")


def _pages(
    fetch: Fetch, decode: Callable[[bytes], Page[T]], query: dict[str, str], should_stop: Callable[[], bool]
) -> Iterator[Page[T]]:
    for _ in range(MAX_PAGES):
        if should_stop():
            raise Stopped("the list was stopped between two pages")
        page = decode(fetch(query))
        yield page
        following = page.metadata.continue_
        if not following:
            return
        if following == query.get("continue"):
            raise InvalidAnswer("a page of the list points to itself")
        query = {**query, "continue": following}
    raise InvalidAnswer(f"the list has more than {MAX_PAGES} pages")


def decode_as(data: bytes, kind: type[T]) -> T:
    """Decode one object or page.

    Raises:
        InvalidAnswer: it is not JSON, or not such an object.
    """
    try:
        return objects.decode(data, kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidAnswer(f"the answer is no {kind.__name__}: {str(error)[:200]}") from None


# ---- objects with their raw form

HasMeta = TypeVar("HasMeta", objects.Pod, objects.Node)


@dataclass(frozen=True, slots=True)
class WithRaw(Generic[T]):
    """A decoded object beside the bytes that it was decoded from."""

    item: T
    raw: msgspec.Raw


class _RawPage(msgspec.Struct, frozen=True):
    metadata: objects.ListMeta = objects.ListMeta()
    items: list[msgspec.Raw] | None = None


@dataclass(frozen=True, slots=True)
class PageWithRaw(Generic[T]):
    """A page that keeps the bytes of each object."""

    metadata: objects.ListMeta
    items: list[WithRaw[T]]


def decode_with_raw(kind: type[T], data: bytes) -> PageWithRaw[T]:
    """Decode a page, each object with its own bytes (views into the page, no copies)."""
    page = decode_as(data, _RawPage)
    items = [WithRaw(decode_as(bytes(raw), kind), raw) for raw in page.items or ()]
    return PageWithRaw(page.metadata, items)


@dataclass(frozen=True, slots=True)
class RawListing(Generic[T]):
    """A whole list; ``raw`` maps UIDs to the bytes they were decoded from, where that was asked for."""

    items: list[T]
    raw: Mapping[str, msgspec.Raw]
    resource_version: str


# ---- pods, just enough to follow them

IN_PROGRESS_ANNOTATION: Final = "descheduler.alpha.kubernetes.io/eviction-in-progress"


@dataclass(frozen=True, slots=True)
class PodBrief:
    """What is followed of a pod: whether it is still the same one, and how it is doing.

    Args:
        eviction_in_progress: the value of the descheduler's mark; a mark without a value reads as ``"true"``.
    """

    namespace: str
    name: str
    uid: str
    node_name: str
    phase: str
    ready: bool
    deletion_timestamp: datetime | None
    owner_kind: str
    owner_name: str
    owner_uid: str
    eviction_in_progress: str
    creation_timestamp: datetime | None = None


class _BriefMeta(msgspec.Struct, frozen=True, rename="camel", gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    annotations: dict[str, str] = {}
    owner_references: tuple[objects.OwnerReference, ...] = ()
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None


class _BriefSpec(msgspec.Struct, frozen=True, rename="camel", gc=False):
    node_name: str = ""


class _BriefCondition(msgspec.Struct, frozen=True, gc=False):
    type: str = ""
    status: str = ""


class _BriefStatus(msgspec.Struct, frozen=True, gc=False):
    phase: str = ""
    conditions: tuple[_BriefCondition, ...] = ()


class _BriefPod(msgspec.Struct, frozen=True, gc=False):
    metadata: _BriefMeta = _BriefMeta()
    spec: _BriefSpec = _BriefSpec()
    status: _BriefStatus = _BriefStatus()


class _BriefList(msgspec.Struct, frozen=True):
    metadata: objects.ListMeta = objects.ListMeta()
    items: list[_BriefPod] = []


@dataclass(frozen=True, slots=True)
class BriefPage:
    """A page of pods in brief."""

    metadata: objects.ListMeta
    items: list[PodBrief]


def decode_briefs(data: bytes) -> BriefPage:
    """Decode a page of pods into what is followed of them."""
    page = decode_as(data, _BriefList)
    return BriefPage(page.metadata, [_brief(pod) for pod in page.items])


def _brief(pod: _BriefPod) -> PodBrief:
    meta, owner = pod.metadata, controller_of(pod.metadata.owner_references)
    mark = meta.annotations.get(IN_PROGRESS_ANNOTATION)
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
        eviction_in_progress="" if mark is None else mark or "true",
        creation_timestamp=meta.creation_timestamp,
    )


def controller_of(references: Sequence[objects.OwnerReference]) -> objects.OwnerReference | None:
    """The owner that keeps an object alive: the controller, else the first."""
    marked = next((reference for reference in references if reference.controller), None)
    return marked or (references[0] if references else None)


# ---- everything that a cycle reads


@dataclass(frozen=True, slots=True)
class SnapshotLists:
    """The lists that a snapshot is built from: ``Snapshot.build(**lists.as_arguments())``.

    Args:
        raw_pods, raw_nodes: UID to the object's bytes as the server sent them; filled only when asked for.
        resource_versions: of each list, by its plural name.
    """

    nodes: list[objects.Node]
    pods: list[objects.Pod]
    namespaces: list[objects.Namespace]
    priority_classes: list[objects.PriorityClass]
    pdbs: list[objects.PodDisruptionBudget]
    pvcs: list[objects.PersistentVolumeClaim]
    replica_sets: list[objects.ReplicaSet]
    stateful_sets: list[objects.StatefulSet]
    raw_pods: Mapping[str, msgspec.Raw] = field(default_factory=dict)
    raw_nodes: Mapping[str, msgspec.Raw] = field(default_factory=dict)
    resource_versions: Mapping[str, str] = field(default_factory=dict)

    def as_arguments(self) -> dict[str, list[Any]]:
        """The keyword arguments of ``Snapshot.build``."""
        return {
            "nodes": self.nodes,
            "pods": self.pods,
            "namespaces": self.namespaces,
            "priority_classes": self.priority_classes,
            "pdbs": self.pdbs,
            "pvcs": self.pvcs,
            "replica_sets": self.replica_sets,
            "stateful_sets": self.stateful_sets,
        }
