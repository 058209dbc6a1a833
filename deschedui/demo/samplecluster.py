"""The demo's cluster: three zones, a dozen nodes, about 150 pods that an SRE recognises, and always something wrong.

What is wrong, and with what it shows:

- pods older than the policy's seven days, more of them every minute (`sampleapps.yaml`);
- a maintenance taint that moves from node to node (`controller.py`);
- budgets that allow nothing (`payments`, `loki`), and a workload under two budgets (`search`), which cannot be evicted;
- crash loops, single replicas, workloads on node-tied volumes, a pod whose owner asked to be left alone;
- namespaces whose extender is away in one particular way (`policy.yaml`).
"""

import zlib
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from importlib.resources import files
from typing import NamedTuple

import msgspec
import yaml

from .apiserver.admission import SYSTEM_PRIORITIES, admit, rfc3339
from .apiserver.resources import (
    BUDGETS,
    CLAIMS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    REPLICA_SETS,
    STATEFUL_SETS,
    Resource,
)
from .apiserver.store import Json, Store
from .controller import Controller
from .kubelets import CRASH_ANNOTATION, RUN_ANNOTATION
from .workloads import AGE_ANNOTATION

DAY = 86_400
WEEK = 7 * DAY
"""The age from which `policy.yaml` wants pods gone, in seconds."""

AGAIN = 300
"""Pods of an ageing workload are due again this many seconds after their creation."""

SYSTEM_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
ZONES = ("eu-west-1a", "eu-west-1b", "eu-west-1c")


class App(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """One line of `sampleapps.yaml`, which says what the fields mean."""

    deployment: str = ""
    stateful_set: str = ""
    daemon_set: str = ""
    job: str = ""
    replicas: int = 1
    cpu: str = "100m"
    memory: str = "128Mi"
    due: tuple[str, ...] = ()
    ageing: bool = False
    priority: str = ""
    budget: Json | None = None
    pool: str = ""
    volume: str = ""
    everywhere: bool = False
    crashes: int = 0
    runs: int = 0
    annotations: dict[str, str] = {}

    @property
    def kind(self) -> Resource:
        kinds = ((self.stateful_set, STATEFUL_SETS), (self.daemon_set, DAEMON_SETS), (self.job, JOBS))
        return next((kind for image, kind in kinds if image), DEPLOYMENTS)

    @property
    def image(self) -> str:
        return self.deployment or self.stateful_set or self.daemon_set or self.job

    def pod_annotations(self) -> dict[str, str]:
        """What its pods say to the demo's controllers, and to a descheduler."""
        ours = {CRASH_ANNOTATION: self.crashes, RUN_ANNOTATION: self.runs}
        ours[AGE_ANNOTATION] = WEEK - AGAIN if self.ageing else 0
        return self.annotations | {name: str(value) for name, value in ours.items() if value}


def apps() -> dict[str, dict[str, App]]:
    """The workloads by namespace and name. Raises msgspec.ValidationError for a file that is wrong."""
    text = files("deschedui.demo").joinpath("sampleapps.yaml").read_bytes()
    return msgspec.convert(yaml.safe_load(text), dict[str, dict[str, App]])


def seconds(text: str) -> int:
    """`-3d`, `100s`, `2h`, `10m` in seconds. Raises ValueError or KeyError for anything else."""
    return int(text[:-1]) * {"s": 1, "m": 60, "h": 3600, "d": DAY}[text[-1]]


OURS = "deschedui"  # the namespace of our own Lease
_SECOND_BUDGET = ("shop", "everything-in-web", "search")
_PRIORITIES = {"business-critical": 100_000, "platform": 50_000, "batch": -100}


class Made(NamedTuple):
    """An object of the sample: its kind, its namespace ('' for none), and itself as a client would send it."""

    resource: Resource
    namespace: str
    obj: Json


def objects() -> Iterator[Made]:
    """Everything in the sample that somebody has to create, in an order that works; controllers do the rest."""
    found = apps()
    for name in (OURS, *found):
        if name not in SYSTEM_NAMESPACES:
            yield Made(NAMESPACES, "", {"metadata": {"name": name}})
    for name, value in _PRIORITIES.items():
        yield Made(PRIORITY_CLASSES, "", {"metadata": {"name": name}, "value": value})
    yield from (Made(NODES, "", node) for node in _nodes())
    for namespace, here in found.items():
        for name, app in here.items():
            yield Made(app.kind, namespace, _workload(name, app))
            if app.budget:
                yield Made(BUDGETS, namespace, _budget(name, app.budget, name))
    namespace, name, covered = _SECOND_BUDGET
    yield Made(BUDGETS, namespace, _budget(name, {"maxUnavailable": "50%"}, covered))


def load(store: Store, *, empty: bool = False) -> None:
    """Fill a new store: what every cluster has and, unless `empty`, the sample, settled and aged."""
    for name in SYSTEM_NAMESPACES:
        _add(store, NAMESPACES, {"metadata": {"name": name}})
    for name, value in SYSTEM_PRIORITIES.items():
        _add(store, PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})
    if empty:
        return
    for made in objects():
        _add(store, made.resource, made.obj, made.namespace)
    now = store.clock()
    Controller(store, drama=False).settle(now)
    _age(store, now)


