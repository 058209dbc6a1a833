"""What is kept of a pod or a node for the record, and what an extender gets. Pure.

A record is an allow-list: what the engine reads and a person compares. Values of environment variables,
arguments, commands, probes, ``managedFields`` and the last applied configuration are never in it. The input
may be an object that a stranger sent, so nothing here trusts its shape, its size or its text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from deschedui.kube.text import one_line, sentence

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
MAX_RECORD_BYTES: Final = 64 * 1024
_MAX_TEXT: Final = 1024
_MAX_ITEMS: Final = 200
_MAX_DEPTH: Final = 12
_ANNOTATION_TEXT: Final = 256

# Annotations that say how a pod may be moved. All others may hold anything: only their names are kept.
_KEPT_ANNOTATIONS: Final = (
    "descheduler.alpha.kubernetes.io/",
    "scheduler.alpha.kubernetes.io/",
    "cluster-autoscaler.kubernetes.io/",
    "karpenter.sh/",
    "kubernetes.io/config.",
    "node.alpha.kubernetes.io/",
    "deschedui.io/",
)

Json = Any
Picker = Callable[[Json], Json]


def pod_record(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The pod as it is stored: at most 64 kB of JSON; ``recordTruncated`` names what had to go."""
    record = {
        "apiVersion": "v1",
        "kind": "Pod",
        **_pick(raw, {"metadata": _metadata, "spec": _pod_spec, "status": _pod_status}),
    }
    return _bounded(record, _POD_DROPS)


