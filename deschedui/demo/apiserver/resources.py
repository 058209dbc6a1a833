"""The kinds that this server serves, in one table."""

from dataclasses import dataclass

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")

_NAME = ("metadata.name",)
_NAMES = ("metadata.name", "metadata.namespace")
_POD_FIELDS = (
    *_NAMES,
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.nominatedNodeName",
)
_REFERENCE = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind under one group and version. `stored_as` names the table that keeps it: events are served twice."""

    group: str
    plural: str
    kind: str
    namespaced: bool = True
    version: str = "v1"
    short: tuple[str, ...] = ()
    status: bool = True
    generation: bool = True
    returns_deleted: bool = False
    in_all: bool = False
    versioned: bool = False  # an update must say which version it replaces
    fields: tuple[str, ...] = _NAMES

    @property
    def singular(self) -> str:
        return self.kind.lower()

    @property
    def group_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """`pods`, `deployments.apps`: how the API server names a resource in its sentences."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified_kind(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind


PODS = Resource("", "pods", "Pod", short=("po",), returns_deleted=True, in_all=True, fields=_POD_FIELDS)
NODES = Resource(
    "",
    "nodes",
    "Node",
    namespaced=False,
    short=("no",),
    generation=False,
    fields=("metadata.name", "spec.unschedulable"),
)
NAMESPACES = Resource(
    "",
    "namespaces",
    "Namespace",
    namespaced=False,
    short=("ns",),
    generation=False,
    fields=("metadata.name", "status.phase"),
)
CLAIMS = Resource(
    "",
    "persistentvolumeclaims",
    "PersistentVolumeClaim",
    short=("pvc",),
    generation=False,
    returns_deleted=True,
)
EVENTS = Resource(
    "",
    "events",
    "Event",
    short=("ev",),
    status=False,
    generation=False,
    fields=(
        *_NAMES,
        *(f"involvedObject.{f}" for f in _REFERENCE),
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
)
NEW_EVENTS = Resource(
    "events.k8s.io",
    "events",
    "Event",
    short=("ev",),
    status=False,
    generation=False,
    fields=(*_NAMES, *(f"regarding.{f}" for f in _REFERENCE), "reason", "reportingController", "type"),
)
DEPLOYMENTS = Resource("apps", "deployments", "Deployment", short=("deploy",), in_all=True)
REPLICA_SETS = Resource("apps", "replicasets", "ReplicaSet", short=("rs",), in_all=True)
STATEFUL_SETS = Resource("apps", "statefulsets", "StatefulSet", short=("sts",), in_all=True)
DAEMON_SETS = Resource("apps", "daemonsets", "DaemonSet", short=("ds",), in_all=True)
JOBS = Resource("batch", "jobs", "Job", in_all=True)
BUDGETS = Resource("policy", "poddisruptionbudgets", "PodDisruptionBudget", short=("pdb",))
LEASES = Resource("coordination.k8s.io", "leases", "Lease", status=False, generation=False, versioned=True)
PRIORITY_CLASSES = Resource(
    "scheduling.k8s.io",
    "priorityclasses",
    "PriorityClass",
    namespaced=False,
    short=("pc",),
    status=False,
    fields=_NAME,
)

RESOURCES = (
    PODS,
    NODES,
    NAMESPACES,
    CLAIMS,
    EVENTS,
    NEW_EVENTS,
    DEPLOYMENTS,
    REPLICA_SETS,
    STATEFUL_SETS,
    DAEMON_SETS,
    JOBS,
    BUDGETS,
    LEASES,
    PRIORITY_CLASSES,
)
BY_PATH = {(r.group, r.version, r.plural): r for r in RESOURCES}
BY_KIND = {(r.group_version, r.kind): r for r in RESOURCES}
GROUPS = tuple(dict.fromkeys(r.group for r in RESOURCES if r.group))
