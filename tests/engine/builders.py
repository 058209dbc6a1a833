"""Objects for tests: sensible defaults, and every one of them can be overridden.

``*_manifest`` give what an API server would send (dicts), ``build_*`` the engine's own objects.
Ages are counted from :data:`NOW`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from deschedui.descheduler.objects import (
    Namespace,
    Node,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    StatefulSet,
    from_builtins,
)
from deschedui.descheduler.plugins import DEFAULT_EVICTOR, EXTERNAL_DECISION
from deschedui.descheduler.plugins.arg_types import Args
from deschedui.descheduler.plugins.default_evictor_args import DefaultEvictorArgs
from deschedui.descheduler.plugins.external_decision_args import ExternalDecisionArgs
from deschedui.descheduler.plugins.pod_life_time_args import PodLifeTimeArgs
from deschedui.descheduler.policy.model import Policy, Profile
from deschedui.descheduler.snapshot import Snapshot
from deschedui.extender.config import ExtenderArgs

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
Manifest = dict[str, Any]


def uid_of(*parts: str) -> str:
    """A UID that is always the same for the same words."""
    return str(uuid5(NAMESPACE_URL, "/".join(parts)))


def rfc3339(moment: datetime) -> str:
    """The moment as Kubernetes writes it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def owned_by(name: str = "web", kind: str = "ReplicaSet", uid: str = "") -> Manifest:
    """An owner reference to a controller."""
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "name": name,
        "uid": uid or uid_of(kind, name),
        "controller": True,
    }


OWNED_BY_WEB = owned_by()


def pod_manifest(
    name: str = "web-1",
    *,
    namespace: str = "shop",
    node: str = "n1",
    uid: str | None = None,
    age: timedelta = 2 * HOUR,
    owner: Manifest | None = OWNED_BY_WEB,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    requests: Mapping[str, str] | None = None,
    tolerations: Iterable[Mapping[str, str]] = (),
    priority: int | None = None,
    phase: str = "Running",
    metadata: Mapping[str, Any] | None = None,
    spec: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    now: datetime = NOW,
) -> Manifest:
    """A running pod of ReplicaSet ``web``, two hours old; ``owner=None`` makes it bare."""
    owners = [owner] if owner else []
    born = rfc3339(now - age)
    resources = {"requests": dict(requests if requests is not None else {"cpu": "100m", "memory": "64Mi"})}
    made: Manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid_of("pod", namespace, name) if uid is None else uid,
            "creationTimestamp": born,
            "labels": dict(labels if labels is not None else {"app": "web"}),
            "annotations": dict(annotations or {}),
            "ownerReferences": owners,
        },
        "spec": {
            "nodeName": node,
            "containers": [{"name": "main", "image": "registry.example/app:1", "resources": resources}],
            "tolerations": [dict(item) for item in tolerations],
            **({"priority": priority} if priority is not None else {}),
        },
        "status": {
            "phase": phase,
            "startTime": born,
            "conditions": [{"type": "Ready", "status": "True" if phase == "Running" else "False"}],
        },
    }
    return _overridden(made, metadata=metadata, spec=spec, status=status)


def node_manifest(
    name: str = "n1",
    *,
    labels: Mapping[str, str] | None = None,
    taints: Iterable[str | Mapping[str, str]] = (),
    allocatable: Mapping[str, str] | None = None,
    ready: bool = True,
    unschedulable: bool = False,
    metadata: Mapping[str, Any] | None = None,
    spec: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
) -> Manifest:
    """A ready node with 4 CPUs, 8 GiB and room for 20 pods; taints may be written ``key=value:Effect``."""
    room = {"cpu": "4", "memory": "8Gi", "pods": "20"} if allocatable is None else dict(allocatable)
    made: Manifest = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": uid_of("node", name),
            "labels": {"kubernetes.io/hostname": name, **(labels or {})},
        },
        "spec": {"taints": [_taint(item) for item in taints], "unschedulable": unschedulable},
        "status": {
            "allocatable": room,
            "capacity": dict(room),
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }
    return _overridden(made, metadata=metadata, spec=spec, status=status)


def build_pod(name: str = "web-1", **overrides: Any) -> Pod:
    """A pod; see :func:`pod_manifest`."""
    return from_builtins(pod_manifest(name, **overrides), Pod)


def build_node(name: str = "n1", **overrides: Any) -> Node:
    """A node; see :func:`node_manifest`."""
    return from_builtins(node_manifest(name, **overrides), Node)


def build_nodes(count: int = 2, **overrides: Any) -> list[Node]:
    """Nodes n1, n2, …"""
    return [build_node(f"n{number}", **overrides) for number in range(1, count + 1)]


def build_namespace(name: str = "shop", **labels: str) -> Namespace:
    """A namespace with these labels."""
    return from_builtins({"metadata": {"name": name, "labels": labels}}, Namespace)


def build_priority_class(name: str, value: int) -> PriorityClass:
    """A named priority."""
    return from_builtins({"metadata": {"name": name}, "value": value}, PriorityClass)