def node_record(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The node as it is stored: at most 64 kB of JSON."""
    record = {
        "apiVersion": "v1",
        "kind": "Node",
        **_pick(raw, {"metadata": _metadata, "spec": _node_spec, "status": _node_status}),
    }
    return _bounded(record, _NODE_DROPS)


def extender_body(raw: Mapping[str, Any], *, kind: str = "Pod") -> dict[str, Any]:
    """The object as an extender gets it: as read, without ``managedFields`` and last-applied."""
    body = {"apiVersion": "v1", "kind": kind, **raw}
    metadata = body.get("metadata")
    if isinstance(metadata, Mapping):
        body["metadata"] = _without_bookkeeping(metadata)
    return body


def _without_bookkeeping(metadata: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in metadata.items() if key != "managedFields"}
    annotations = kept.get("annotations")
    if isinstance(annotations, Mapping) and LAST_APPLIED in annotations:
        kept["annotations"] = {key: value for key, value in annotations.items() if key != LAST_APPLIED}
    return kept


# ---- picking


def _pick(value: Json, fields: Mapping[str, Picker]) -> dict[str, Any]:
    """The named fields of an object, each through its picker; what is absent, null or empty is left out."""
    if not isinstance(value, Mapping):
        return {}
    picked = {name: picker(value[name]) for name, picker in fields.items() if value.get(name) is not None}
    return {name: found for name, found in picked.items() if found not in (None, "", [], {})}


def _object(**fields: Picker) -> Picker:
    return lambda value: _pick(value, fields)


def _each(picker: Picker, limit: int = _MAX_ITEMS) -> Picker:
    return lambda value: [picker(item) for item in value[:limit]] if isinstance(value, list) else []


def _text(value: Json) -> str:
    return one_line(value, _MAX_TEXT) if isinstance(value, str) else ""


def _message(value: Json) -> str:
    """What a kubelet or a controller wrote: a pull error quotes the address, with the password that stands in it."""
    return sentence(value, _MAX_TEXT) if isinstance(value, str) else ""


def _scalar(value: Json) -> Json:
    """A number, a boolean or a short text; numbers that JSON readers disagree about become text."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**63 else _text(str(value)[:40])
    if isinstance(value, float):
        return value if abs(value) < 1e300 else str(value)
    return _text(value)


def _whole(value: Json, depth: int = 0) -> Json:
    """A copy of a free-form part (affinity, selectors), bounded in depth, width and text."""
    if depth >= _MAX_DEPTH:
        return None
    if isinstance(value, Mapping):
        pairs = list(value.items())[:_MAX_ITEMS]
        return {one_line(str(key), 317): _whole(item, depth + 1) for key, item in pairs}
    if isinstance(value, list):
        return [_whole(item, depth + 1) for item in value[:_MAX_ITEMS]]
    return None if value is None else _scalar(value)


def _texts(value: Json) -> dict[str, Any]:
    """A flat map such as labels or resources."""
    if not isinstance(value, Mapping):
        return {}
    pairs = list(value.items())[:_MAX_ITEMS]
    return {one_line(str(key), 317): _scalar(item) for key, item in pairs}


def _annotations(value: Json) -> dict[str, str]:
    if not isinstance(value, Mapping):
        return {}
    names = [str(name) for name in value][:_MAX_ITEMS]
    return {one_line(name, 317): _annotation(name, value.get(name)) for name in names if name != LAST_APPLIED}


def _annotation(name: str, value: Json) -> str:
    kept = isinstance(value, str) and any(name.startswith(prefix) for prefix in _KEPT_ANNOTATIONS)
    return one_line(value, _ANNOTATION_TEXT) if kept else "(not kept)"


def _names(value: Json) -> list[str]:
    """Only the names of a list of named things, such as environment variables."""
    if not isinstance(value, list):
        return []
    return [_text(item.get("name")) for item in value[:_MAX_ITEMS] if isinstance(item, Mapping)]


def _volume(value: Json) -> dict[str, Any]:
    """A volume's name, its kind, and what ties its pod to a node; never what is in it."""
    if not isinstance(value, Mapping):
        return {}
    volume: dict[str, Any] = {"name": _text(value.get("name"))}
    for kind in [name for name in value if name != "name"][:3]:
        details = _pick(value[kind], {"claimName": _text, "path": _text, "driver": _text, "medium": _text})
        volume[one_line(str(kind), 60)] = details
    return volume


# No resourceVersion: it changes with every heartbeat, and equal records are kept once.
_metadata: Final = _object(
    name=_text,
    generateName=_text,
    namespace=_text,
    uid=_text,
    creationTimestamp=_text,
    deletionTimestamp=_text,
    deletionGracePeriodSeconds=_scalar,
    labels=_texts,
    annotations=_annotations,
    finalizers=_each(_text),
    ownerReferences=_each(_object(apiVersion=_text, kind=_text, name=_text, uid=_text, controller=_scalar)),
)
_resources: Final = _object(requests=_texts, limits=_texts)
_container: Final = _object(
    name=_text,
    image=_text,
    restartPolicy=_text,
    resources=_resources,
    ports=_each(_object(name=_text, containerPort=_scalar, hostPort=_scalar, protocol=_text)),
    env=_names,
    volumeMounts=_each(_object(name=_text, mountPath=_text, readOnly=_scalar)),
)
_tolerations: Final = _each(
    _object(key=_text, operator=_text, value=_text, effect=_text, tolerationSeconds=_scalar)
)
_pod_spec: Final = _object(
    nodeName=_text,
    priority=_scalar,
    priorityClassName=_text,
    preemptionPolicy=_text,
    schedulerName=_text,
    serviceAccountName=_text,
    restartPolicy=_text,
    terminationGracePeriodSeconds=_scalar,
    hostNetwork=_scalar,
    nodeSelector=_texts,
    affinity=_whole,
    tolerations=_tolerations,
    topologySpreadConstraints=_each(_whole),
    containers=_each(_container),
    initContainers=_each(_container),
    resources=_resources,
    overhead=_texts,
    volumes=_each(_volume),
    resourceClaims=_each(_object(name=_text)),
)
# A container writes its own termination message: it may hold anything, so it is not kept.
_ended: Final = _object(reason=_text, exitCode=_scalar, startedAt=_text, finishedAt=_text, signal=_scalar)
_waiting: Final = _object(reason=_text, message=_message)
_state: Final = _object(waiting=_waiting, running=_object(startedAt=_text), terminated=_ended)
_container_status: Final = _object(
    name=_text, ready=_scalar, started=_scalar, restartCount=_scalar, state=_state, lastState=_state
)
_condition: Final = _object(
    type=_text, status=_text, reason=_text, message=_message, lastTransitionTime=_text
)
_pod_status: Final = _object(
    phase=_text,
    reason=_text,
    message=_message,
    qosClass=_text,
    startTime=_text,
    nominatedNodeName=_text,
    conditions=_each(_condition),
    containerStatuses=_each(_container_status),
    initContainerStatuses=_each(_container_status),
    ephemeralContainerStatuses=_each(_container_status),
)
_node_spec: Final = _object(
    unschedulable=_scalar, taints=_each(_object(key=_text, value=_text, effect=_text, timeAdded=_text))
)
_node_info: Final = _object(
    kubeletVersion=_text,
    osImage=_text,
    kernelVersion=_text,
    containerRuntimeVersion=_text,
    architecture=_text,
    operatingSystem=_text,
)
_node_status: Final = _object(
    allocatable=_texts, capacity=_texts, conditions=_each(_condition), nodeInfo=_node_info
)


# ---- keeping it small

# What goes first when a record is too large: the least that a person compares.
_POD_DROPS: Final = (
    ("spec", "volumes"),
    ("metadata", "annotations"),
    ("status", "initContainerStatuses"),
    ("status", "ephemeralContainerStatuses"),
    ("spec", "initContainers"),
    ("status", "containerStatuses"),
    ("spec", "containers"),
    ("spec", "affinity"),
    ("spec", "tolerations"),
    ("spec", "topologySpreadConstraints"),
    ("spec", "resourceClaims"),
    ("spec", "nodeSelector"),
    ("status", "conditions"),
    ("metadata", "finalizers"),
    ("metadata", "labels"),
    ("metadata", "ownerReferences"),
    ("spec", ""),
    ("status", ""),
)
_NODE_DROPS: Final = (
    ("metadata", "annotations"),
    ("status", "conditions"),
    ("metadata", "labels"),
    ("spec", "taints"),
    ("status", "capacity"),
    ("metadata", "finalizers"),
    ("metadata", "ownerReferences"),
    ("spec", ""),
    ("status", ""),
)


def _bounded(record: dict[str, Any], drops: Iterable[tuple[str, str]]) -> dict[str, Any]:
    dropped: list[str] = []
    for part, name in drops:
        if _size(record) <= MAX_RECORD_BYTES - 1024:
            break
        inside = record if not name else record.get(part, {})
        if inside.pop(name or part, None) is not None:
            dropped.append(f"{part}.{name}".rstrip("."))
    return record | {"recordTruncated": dropped} if dropped else record


def _size(record: Mapping[str, Any]) -> int:
    return len(msgspec.json.encode(record))
