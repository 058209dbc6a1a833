"""The Kubernetes objects that the engine reads, and of each only the fields it reads.

Decoded straight from the bytes of a list response. Names are Kubernetes' own, written in Python's case
(``rename="camel"``); fields that are not named here are skipped while decoding, so a list of 50,000 pods
costs what is used of it. All of it is frozen: the engine never changes what it was given.

Quantities stay the text they came as (see :mod:`.quantities`); times are aware ``datetime`` values.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, TypeVar

import msgspec
from msgspec import field

from .selectors import LabelSelector

Quantities = dict[str, str | int | float]
"""Resource name to amount, as it was written (``{"cpu": "500m", "memory": "1Gi"}``)."""


class _Object(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """Base of everything here: frozen, camel-cased, unknown fields ignored, no cycles to collect."""


class Present(_Object, frozen=True):
    """A field of which only the presence matters, such as ``emptyDir``."""


class OwnerReference(_Object, frozen=True):
    """Who made an object; ``controller`` marks the one that keeps it alive."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    controller: bool | None = None


class ObjectMeta(_Object, frozen=True):
    """Name, labels, owners and times of an object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    generation: int = 0


class ListMeta(_Object, frozen=True):
    """The head of a list: where the next page starts, and which state it shows."""

    resource_version: str = ""
    continue_: str = field(default="", name="continue")
    remaining_item_count: int | None = None


class Condition(_Object, frozen=True):
    """A condition of a pod or a node."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


# ---- selectors and affinity