def build_pdb(
    name: str = "web",
    *,
    namespace: str = "shop",
    selector: Manifest | None = None,
    allowed: int = 0,
    healthy: int = 1,
    desired: int = 1,
) -> PodDisruptionBudget:
    """A budget over ``app: web`` that allows nothing just now."""
    made = {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"matchLabels": {"app": "web"}} if selector is None else selector},
        "status": {"disruptionsAllowed": allowed, "currentHealthy": healthy, "desiredHealthy": desired},
    }
    return from_builtins(made, PodDisruptionBudget)


def build_claim(
    name: str, *, namespace: str = "shop", storage_class: str | None = "fast", **metadata: Any
) -> PersistentVolumeClaim:
    """A bound claim of a storage class."""
    made = {
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": {"storageClassName": storage_class, "volumeName": f"pv-{name}"},
        "status": {"phase": "Bound"},
    }
    return from_builtins(made, PersistentVolumeClaim)


def build_replica_set(
    name: str = "web",
    *,
    namespace: str = "shop",
    replicas: int = 3,
    ready: int = 3,
    deployment: str = "",
    uid: str = "",
) -> ReplicaSet:
    """A ReplicaSet, of a Deployment where one is named."""
    owners = [owned_by(deployment, kind="Deployment")] if deployment else []
    made = _workload(
        "ReplicaSet", name, namespace=namespace, replicas=replicas, ready=ready, uid=uid, owners=owners
    )
    return from_builtins(made, ReplicaSet)


def build_stateful_set(
    name: str = "db", *, namespace: str = "shop", replicas: int = 3, ready: int = 3, uid: str = ""
) -> StatefulSet:
    """A StatefulSet."""
    made = _workload("StatefulSet", name, namespace=namespace, replicas=replicas, ready=ready, uid=uid)
    return from_builtins(made, StatefulSet)


def build_snapshot(
    *, nodes: Iterable[Node] | None = None, pods: Iterable[Pod] = (), **others: Any
) -> Snapshot:
    """A snapshot; nodes n1 and n2 where none are given, since a cycle needs two."""
    return Snapshot.build(nodes=build_nodes() if nodes is None else nodes, pods=pods, **others)


EXTENDER = ExtenderArgs(
    urlPrefix="http://127.0.0.1:8080", decisionVerb="evict", ignorable=False, httpTimeout="5s"
)
DAY_AT_MOST = PodLifeTimeArgs(max_pod_life_time_seconds=24 * 3600)
HOUR_AT_MOST = PodLifeTimeArgs(max_pod_life_time_seconds=3600)


def build_profile(
    *plugins: tuple[str, Args],
    index: int = 0,
    name: str = "main",
    evictor: DefaultEvictorArgs | None = None,
    gate: ExternalDecisionArgs | None = None,
    gate_at: str = "preevictionfilter",
) -> Profile:
    """A profile with these ``deschedule`` plugins; PodLifeTime with one hour where none is given."""
    strategies = plugins or (("PodLifeTime", HOUR_AT_MOST),)
    args: dict[str, Args] = {DEFAULT_EVICTOR: evictor or DefaultEvictorArgs(), **dict(strategies)}
    if gate is not None:
        args[EXTERNAL_DECISION] = gate
    return Profile(
        name=name,
        index=index,
        deschedule=tuple(name for name, _ in strategies),
        filter=_with_gate("filter", gate, gate_at),
        preevictionfilter=_with_gate("preevictionfilter", gate, gate_at),
        args=args,
    )


def _with_gate(point: str, gate: ExternalDecisionArgs | None, gate_at: str) -> tuple[str, ...]:
    return (
        (DEFAULT_EVICTOR, EXTERNAL_DECISION) if gate is not None and point == gate_at else (DEFAULT_EVICTOR,)
    )


def build_policy(
    *profiles: Profile, priority_classes: Mapping[str, int] | None = None, **changes: Any
) -> Policy:
    """A bound policy; one profile with PodLifeTime of an hour where none is given."""
    made = Policy(profiles=profiles or (build_profile(),), **changes)
    return made.bind(priority_classes or {})


def asking(**changes: Any) -> ExternalDecisionArgs:
    """ExternalDecision with one extender."""
    return ExternalDecisionArgs(**{"extender": EXTENDER, **changes})


def _workload(
    kind: str,
    name: str,
    *,
    namespace: str,
    replicas: int,
    ready: int,
    uid: str,
    owners: Iterable[Manifest] = (),
) -> Manifest:
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid or uid_of(kind, name),
            "ownerReferences": list(owners),
        },
        "spec": {"replicas": replicas},
        "status": {"replicas": replicas, "readyReplicas": ready},
    }


def _taint(written: str | Mapping[str, str]) -> Manifest:
    if not isinstance(written, str):
        return dict(written)
    label, _, effect = written.partition(":")
    key, _, value = label.partition("=")
    return {"key": key, "value": value, "effect": effect or "NoSchedule"}


def _overridden(made: Manifest, **parts: Mapping[str, Any] | None) -> Manifest:
    for part, changes in parts.items():
        made[part].update(changes or {})
    return made