def _add(store: Store, resource: Resource, obj: Json, namespace: str = "") -> None:
    made = admit(resource, obj, namespace, store)
    store.put(resource, made | ({"status": obj["status"]} if "status" in obj else {}))


def _nodes() -> Iterable[Json]:
    for zone in ZONES:
        for number, pool in enumerate(("general", "general", "general", "databases"), 1):
            name = f"{zone}-{pool}-{number}"
            cpu, memory = ("8", "32Gi") if pool == "general" else ("8", "64Gi")
            size = {"cpu": cpu, "memory": memory, "pods": "110", "ephemeral-storage": "100Gi"}
            taints = (
                [{"key": "dedicated", "value": pool, "effect": "NoSchedule"}] if pool != "general" else []
            )
            labels = {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "topology.kubernetes.io/region": "eu-west-1",
                "topology.kubernetes.io/zone": zone,
                "pool": pool,
            }
            status = {
                "capacity": size,
                "allocatable": size,
                "nodeInfo": {"kubeletVersion": "v1.37.2", "osImage": "Demo Linux"},
            }
            yield {"metadata": {"name": name, "labels": labels}, "spec": {"taints": taints}, "status": status}


def _workload(name: str, app: App) -> Json:
    labels = {"app.kubernetes.io/name": name}
    about: Json = {"labels": labels, "annotations": app.pod_annotations()}
    spec: Json = {"template": {"metadata": about, "spec": _pod_spec(name, app)}}
    if app.kind is JOBS:
        spec |= {"parallelism": app.replicas, "completions": app.replicas}
    else:
        spec["selector"] = {"matchLabels": labels}
    if app.kind in {DEPLOYMENTS, STATEFUL_SETS}:
        spec["replicas"] = app.replicas
    if app.volume:
        spec["volumeClaimTemplates"] = [_claim(app.volume)]
    if app.kind is STATEFUL_SETS:
        spec["serviceName"] = name
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


def _budget(name: str, terms: Json, covered: str) -> Json:
    selector = {"matchLabels": {"app.kubernetes.io/name": covered}}
    return {"metadata": {"name": name}, "spec": terms | {"selector": selector}}


def _claim(size: str) -> Json:
    wanted = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "gp3",
        "resources": {"requests": {"storage": size}},
    }
    return {"metadata": {"name": "data"}, "spec": wanted}


def _pod_spec(name: str, app: App) -> Json:
    requests = {"cpu": app.cpu, "memory": app.memory}
    container = {"name": name, "image": app.image, "resources": {"requests": requests}}
    spec: Json = {"containers": [container], "restartPolicy": "Never" if app.job else "Always"}
    if app.priority:
        spec["priorityClassName"] = app.priority
    if app.pool:
        spec["nodeSelector"] = {"pool": app.pool}
        spec["tolerations"] = [
            {"key": "dedicated", "operator": "Equal", "value": app.pool, "effect": "NoSchedule"}
        ]
    if app.everywhere:
        spec["tolerations"] = [{"operator": "Exists", "effect": "NoSchedule"}]
    return spec


def _age(store: Store, now: datetime) -> None:
    """Give everything a past: the cluster is a year old, pods days, and some exactly as old as their workload says."""
    for resource in (
        NAMESPACES,
        NODES,
        PRIORITY_CLASSES,
        DEPLOYMENTS,
        STATEFUL_SETS,
        DAEMON_SETS,
        REPLICA_SETS,
        BUDGETS,
        CLAIMS,
    ):
        for obj in store.all(resource):
            _born(store, resource, obj, now - timedelta(days=400))
    due = {
        (ns, n): [WEEK - seconds(d) for d in app.due]
        for ns, here in apps().items()
        for n, app in here.items()
    }
    for pod in store.all(PODS):
        meta = pod["metadata"]
        wanted = due.get((meta["namespace"], meta["labels"].get("app.kubernetes.io/name", "")), [])
        age = wanted.pop(0) if wanted else DAY // 2 + zlib.crc32(meta["name"].encode()) % (5 * DAY)
        job = meta["ownerReferences"][0]["kind"] == "Job"
        _born(store, PODS, pod, now - timedelta(seconds=60 if job else age))


def _born(store: Store, resource: Resource, obj: Json, moment: datetime) -> None:
    stamp = rfc3339(moment)
    made = obj | {"metadata": obj["metadata"] | {"creationTimestamp": stamp}}
    if resource is PODS:
        made["status"] = obj["status"] | {"startTime": stamp}
    store.put(resource, made)
