"""What a new object gets and what it must have: defaults, stamps and the few validations that clients meet."""

import re
import uuid
from datetime import datetime
from secrets import choice
from typing import Any

from . import errors
from .errors import Cause
from .quantities import qos_class
from .resources import (
    BUDGETS,
    DAEMON_SETS,
    DEPLOYMENTS,
    EVENTS,
    JOBS,
    NAMESPACES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    REPLICA_SETS,
    STATEFUL_SETS,
    Resource,
)
from .store import Json, Store

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_MICRO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)")
_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"
_NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
_TOLERATED = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
SYSTEM_PRIORITIES = {"system-cluster-critical": 2000000000, "system-node-critical": 2000001000}


def rfc3339(moment: datetime) -> str:
    """`2026-11-30T15:56:35Z`, whole seconds, as metav1.Time is written."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def admit(resource: Resource, obj: Json, namespace: str, store: Store) -> Json:
    """A new object with its stamps and defaults, not stored yet. Raises the server's 403, 404 or 422."""
    obj = _stamp(resource, obj, namespace, store)
    causes = _name_faults(obj["metadata"])
    obj, more = _prepare(resource, obj, store)
    if causes + more:
        raise errors.invalid(resource.kind, resource.group, obj["metadata"].get("name", ""), causes + more)
    return obj


def check_namespace(resource: Resource, namespace: str, name: str, store: Store) -> None:
    """Refuse a new object in a namespace that is not there or is ending."""
    found = store.get(NAMESPACES, namespace)
    if found is None:
        raise errors.not_found(NAMESPACES, namespace)
    if found.obj["metadata"].get("deletionTimestamp"):
        cause = Cause(
            "NamespaceTerminating", f"namespace {namespace} is being terminated", "metadata.namespace"
        )
        why = f"unable to create new content in namespace {namespace} because it is being terminated"
        raise errors.forbidden(resource, name, why, [cause])


def _stamp(resource: Resource, obj: Json, namespace: str, store: Store) -> Json:
    meta = dict(obj.get("metadata") or {})
    for server_made in (
        "resourceVersion",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "managedFields",
        "selfLink",
    ):
        meta.pop(server_made, None)
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = meta["generateName"] + "".join(choice(_SUFFIX) for _ in range(5))
    if resource.namespaced:
        meta["namespace"] = namespace
    if resource.generation:
        meta["generation"] = 1
    meta |= {"uid": str(uuid.uuid4()), "creationTimestamp": rfc3339(store.clock())}
    return obj | {"metadata": meta}


def _name_faults(meta: Json) -> list[Cause]:
    name = meta.get("name") or ""
    if not name:
        return [errors.required("metadata.name", "name or generateName is required")]
    if not _NAME.fullmatch(name):
        return [errors.invalid_value("metadata.name", name, errors.ONE_NAME)]
    return []


def _prepare(resource: Resource, obj: Json, store: Store) -> tuple[Json, list[Cause]]:
    if resource is PODS:
        return _pod(obj, store)
    if resource is NODES:
        return _node(obj), []
    if resource is NAMESPACES:
        return _namespace(obj), []
    if resource is EVENTS:
        return obj, event_faults(obj)
    if resource is BUDGETS:
        zeros = {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}
        return obj | {"status": zeros}, []
    if resource is PRIORITY_CLASSES:
        return {"preemptionPolicy": "PreemptLowerPriority"} | obj, []
    if resource in _WORKLOAD_DEFAULTS:
        return _workload(resource, obj)
    return obj, []


def _pod(obj: Json, store: Store) -> tuple[Json, list[Cause]]:
    spec = pod_spec_defaults(obj.get("spec") or {})
    spec["tolerations"] = [*(spec.get("tolerations") or ()), *_default_tolerations(spec)]
    causes = [] if spec.get("containers") else [errors.required("spec.containers")]
    spec |= _priority(spec, obj["metadata"].get("name", ""), store)
    status = {"phase": "Pending", "qosClass": qos_class(spec)}
    return obj | {"spec": spec, "status": status}, causes


def pod_spec_defaults(spec: Json) -> Json:
    """The defaults of a pod's spec, also inside a template."""
    defaults = {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
    }
    containers = [_container(c) for c in spec.get("containers") or ()]
    return defaults | spec | {"containers": containers}


def _container(container: Json) -> Json:
    image = str(container.get("image", ""))
    tag = image.rpartition("/")[2].partition(":")[2]
    resources = dict(container.get("resources") or {})
    if resources.get("limits"):
        resources["requests"] = resources["limits"] | (resources.get("requests") or {})
    defaults = {
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "Always" if tag in {"", "latest"} else "IfNotPresent",
    }
    return defaults | container | {"resources": resources}


