"""The demo's cluster: three zones, a dozen nodes, about 150 pods that an SRE recognises, and always something wrong.

What is wrong, and with what it shows:

- pods older than the policy's seven days, more of them every minute (`WEEK` and the ages below);
- a maintenance taint that moves from node to node (`controller.py`);
- budgets that allow nothing (`payments`, `loki`), and a workload under two budgets (`search`), which cannot be evicted;
- crash loops, single replicas, workloads on node-tied volumes, a pod whose owner asked to be left alone;
- namespaces whose extender is away in one particular way (`policy.yaml`).
"""

import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

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


@dataclass(frozen=True, slots=True)
class App:
    """One workload. `cpu` in millicores and `memory` in MiB are requests; `ages` of its first pods are in seconds."""

    namespace: str
    name: str
    kind: Resource
    image: str
    replicas: int = 1
    cpu: int = 100
    memory: int = 128
    ages: tuple[int, ...] = ()
    ageing: bool = False
    priority: str = ""
    budget: Json | None = None
    pool: str = ""
    volume: str = ""
    annotations: dict[str, str] = field(default_factory=dict)
    restart: str = "Always"
    everywhere: bool = False


def _due(*seconds: int) -> tuple[int, ...]:
    """Ages of pods that become a week old in so many seconds; a negative number: since then."""
    return tuple(WEEK - s for s in seconds)


_NONE_MAY_GO: Json = {"maxUnavailable": 0}
_ONE_MAY_GO: Json = {"maxUnavailable": 1}

