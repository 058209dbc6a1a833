"""Who owns a pod, and how many replicas it wants and has. Pure, but for the one read that it is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Final

import msgspec

from deschedui.descheduler import objects
from deschedui.kube.lists import controller_of, decode_as
from deschedui.kube.text import one_line


@dataclass(frozen=True, slots=True)
class OwnerView:
    """The owner of a pod.

    Args:
        desired, ready: replicas; ``None`` where they are not known, and ``reason`` says why.
        deployment: name of the Deployment that owns a ReplicaSet.
    """

    kind: str
    name: str
    uid: str = ""
    desired: int | None = None
    ready: int | None = None
    deployment: str = ""
    reason: str = ""

    @property
    def known(self) -> bool:
        """Whether the replicas are known."""
        return self.desired is not None

    def as_dict(self) -> dict[str, Any]:
        """JSON-serialisable."""
        return asdict(self)


class _Spec(msgspec.Struct, frozen=True):
    replicas: int | None = None
    parallelism: int | None = None


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    ready_replicas: int = 0
    desired_number_scheduled: int = 0
    number_ready: int = 0
    ready: int = 0


class _Owner(msgspec.Struct, frozen=True):
    metadata: objects.ObjectMeta = objects.ObjectMeta()
    spec: _Spec = _Spec()
    status: _Status = _Status()


@dataclass(frozen=True, slots=True)
class OwnerKind:
    """Where a kind is read, and where its numbers stand."""

    api: str
    plural: str
    group: str
    replicas: Callable[[_Spec, _Status], tuple[int, int]]


def _replicas(spec: _Spec, status: _Status) -> tuple[int, int]:
    return 1 if spec.replicas is None else spec.replicas, status.ready_replicas


def _scheduled(_: _Spec, status: _Status) -> tuple[int, int]:
    return status.desired_number_scheduled, status.number_ready


def _parallel(spec: _Spec, status: _Status) -> tuple[int, int]:
    return 1 if spec.parallelism is None else spec.parallelism, status.ready


OWNER_KINDS: Final = {
    "ReplicaSet": OwnerKind("apis/apps/v1", "replicasets", "apps", _replicas),
    "StatefulSet": OwnerKind("apis/apps/v1", "statefulsets", "apps", _replicas),
    "DaemonSet": OwnerKind("apis/apps/v1", "daemonsets", "apps", _scheduled),
    "Job": OwnerKind("apis/batch/v1", "jobs", "batch", _parallel),
    "ReplicationController": OwnerKind("api/v1", "replicationcontrollers", "", _replicas),
}


def owner_kind(kind: str, api_version: str = "") -> OwnerKind | None:
    """How to read this kind; ``None`` for kinds of others, even of the same name (``Job`` of Volcano)."""
    found = OWNER_KINDS.get(kind)
    if found is None or (api_version and api_version.rpartition("/")[0] != found.group):
        return None
    return found


def unknown_owner(kind: str, name: str, api_version: str = "") -> OwnerView:
    """The view of an owner whose replicas nobody here can count."""
    where = f" ({one_line(api_version, 100)})" if api_version else ""
    reason = f"replicas of kind {one_line(kind, 63) or 'unknown'}{where} are not known to deschedui"
    return OwnerView(kind, name, reason=reason)


def missing_owner(kind: str, name: str) -> OwnerView:
    """The view of an owner that is gone."""
    return OwnerView(kind, name, reason=f"{kind} {name} does not exist any more")


def owner_view(kind: str, data: bytes) -> OwnerView:
    """Read an owner's bytes."""
    owner = decode_as(data, _Owner)
    above = controller_of(owner.metadata.owner_references)
    desired, ready = OWNER_KINDS[kind].replicas(owner.spec, owner.status)
    return OwnerView(
        kind=kind,
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        desired=desired,
        ready=ready,
        deployment=above.name if above and above.kind == "Deployment" else "",
    )