def _default_tolerations(spec: Json) -> list[Json]:
    kept = {(t.get("key"), t.get("effect")) for t in spec.get("tolerations") or ()}
    if (None, None) in kept or (None, "NoExecute") in kept:
        return []
    missing = [k for k in _TOLERATED if (k, "NoExecute") not in kept and (k, None) not in kept]
    return [
        {"key": k, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300} for k in missing
    ]


def _priority(spec: Json, pod: str, store: Store) -> Json:
    name = spec.get("priorityClassName", "")
    found = store.get(PRIORITY_CLASSES, name) if name else None
    if name and found is None:
        raise errors.forbidden(PODS, pod, f"no PriorityClass with name {name} was found")
    policy = found.obj["preemptionPolicy"] if found else "PreemptLowerPriority"
    return {
        "priority": found.obj["value"] if found else 0,
        "enableServiceLinks": True,
        "preemptionPolicy": policy,
    }


def _node(obj: Json) -> Json:
    spec = dict(obj.get("spec") or {})
    spec["taints"] = [*(spec.get("taints") or ()), _NOT_READY]
    return obj | {"spec": spec, "status": obj.get("status") or {}}


def _namespace(obj: Json) -> Json:
    meta = obj["metadata"]
    labels = (meta.get("labels") or {}) | {"kubernetes.io/metadata.name": meta.get("name", "")}
    return obj | {
        "metadata": meta | {"labels": labels},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


_ROLLING = {"type": "RollingUpdate"}
_WORKLOAD_DEFAULTS: dict[Resource, Json] = {
    DEPLOYMENTS: {
        "replicas": 1,
        "strategy": _ROLLING | {"rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
    },
    REPLICA_SETS: {"replicas": 1},
    STATEFUL_SETS: {
        "replicas": 1,
        "podManagementPolicy": "OrderedReady",
        "updateStrategy": _ROLLING,
        "serviceName": "",
    },
    DAEMON_SETS: {"updateStrategy": _ROLLING, "revisionHistoryLimit": 10},
    JOBS: {"parallelism": 1, "completions": 1, "backoffLimit": 6},
}


def _workload(resource: Resource, obj: Json) -> tuple[Json, list[Cause]]:
    spec = _WORKLOAD_DEFAULTS[resource] | (obj.get("spec") or {})
    template = dict(spec.get("template") or {})
    if resource is JOBS:
        uid = obj["metadata"]["uid"]
        mark = {
            "batch.kubernetes.io/controller-uid": uid,
            "batch.kubernetes.io/job-name": obj["metadata"].get("name", ""),
        }
        meta = template.get("metadata") or {}
        template["metadata"] = meta | {"labels": (meta.get("labels") or {}) | mark}
        spec.setdefault("selector", {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}})
    template["spec"] = pod_spec_defaults(template.get("spec") or {})
    spec["template"] = template
    causes = [] if spec.get("selector") else [errors.required("spec.selector")]
    return obj | {"spec": spec, "status": {"replicas": 0} if resource in _COUNTED else {}}, causes


_COUNTED = {REPLICA_SETS, STATEFUL_SETS}


def check_micro_time(obj: Json, resource: Resource) -> None:
    """Refuse an event whose `eventTime` has no microseconds: metav1.MicroTime is that strict."""
    moment = obj.get("eventTime")
    if resource.kind != "Event" or not isinstance(moment, str) or _MICRO_TIME.fullmatch(moment):
        return
    rest, layout = moment[19:], "2006-01-02T15:04:05.000000Z07:00"
    why = f'parsing time "{moment}" as "{layout}": cannot parse "{rest}" as ".000000"'
    raise errors.bad_request(f'Event in version "{resource.version}" cannot be handled as a Event: {why}')


def event_faults(obj: Json) -> list[Cause]:
    """What the server checks of an event in either form (here: the core form)."""
    meta, about = obj["metadata"], obj.get("involvedObject") or {}
    where = about.get("namespace") or ""
    if where != meta.get("namespace") and (where or meta.get("namespace") != "default"):
        return [errors.invalid_value("involvedObject.namespace", where, "does not match event.namespace")]
    return []


def new_event_faults(obj: Json) -> list[Cause]:
    """The stricter checks of `events.k8s.io/v1`; one sentence each, as the server stops at the first."""
    where = obj["metadata"].get("namespace")
    about: dict[str, Any] = obj.get("regarding") or {}
    if not obj.get("eventTime"):
        return [errors.required("eventTime")]
    if obj.get("type") not in {"Normal", "Warning"}:
        return [errors.invalid_value("type", "", f"has invalid value: {obj.get('type', '')}")]
    empty = [f for f in ("reportingController", "reportingInstance", "action", "reason") if not obj.get(f)]
    if empty:
        return [errors.required(empty[0])]
    if (about.get("namespace") or "default") != where:
        why = "does not match event.namespace"
        return [errors.invalid_value("involvedObject.namespace", about.get("namespace", ""), why)]
    return []