APPS = (
    # kube-system and what runs on every node
    App(
        "kube-system",
        "cilium",
        DAEMON_SETS,
        "quay.io/cilium/cilium:v1.19.1",
        everywhere=True,
        priority="system-node-critical",
    ),
    App(
        "kube-system",
        "ebs-csi-node",
        DAEMON_SETS,
        "ebs-csi-driver:v1.55.0",
        everywhere=True,
        cpu=30,
        memory=64,
    ),
    App(
        "monitoring",
        "node-exporter",
        DAEMON_SETS,
        "quay.io/prometheus/node-exporter:v1.10.2",
        everywhere=True,
        cpu=50,
        memory=48,
    ),
    App("logging", "fluent-bit", DAEMON_SETS, "fluent/fluent-bit:4.2.1", everywhere=True, cpu=50, memory=96),
    App(
        "kube-system",
        "coredns",
        DEPLOYMENTS,
        "registry.k8s.io/coredns/coredns:v1.14.0",
        3,
        priority="system-cluster-critical",
        budget=_ONE_MAY_GO,
    ),
    App("kube-system", "metrics-server", DEPLOYMENTS, "registry.k8s.io/metrics-server:v0.8.1", 2, memory=256),
    App(
        "kube-system",
        "cluster-autoscaler",
        DEPLOYMENTS,
        "registry.k8s.io/autoscaling/cluster-autoscaler:v1.36.0",
        memory=600,
    ),
    # the platform
    App(
        "ingress-nginx",
        "ingress-nginx-controller",
        DEPLOYMENTS,
        "registry.k8s.io/ingress-nginx/controller:v1.14.1",
        3,
        250,
        256,
        ages=_due(-3 * DAY, 100, 9000),
        budget=_ONE_MAY_GO,
        priority="platform",
    ),
    App(
        "ingress-nginx",
        "default-backend",
        DEPLOYMENTS,
        "registry.k8s.io/defaultbackend:1.5",
        1,
        10,
        16,
        ages=_due(-40 * DAY),
    ),
    App(
        "cert-manager",
        "cert-manager",
        DEPLOYMENTS,
        "quay.io/jetstack/cert-manager-controller:v1.19.2",
        1,
        ages=_due(-2 * DAY),
        priority="platform",
    ),
    App(
        "cert-manager",
        "cert-manager-webhook",
        DEPLOYMENTS,
        "quay.io/jetstack/cert-manager-webhook:v1.19.2",
        2,
    ),
    App(
        "cert-manager",
        "cert-manager-cainjector",
        DEPLOYMENTS,
        "quay.io/jetstack/cert-manager-cainjector:v1.19.2",
    ),
    App("external-dns", "external-dns", DEPLOYMENTS, "registry.k8s.io/external-dns/external-dns:v0.20.0"),
    App("argocd", "argocd-server", DEPLOYMENTS, "quay.io/argoproj/argocd:v3.3.0", 2, 200, 256),
    App("argocd", "argocd-repo-server", DEPLOYMENTS, "quay.io/argoproj/argocd:v3.3.0", 2, 200, 512),
    App(
        "argocd",
        "argocd-application-controller",
        STATEFUL_SETS,
        "quay.io/argoproj/argocd:v3.3.0",
        1,
        500,
        1024,
    ),
    # monitoring and logs
    App(
        "monitoring",
        "prometheus",
        STATEFUL_SETS,
        "quay.io/prometheus/prometheus:v3.8.1",
        2,
        500,
        4096,
        volume="200Gi",
        budget=_ONE_MAY_GO,
    ),
    App(
        "monitoring",
        "alertmanager",
        STATEFUL_SETS,
        "quay.io/prometheus/alertmanager:v0.31.0",
        3,
        50,
        64,
        ages=_due(-DAY, 5000, 8000),
    ),
    App(
        "monitoring",
        "grafana",
        DEPLOYMENTS,
        "grafana/grafana:12.3.1",
        1,
        200,
        512,
        ages=_due(-5 * DAY),
        ageing=True,
    ),
    App(
        "monitoring",
        "kube-state-metrics",
        DEPLOYMENTS,
        "registry.k8s.io/kube-state-metrics/kube-state-metrics:v2.17.0",
        1,
        ages=_due(40),
    ),
    App(
        "logging",
        "loki",
        STATEFUL_SETS,
        "grafana/loki:3.6.3",
        3,
        500,
        2048,
        volume="100Gi",
        ages=_due(-9 * DAY, -DAY, 600),
        budget=_NONE_MAY_GO,
    ),
    # the shop
    App(
        "shop",
        "frontend",
        DEPLOYMENTS,
        "registry.example/shop/frontend:2026.11.4",
        6,
        200,
        256,
        ages=_due(-600, 20, 60, 130, 4000),
        ageing=True,
        budget={"minAvailable": "50%"},
    ),
    App(
        "shop",
        "cart",
        DEPLOYMENTS,
        "registry.example/shop/cart:2026.11.2",
        4,
        150,
        256,
        ages=_due(-DAY, 80, 5000),
        budget=_ONE_MAY_GO,
    ),
    App(
        "shop",
        "checkout",
        DEPLOYMENTS,
        "registry.example/shop/checkout:2026.11.9",
        4,
        200,
        384,
        priority="business-critical",
        budget={"minAvailable": 3},
    ),
    App(
        "shop",
        "payments",
        DEPLOYMENTS,
        "registry.example/shop/payments:2026.10.1",
        3,
        200,
        384,
        ages=_due(-4 * DAY, -3 * DAY),
        priority="business-critical",
        budget=_NONE_MAY_GO,
    ),
    App(
        "shop",
        "catalog",
        DEPLOYMENTS,
        "registry.example/shop/catalog:2026.11.1",
        4,
        200,
        512,
        ages=_due(50, 170),
        ageing=True,
        budget={"minAvailable": "75%"},
    ),
    App(
        "shop",
        "search",
        DEPLOYMENTS,
        "registry.example/shop/search:2026.9.30",
        5,
        300,
        768,
        ages=_due(-12 * DAY, 240),
        budget={"minAvailable": 2},
    ),
    App(
        "shop",
        "recommendations",
        DEPLOYMENTS,
        "registry.example/shop/recommendations:2026.11.7",
        3,
        200,
        512,
        ages=_due(-70, 290),
        ageing=True,
    ),
    App("shop", "inventory", DEPLOYMENTS, "registry.example/shop/inventory:2026.11.3", 2),
    App(
        "shop",
        "orders",
        DEPLOYMENTS,
        "registry.example/shop/orders:2026.11.6",
        4,
        200,
        384,
        budget=_ONE_MAY_GO,
    ),
    App(
        "shop",
        "notifications",
        DEPLOYMENTS,
        "registry.example/shop/notifications:2026.11.1",
        2,
        ages=_due(-2 * DAY),
        annotations={CRASH_ANNOTATION: "120"},
    ),
    App("shop", "mailer", DEPLOYMENTS, "registry.example/shop/mailer:2026.8.1", 1, ages=_due(-30 * DAY)),
    # databases, on nodes of their own
    App(
        "databases",
        "postgres",
        STATEFUL_SETS,
        "postgres:18.1",
        3,
        1000,
        4096,
        volume="500Gi",
        pool="databases",
        ages=_due(-20 * DAY, -20 * DAY, -DAY),
        priority="business-critical",
        budget={"minAvailable": 2},
    ),
    App(
        "databases",
        "redis",
        STATEFUL_SETS,
        "redis:8.4",
        3,
        250,
        2048,
        volume="20Gi",
        pool="databases",
        ages=_due(-8 * DAY, 150),
        budget=_ONE_MAY_GO,
    ),
    App(
        "databases",
        "rabbitmq",
        STATEFUL_SETS,
        "rabbitmq:4.2",
        3,
        500,
        1024,
        volume="20Gi",
        pool="databases",
        budget=_ONE_MAY_GO,
    ),
    App(
        "databases",
        "opensearch",
        STATEFUL_SETS,
        "opensearchproject/opensearch:3.4.0",
        3,
        500,
        3072,
        volume="300Gi",
        pool="databases",
        annotations={"descheduler.alpha.kubernetes.io/prefer-no-eviction": "true"},
    ),
    # analytics: its extender fails, by workload, in every way that an answer can
    App(
        "analytics",
        "clickstream",
        DEPLOYMENTS,
        "registry.example/analytics/clickstream:7.2",
        1,
        300,
        512,
        ages=_due(-DAY),
    ),
    App(
        "analytics",
        "spark-driver",
        DEPLOYMENTS,
        "registry.example/analytics/spark:4.1",
        1,
        300,
        1024,
        ages=_due(-2 * DAY),
    ),
    App("analytics", "airflow-web", DEPLOYMENTS, "apache/airflow:3.1.5", 1, 200, 512, ages=_due(-3 * DAY)),
    App(
        "analytics",
        "jupyter",
        DEPLOYMENTS,
        "registry.example/analytics/jupyter:2026.6",
        1,
        200,
        1024,
        ages=_due(-4 * DAY),
    ),
    App(
        "analytics",
        "dbt-docs",
        DEPLOYMENTS,
        "registry.example/analytics/dbt-docs:1.11",
        1,
        ages=_due(-5 * DAY),
    ),
    App("analytics", "superset", DEPLOYMENTS, "apache/superset:6.0.0", 1, 200, 512, ages=_due(-6 * DAY)),
    App(
        "analytics",
        "nightly-report",
        JOBS,
        "registry.example/analytics/report:1.4",
        annotations={RUN_ANNOTATION: "900"},
        restart="Never",
    ),
    App(
        "databases",
        "postgres-backup",
        JOBS,
        "registry.example/ops/pgbackup:3.0",
        annotations={RUN_ANNOTATION: "240"},
        restart="Never",
    ),
    App(
        "shop",
        "image-resize",
        JOBS,
        "registry.example/shop/resize:1.9",
        2,
        annotations={RUN_ANNOTATION: "1800"},
        restart="OnFailure",
    ),
    # staging: nobody listens where its extender should be, so after five failures in a row nobody is asked any more
    *(
        App(
            "staging",
            name,
            DEPLOYMENTS,
            f"registry.example/shop/{name}:main",
            1,
            50,
            128,
            ages=_due(-n * 3600),
        )
        for n, name in enumerate(
            (
                "frontend",
                "cart",
                "checkout",
                "payments",
                "catalog",
                "search",
                "orders",
                "inventory",
                "mailer",
            ),
            1,
        )
    ),
    # one namespace whose extender's name does not resolve, one whose extender has a certificate that nobody signed
    App("legacy", "crm", DEPLOYMENTS, "registry.example/legacy/crm:4.7", 1, 200, 1024, ages=_due(-90 * DAY)),
    App("legacy", "fax-gateway", DEPLOYMENTS, "registry.example/legacy/fax:1.0", 1, ages=_due(-300 * DAY)),
    App(
        "identity",
        "keycloak",
        DEPLOYMENTS,
        "quay.io/keycloak/keycloak:26.5",
        2,
        300,
        768,
        ages=_due(-2 * DAY, 700),
        budget=_ONE_MAY_GO,
    ),
    App(
        "identity",
        "oauth2-proxy",
        DEPLOYMENTS,
        "quay.io/oauth2-proxy/oauth2-proxy:v7.14.0",
        2,
        ages=_due(-3 * DAY),
    ),
)
_SECOND_BUDGET = ("shop", "everything-in-web", "search")
_PRIORITIES = {"business-critical": 100_000, "platform": 50_000, "batch": -100}


