"""A small scheduler: taints, node selectors, required node affinity and resources; pods of one owner are spread."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

from .apiserver.admission import rfc3339
from .apiserver.eviction import bound
from .apiserver.quantities import allocatable, requests
from .apiserver.resources import NODES, PODS
from .apiserver.selectors import expressions
from .apiserver.store import Json, Store
from .budgets import controller_of

HARD = ("NoSchedule", "NoExecute")
FINISHED = ("Succeeded", "Failed")


def reconcile(store: Store, pods: Iterable[Json], now: datetime) -> None:
    """Give each waiting pod a node, or say on the pod why none takes it."""
    pods = list(pods)
    waiting = [p for p in pods if _waits(p)]
    if not waiting:
        return
    nodes = list(store.all(NODES))
    free = _free(nodes, pods)
    spread = Counter((p["spec"]["nodeName"], _family(p)) for p in pods if p["spec"].get("nodeName"))
    zones = {n["metadata"]["name"]: _zone(n) for n in nodes}
    for pod in waiting:
        fitting = [n["metadata"]["name"] for n in nodes if not obstacle(pod, n, free[n["metadata"]["name"]])]
        if not fitting:
            _refuse(store, pod, nodes, free, now)
            continue
        family = _family(pod)
        in_zone = Counter(
            {
                z: sum(c for (n, f), c in spread.items() if f == family and zones.get(n) == z)
                for z in zones.values()
            }
        )
        best = min(fitting, key=lambda n: (in_zone[zones[n]], spread[n, family], -free[n]["cpu"], n))
        store.put(PODS, bound(pod, best, rfc3339(now)))
        free[best].subtract(requests(pod["spec"]))
        spread[best, family] += 1


def _waits(pod: Json) -> bool:
    ours = pod["spec"].get("schedulerName", "default-scheduler") == "default-scheduler"
    return ours and not pod["spec"].get("nodeName") and not pod["metadata"].get("deletionTimestamp")


def _family(pod: Json) -> str:
    owner = controller_of(pod)
    return str(owner["uid"] if owner else pod["metadata"]["uid"])


def _zone(node: Json) -> str:
    return str((node["metadata"].get("labels") or {}).get("topology.kubernetes.io/zone", ""))


def _free(nodes: Iterable[Json], pods: Iterable[Json]) -> dict[str, Counter[str]]:
    free = {n["metadata"]["name"]: allocatable(n) for n in nodes}
    for pod in pods:
        node = pod["spec"].get("nodeName")
        if node in free and pod["status"].get("phase") not in FINISHED:
            free[node].subtract(requests(pod["spec"]))
    return free


def obstacle(pod: Json, node: Json, free: Counter[str]) -> str:
    """Why the node does not take the pod, in the scheduler's words; '' where it does."""
    labels = node["metadata"].get("labels") or {}
    if any(c["type"] == "Ready" and c["status"] != "True" for c in node["status"].get("conditions") or ()):
        return "node(s) were not ready"
    if any(
        not tolerates(pod, taint) for taint in node["spec"].get("taints") or () if taint.get("effect") in HARD
    ):
        return "node(s) had untolerated taint(s)"
    if any(labels.get(k) != v for k, v in (pod["spec"].get("nodeSelector") or {}).items()) or not _affine(
        pod, labels
    ):
        return "node(s) didn't match Pod's node affinity/selector"
    short = [name for name, amount in requests(pod["spec"]).items() if free[name] < amount]
    return f"Insufficient {short[0]}" if short else ""


def tolerates(pod: Json, taint: Json) -> bool:
    """Whether one of the pod's tolerations covers the taint."""
    return any(_covers(t, taint) for t in pod["spec"].get("tolerations") or ())


def _covers(toleration: Json, taint: Json) -> bool:
    if toleration.get("effect", taint["effect"]) != taint["effect"]:
        return False
    if toleration.get("operator") == "Exists":
        return bool(toleration.get("key", taint["key"]) == taint["key"])
    return bool(
        toleration.get("key") == taint["key"] and toleration.get("value", "") == taint.get("value", "")
    )


def _affine(pod: Json, labels: Json) -> bool:
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    terms = (affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get("nodeSelectorTerms")
    if not terms:
        return True
    return any(all(r.matches(labels) for r in expressions(t.get("matchExpressions") or ())) for t in terms)


def _refuse(store: Store, pod: Json, nodes: list[Json], free: dict[str, Counter[str]], now: datetime) -> None:
    why = Counter(obstacle(pod, n, free[n["metadata"]["name"]]) for n in nodes)
    told = ", ".join(f"{count} {reason}" for reason, count in sorted(why.items()))
    message = (
        f"0/{len(nodes)} nodes are available: {told}." if nodes else "no nodes available to schedule pods"
    )
    conditions = pod["status"].get("conditions") or []
    if any(c["type"] == "PodScheduled" and c.get("message") == message for c in conditions):
        return
    refused = {
        "type": "PodScheduled",
        "status": "False",
        "lastProbeTime": None,
        "lastTransitionTime": rfc3339(now),
    }
    refused |= {"reason": "Unschedulable", "message": message}
    kept = [c for c in conditions if c["type"] != "PodScheduled"]
    store.put(PODS, pod | {"status": pod["status"] | {"conditions": [*kept, refused]}})