class NodeSelectorRequirement(_Object, frozen=True):
    """One requirement on a node: ``In``, ``NotIn``, ``Exists``, ``DoesNotExist``, ``Gt`` or ``Lt``."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(_Object, frozen=True):
    """Requirements that must all hold; a term without any matches no node."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(_Object, frozen=True):
    """Terms of which one must match; without terms no node matches."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class WeightedNodeTerm(_Object, frozen=True):
    """A preference for nodes, with its weight."""

    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(_Object, frozen=True):
    """Which nodes a pod must, and would like to, run on."""

    required: NodeSelector | None = field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: tuple[WeightedNodeTerm, ...] = field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class AntiAffinityTerm(_Object, frozen=True):
    """Pods that a pod must not share a topology with."""

    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    topology_key: str = ""


class PodAntiAffinity(_Object, frozen=True):
    """The required part of a pod's anti-affinity; the preferred part moves nobody."""

    required: tuple[AntiAffinityTerm, ...] = field(
        default=(), name="requiredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(_Object, frozen=True):
    """Where a pod wants to be: by node, and away from other pods."""

    node_affinity: NodeAffinity | None = None
    pod_anti_affinity: PodAntiAffinity | None = None


class TopologySpreadConstraint(_Object, frozen=True):
    """How evenly pods of one kind are to be spread."""

    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None


class Taint(_Object, frozen=True):
    """What keeps pods off a node unless they tolerate it."""

    key: str = ""
    value: str = ""
    effect: str = ""


class Toleration(_Object, frozen=True):
    """Which taints a pod puts up with."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


# ---- pods


class Resources(_Object, frozen=True):
    """Requests and limits, of a container or of a whole pod."""

    requests: Quantities = {}
    limits: Quantities = {}


class Container(_Object, frozen=True):
    """A container of a pod; ``restart_policy`` ``Always`` marks an init container as a sidecar."""

    name: str = ""
    image: str = ""
    restart_policy: str = ""
    resources: Resources = Resources()


class ClaimSource(_Object, frozen=True):
    """The claim that a volume uses."""

    claim_name: str = ""


class Volume(_Object, frozen=True):
    """A volume, as far as it ties its pod to a node or keeps data."""

    name: str = ""
    empty_dir: Present | None = None
    host_path: Present | None = None
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: Present | None = None


class PodResourceClaim(_Object, frozen=True):
    """A claim for devices (dynamic resource allocation)."""

    name: str = ""


class PodSpec(_Object, frozen=True):
    """What a pod asks for."""

    node_name: str = ""
    priority: int | None = None
    priority_class_name: str = ""
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    resources: Resources | None = None
    overhead: Quantities = {}
    volumes: tuple[Volume, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    termination_grace_period_seconds: int | None = None


class ContainerStateDetail(_Object, frozen=True):
    """Why a container waits or ended, and with which exit code."""

    reason: str = ""
    exit_code: int = 0


class ContainerState(_Object, frozen=True):
    """The present state of a container; at most one of the fields is set."""

    waiting: ContainerStateDetail | None = None
    running: Present | None = None
    terminated: ContainerStateDetail | None = None


class ContainerStatus(_Object, frozen=True):
    """How a container is doing."""

    name: str = ""
    ready: bool = False
    restart_count: int = 0
    state: ContainerState = ContainerState()


class PodStatus(_Object, frozen=True):
    """How a pod is doing."""

    phase: str = ""
    reason: str = ""
    qos_class: str = ""
    start_time: datetime | None = None
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    ephemeral_container_statuses: tuple[ContainerStatus, ...] = ()


class Pod(_Object, frozen=True):
    """A pod."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


# ---- everything else


class NodeSpec(_Object, frozen=True):
    """What keeps pods off a node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeStatus(_Object, frozen=True):
    """What a node has to give, and whether it is well."""

    allocatable: Quantities = {}
    capacity: Quantities = {}
    conditions: tuple[Condition, ...] = ()


class Node(_Object, frozen=True):
    """A node."""

    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class Namespace(_Object, frozen=True):
    """A namespace; the engine reads its labels."""

    metadata: ObjectMeta = ObjectMeta()


class PriorityClass(_Object, frozen=True):
    """A named priority."""

    metadata: ObjectMeta = ObjectMeta()
    value: int = 0


class PodDisruptionBudgetSpec(_Object, frozen=True):
    """Which pods a budget covers, and what it promises; absent ``selector`` covers none, an empty one all."""

    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: str = ""


class PodDisruptionBudgetStatus(_Object, frozen=True):
    """What a budget allows just now, as its controller counted it."""

    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    observed_generation: int = 0


class PodDisruptionBudget(_Object, frozen=True):
    """A PodDisruptionBudget."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class PersistentVolumeClaimSpec(_Object, frozen=True):
    """The storage class and the volume of a claim."""

    storage_class_name: str | None = None
    volume_name: str = ""
    access_modes: tuple[str, ...] = ()


class PersistentVolumeClaimStatus(_Object, frozen=True):
    """Whether a claim is bound."""

    phase: str = ""


class PersistentVolumeClaim(_Object, frozen=True):
    """A claim for storage."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class WorkloadSpec(_Object, frozen=True):
    """How many replicas a workload wants; absent means 1."""

    replicas: int | None = None


class WorkloadStatus(_Object, frozen=True):
    """How many replicas a workload has."""

    replicas: int = 0
    ready_replicas: int = 0
    # a DaemonSet counts under names of its own
    desired_number_scheduled: int = 0
    number_ready: int = 0


class Workload(_Object, frozen=True):
    """What owns pods: replicas wanted and ready, and who owns it in turn."""

    metadata: ObjectMeta = ObjectMeta()
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


class ReplicaSet(Workload, frozen=True):
    """A ReplicaSet; its owner is usually a Deployment."""


class StatefulSet(Workload, frozen=True):
    """A StatefulSet; its pods come back under the same names."""


class Deployment(Workload, frozen=True):
    """A Deployment, where it is read by itself."""


class DaemonSet(Workload, frozen=True):
    """A DaemonSet, where it is read by itself."""


# ---- lists


class PodList(_Object, frozen=True):
    """A page of pods."""

    metadata: ListMeta = ListMeta()
    items: list[Pod] = []


class NodeList(_Object, frozen=True):
    """A page of nodes."""

    metadata: ListMeta = ListMeta()
    items: list[Node] = []


class NamespaceList(_Object, frozen=True):
    """A page of namespaces."""

    metadata: ListMeta = ListMeta()
    items: list[Namespace] = []


class PriorityClassList(_Object, frozen=True):
    """A page of priority classes."""

    metadata: ListMeta = ListMeta()
    items: list[PriorityClass] = []


class PodDisruptionBudgetList(_Object, frozen=True):
    """A page of budgets."""

    metadata: ListMeta = ListMeta()
    items: list[PodDisruptionBudget] = []


class PersistentVolumeClaimList(_Object, frozen=True):
    """A page of claims."""

    metadata: ListMeta = ListMeta()
    items: list[PersistentVolumeClaim] = []


class ReplicaSetList(_Object, frozen=True):
    """A page of ReplicaSets."""

    metadata: ListMeta = ListMeta()
    items: list[ReplicaSet] = []


class StatefulSetList(_Object, frozen=True):
    """A page of StatefulSets."""

    metadata: ListMeta = ListMeta()
    items: list[StatefulSet] = []


# ---- from and to the wire

T = TypeVar("T")
_DECODERS: Final[dict[type, msgspec.json.Decoder[Any]]] = {}


def decode(data: bytes | str, kind: type[T]) -> T:
    """Read JSON text as ``kind``.

    Go writes ``null`` for some empty lists and maps (``"items": null``). That is rare, so the straight way is
    tried first and nulls are dropped only where it fails.

    Raises:
        msgspec.DecodeError: the text is not JSON; its subclass ``ValidationError``: it is not such an object.
    """
    decoder = _DECODERS.get(kind)
    if decoder is None:
        decoder = _DECODERS[kind] = msgspec.json.Decoder(kind)
    try:
        return decoder.decode(data)  # type: ignore[no-any-return]
    except msgspec.ValidationError:
        return from_builtins(msgspec.json.decode(data), kind)


def from_builtins(value: object, kind: type[T]) -> T:
    """Read what JSON or YAML gave (dicts, lists, text) as ``kind``; nulls count as absent.

    Raises:
        msgspec.ValidationError: says which field is wrong.
    """
    return msgspec.convert(_without_nulls(value), kind)


def encode(value: object) -> bytes:
    """Write an object of this module as JSON; fields with their default are left out."""
    return msgspec.json.encode(value)


def to_builtins(value: object) -> Any:
    """The object as dicts, lists and text, as JSON would read back."""
    return msgspec.to_builtins(value)


def _without_nulls(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value if item is not None]
    return value