def load(store: Store, *, empty: bool = False) -> None:
    """Fill a new store: what every cluster has and, unless `empty`, the sample, settled and aged."""
    namespaces = (
        SYSTEM_NAMESPACES if empty else (*SYSTEM_NAMESPACES, *dict.fromkeys(a.namespace for a in APPS))
    )
    for name in dict.fromkeys(namespaces):
        _add(store, NAMESPACES, {"metadata": {"name": name}})
    for name, value in (SYSTEM_PRIORITIES | ({} if empty else _PRIORITIES)).items():
        _add(store, PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})
    if empty:
        return
    for node in _nodes():
        _add(store, NODES, node, status=node["status"])
    for app in APPS:
        _deploy(store, app)
    namespace, name, covered = _SECOND_BUDGET
    _add(store, BUDGETS, _budget(name, {"maxUnavailable": "50%"}, covered), namespace)
    now = store.clock()
    Controller(store, drama=False).settle(now)
    _age(store, now)


def _add(
    store: Store, resource: Resource, obj: Json, namespace: str = "", status: Json | None = None
) -> None:
    made = admit(resource, obj, namespace, store)
    store.put(resource, made | ({"status": status} if status else {}))


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


def _deploy(store: Store, app: App) -> None:
    labels = {"app.kubernetes.io/name": app.name}
    annotations = app.annotations | ({AGE_ANNOTATION: str(WEEK - AGAIN)} if app.ageing else {})
    about: Json = {"labels": labels | ({"tier": "web"} if app.name == "frontend" else {})}
    if annotations:
        about["annotations"] = annotations
    spec: Json = {"template": {"metadata": about, "spec": _pod_spec(app)}}
    if app.kind is JOBS:
        spec |= {"parallelism": app.replicas, "completions": app.replicas}
    else:
        spec["selector"] = {"matchLabels": labels}
    if app.kind in {DEPLOYMENTS, STATEFUL_SETS}:
        spec["replicas"] = app.replicas
    if app.volume:
        spec["volumeClaimTemplates"] = [_claim(app.volume)]
    if app.kind is STATEFUL_SETS:
        spec["serviceName"] = app.name
    _add(store, app.kind, {"metadata": {"name": app.name, "labels": labels}, "spec": spec}, app.namespace)
    if app.budget:
        _add(store, BUDGETS, _budget(app.name, app.budget, app.name), app.namespace)


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


def _pod_spec(app: App) -> Json:
    requests = {"cpu": f"{app.cpu}m", "memory": f"{app.memory}Mi"}
    container = {"name": app.name, "image": app.image, "resources": {"requests": requests}}
    spec: Json = {"containers": [container], "restartPolicy": app.restart}
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
    ages = {(a.namespace, a.name): list(a.ages) for a in APPS}
    for pod in store.all(PODS):
        meta = pod["metadata"]
        wanted = ages.get((meta["namespace"], meta["labels"].get("app.kubernetes.io/name", "")), [])
        age = wanted.pop(0) if wanted else DAY // 2 + zlib.crc32(meta["name"].encode()) % (5 * DAY)
        job = meta["ownerReferences"][0]["kind"] == "Job"
        _born(store, PODS, pod, now - timedelta(seconds=60 if job else age))


def _born(store: Store, resource: Resource, obj: Json, moment: datetime) -> None:
    stamp = rfc3339(moment)
    made = obj | {"metadata": obj["metadata"] | {"creationTimestamp": stamp}}
    if resource is PODS:
        made["status"] = obj["status"] | {"startTime": stamp}
    store.put(resource, made)
