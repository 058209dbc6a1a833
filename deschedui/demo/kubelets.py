"""What kubelets and the node controller do, for every node at once: nodes and pods get ready, finish and end."""

import zlib
from dataclasses import dataclass
from datetime import datetime, timedelta

from .apiserver.admission import rfc3339
from .apiserver.resources import NODES, PODS
from .apiserver.store import Json, Store, Stored
from .apiserver.writing import delete_object

CRASH_ANNOTATION = "demo.deschedui.io/crashes"
RUN_ANNOTATION = "demo.deschedui.io/runs-for-seconds"

_NOT_READY = "node.kubernetes.io/not-ready"
_CORDONED = "node.kubernetes.io/unschedulable"
_DEFAULT_CAPACITY = {"cpu": "1k", "memory": "1Ti", "pods": "1M"}


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds: to start, to get ready, at most to end, and a Job's work where no annotation says."""

    start: float = 1.0
    ready: float = 2.0
    stop: float = 4.0
    work: float = 60.0


INSTANT = Pace(start=0, ready=0, stop=0, work=0)


def reconcile_nodes(store: Store, now: datetime) -> None:
    """Report each new node ready, and keep the taints that follow from its state."""
    for node in store.all(NODES):
        status = dict(node["status"])
        if not status.get("allocatable"):
            status["allocatable"] = status["capacity"] = status.get("capacity") or _DEFAULT_CAPACITY
        if not status.get("conditions"):
            stamp = rfc3339(now)
            ready = {
                "type": "Ready",
                "status": "True",
                "reason": "KubeletReady",
                "message": "kubelet is posting ready status",
            }
            status["conditions"] = [ready | {"lastHeartbeatTime": stamp, "lastTransitionTime": stamp}]
        spec = {k: v for k, v in node["spec"].items() if k != "taints"}
        if taints := _taints(node, now):
            spec["taints"] = taints
        if (status, spec) != (node["status"], node["spec"]):
            store.put(NODES, node | {"status": status, "spec": spec})


def _taints(node: Json, now: datetime) -> list[Json]:
    kept = [t for t in node["spec"].get("taints") or () if t["key"] not in {_NOT_READY, _CORDONED}]
    if not node["spec"].get("unschedulable"):
        return kept
    known = [t for t in node["spec"].get("taints") or () if t["key"] == _CORDONED]
    return kept + (known or [{"key": _CORDONED, "effect": "NoSchedule", "timeAdded": rfc3339(now)}])


def reconcile_pods(store: Store, pace: Pace, now: datetime) -> None:
    """Move each pod that is on a node of ours one step along its life."""
    nodes = {n["metadata"]["name"] for n in store.all(NODES)}
    for pod in store.all(PODS):
        if pod["spec"].get("nodeName") not in nodes:
            continue
        if pod["metadata"].get("deletionTimestamp"):
            _end(store, pod, pace, now)
        elif stepped := _step(pod, pace, now):
            store.put(PODS, pod | {"status": stepped})


def _end(store: Store, pod: Json, pace: Pace, now: datetime) -> None:
    grace = pod["metadata"].get("deletionGracePeriodSeconds", 0)
    began = datetime.fromisoformat(pod["metadata"]["deletionTimestamp"]) - timedelta(seconds=grace)
    if now >= began + timedelta(seconds=min(grace, pace.stop)) and not pod["metadata"].get("finalizers"):
        delete_object(store, PODS, Stored(pod, b"", 0), {"gracePeriodSeconds": 0})


def _step(pod: Json, pace: Pace, now: datetime) -> Json | None:
    """The pod's next status, or None while nothing is due."""
    status = pod["status"]
    since = (
        _since(status, "Ready")
        or _since(status, "PodScheduled")
        or datetime.fromisoformat(pod["metadata"]["creationTimestamp"])
    )
    waited = (now - since).total_seconds()
    if status.get("phase") == "Pending":
        return _started(pod, now) if waited >= pace.start else None
    if status.get("phase") != "Running":
        return None
    if crashes := _annotation(pod, CRASH_ANNOTATION):
        return _crashed(pod, float(crashes), now)
    if not _is(status, "Ready"):
        return _with_ready(pod, now, ready=True) if waited >= pace.ready else None
    if pod["spec"].get("restartPolicy") != "Always":
        work = float(_annotation(pod, RUN_ANNOTATION) or pace.work)
        return _with_ready(pod, now, ready=False) | {"phase": "Succeeded"} if waited >= work else None
    return None


def _annotation(pod: Json, name: str) -> str:
    return str((pod["metadata"].get("annotations") or {}).get(name, ""))


def _condition(status: Json, kind: str) -> Json:
    return next((c for c in status.get("conditions") or () if c["type"] == kind), {})


def _since(status: Json, kind: str) -> datetime | None:
    stamp = _condition(status, kind).get("lastTransitionTime")
    return datetime.fromisoformat(stamp) if stamp else None


def _is(status: Json, kind: str) -> bool:
    return bool(_condition(status, kind).get("status") == "True")


def _started(pod: Json, now: datetime) -> Json:
    """Running, not ready yet; a pod that claims an age claims to have started then."""
    created = datetime.fromisoformat(pod["metadata"]["creationTimestamp"])
    begun = rfc3339(created if now - created > timedelta(hours=1) else now)
    seed = zlib.crc32(pod["metadata"]["uid"].encode())
    status = _with_ready(pod | {"status": pod["status"] | {"startTime": begun}}, now, ready=False)
    address = f"10.244.{seed % 250}.{seed // 250 % 250 + 1}"
    return status | {"phase": "Running", "startTime": begun, "podIP": address, "podIPs": [{"ip": address}]}


def _with_ready(pod: Json, now: datetime, *, ready: bool) -> Json:
    stamp, value = rfc3339(now), "True" if ready else "False"
    kept = [
        c
        for c in pod["status"].get("conditions") or ()
        if c["type"] not in {"Initialized", "Ready", "ContainersReady"}
    ]
    changed = {"Initialized": "True", "Ready": value, "ContainersReady": value}
    conditions = [
        {"type": t, "status": s, "lastProbeTime": None, "lastTransitionTime": stamp}
        for t, s in changed.items()
    ]
    running = {"running": {"startedAt": pod["status"].get("startTime", stamp)}}
    containers = [_container(c, running, ready=ready, restarts=0) for c in pod["spec"]["containers"]]
    return dict(pod["status"], conditions=[*kept, *conditions], containerStatuses=containers)


def _container(container: Json, state: Json, *, ready: bool, restarts: int) -> Json:
    image = container.get("image", "")
    told = {"name": container["name"], "image": image, "imageID": f"demo://{image}", "ready": ready}
    return told | {"started": ready, "restartCount": restarts, "state": state, "lastState": {}}


def _crashed(pod: Json, every: float, now: datetime) -> Json | None:
    """A crash loop: one more restart every so many seconds."""
    status = pod["status"]
    age = (now - datetime.fromisoformat(status["startTime"])).total_seconds()
    restarts = int(age // every) + 1
    if restarts == status["containerStatuses"][0]["restartCount"]:
        return None
    why = "back-off 5m0s restarting failed container"
    state = {"waiting": {"reason": "CrashLoopBackOff", "message": why}}
    containers = [_container(c, state, ready=False, restarts=restarts) for c in pod["spec"]["containers"]]
    return dict(status, containerStatuses=containers)
