"""The status of every PodDisruptionBudget, as kube-controller-manager's disruption controller counts it."""

import math
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from .apiserver.admission import rfc3339
from .apiserver.eviction import allowed_condition, is_ready
from .apiserver.resources import BUDGETS, DAEMON_SETS, JOBS, REPLICA_SETS, STATEFUL_SETS, Resource
from .apiserver.selectors import object_selector
from .apiserver.store import Json, Store

FORGET_AFTER = timedelta(minutes=2)
_SCALED: dict[str, Resource] = {
    "ReplicaSet": REPLICA_SETS,
    "StatefulSet": STATEFUL_SETS,
    "DaemonSet": DAEMON_SETS,
    "Job": JOBS,
}


def reconcile(store: Store, pods: Iterable[Json], now: datetime) -> None:
    """Write the status of each budget that changed."""
    by_namespace: dict[str, list[Json]] = {}
    for pod in pods:
        by_namespace.setdefault(pod["metadata"]["namespace"], []).append(pod)
    for budget in store.all(BUDGETS):
        matches = object_selector(budget["spec"].get("selector"))
        here = by_namespace.get(budget["metadata"]["namespace"], ())
        covered = [p for p in here if matches(p["metadata"].get("labels") or {})]
        status = counted(store, budget, covered, now)
        if status != budget["status"]:
            store.put(BUDGETS, budget | {"status": status})


def counted(store: Store, budget: Json, pods: list[Json], now: datetime) -> Json:
    """The budget's status for the pods that it covers; unchanged where nothing changed."""
    old = budget["status"]
    expected, desired = _expected(store, budget["spec"], pods)
    disrupted = _still_disrupted(old.get("disruptedPods") or {}, pods, now)
    healthy = sum(_is_healthy(p, disrupted) for p in pods)
    allowed = max(0, healthy - desired) if expected > 0 else 0
    generation = budget["metadata"].get("generation", 1)
    status: Json = {
        "observedGeneration": generation,
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
    }
    status |= {"desiredHealthy": desired, "expectedPods": expected}
    if disrupted:
        status["disruptedPods"] = disrupted
    condition = allowed_condition(status, generation, rfc3339(now))
    known = (old.get("conditions") or [{}])[0]
    if known.get("status") == condition["status"]:
        condition["lastTransitionTime"] = known["lastTransitionTime"]
    return status | {"conditions": [condition]}


def _is_healthy(pod: Json, disrupted: Mapping[str, str]) -> bool:
    meta = pod["metadata"]
    return not meta.get("deletionTimestamp") and meta["name"] not in disrupted and is_ready(pod)


def _still_disrupted(disrupted: Mapping[str, str], pods: Iterable[Json], now: datetime) -> dict[str, str]:
    """Pods that were told to go and have not begun to: each counts as gone for two minutes."""
    present = {p["metadata"]["name"] for p in pods if not p["metadata"].get("deletionTimestamp")}
    recent = {n: t for n, t in disrupted.items() if datetime.fromisoformat(t) + FORGET_AFTER >= now}
    return {n: t for n, t in recent.items() if n in present}


def _expected(store: Store, spec: Json, pods: list[Json]) -> tuple[int, int]:
    """How many pods there should be, and how many of them healthy."""
    if "maxUnavailable" in spec:
        expected = _scale(store, pods)
        return expected, max(0, expected - _share(spec["maxUnavailable"], expected))
    least = spec.get("minAvailable", 0)
    expected = _scale(store, pods) if isinstance(least, str) else len(pods)
    return expected, _share(least, expected)


def _share(value: int | str, of: int) -> int:
    """A number, or a percentage rounded up."""
    if isinstance(value, int):
        return value
    return math.ceil(of * int(value.rstrip("%")) / 100)


def _scale(store: Store, pods: Iterable[Json]) -> int:
    """The replicas that the pods' controllers want, each controller once; pods without one do not count."""
    wanted: dict[str, int] = {}
    for pod in pods:
        owner = controller_of(pod)
        if owner and owner["kind"] in _SCALED:
            found = store.get(_SCALED[owner["kind"]], f"{pod['metadata']['namespace']}/{owner['name']}")
            spec = found.obj["spec"] if found else {}
            wanted[owner["uid"]] = spec.get("replicas", spec.get("parallelism", 0))
    return sum(wanted.values())


def controller_of(obj: Json) -> Json | None:
    """The owner reference that is marked as the controller."""
    references: list[Json] = obj["metadata"].get("ownerReferences") or []
    return next((r for r in references if r.get("controller")), None)
