"""The sample cluster on a real control plane, for `make demo CLUSTER=kube`: the same nodes, workloads and budgets.

Nothing there can be made older than it is, so the policy must be more impatient (`impatient`); and nobody provides
volumes, so the claims of StatefulSets come with volumes that exist in name only.
"""

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deschedui.config import ROOT

from .apiserver.resources import CLAIMS, NODES, STATEFUL_SETS, Resource
from .apiserver.store import Json
from .controller import MAINTENANCE, TAINT
from .controlplane import ControlPlane, ControlPlaneError
from .samplecluster import WEEK, Made, objects

BUILD = ROOT / "tests" / "controlplane" / "build.sh"
RIGHTS = tuple(ROOT / "deploy" / "base" / name for name in ("serviceaccounts.yaml", "rbac.yaml"))
IMPATIENT_SECONDS = 120
SETTLED_SECONDS = 20.0
"""After so long the pods have their nodes, and a taint means something."""

_DRIVER = "demo.deschedui.io"


def impatient(policy: str) -> str:
    """The demo's policy for a cluster that is new: two minutes are old, a minute is young."""
    shorter = policy.replace(f"maxPodLifeTimeSeconds: {WEEK}", f"maxPodLifeTimeSeconds: {IMPATIENT_SECONDS}")
    return shorter.replace("minPodAge: 2m", "minPodAge: 1m")


@contextmanager
def sample_control_plane(folder: Path, kubeconfig: Path) -> Iterator[ControlPlane]:
    """Run a control plane with the sample in it and write `kubeconfig`: of deschedui's worker, with its rights alone.

    Builds the programs first where they are missing, which takes ten minutes. Raises ControlPlaneError, also where
    they cannot be built.
    """
    with ControlPlane(binaries(), folder, manifests=RIGHTS) as plane:
        fill(plane, objects())
        kubeconfig.touch(mode=0o600)
        kubeconfig.write_text(plane.kubeconfig("worker").read_text(encoding="utf-8"), encoding="utf-8")
        with _maintenance(plane):
            yield plane


def binaries() -> Path:
    """The folder of the programs, built where they are missing. Raises ControlPlaneError."""
    where = Path(_build("--where"))
    if not (where / ".complete").exists():
        print("building a control plane from Go modules: about ten minutes, once", flush=True)
        _build()
    return where


def _build(*arguments: str) -> str:
    try:
        built = subprocess.run(
            ["bash", str(BUILD), *arguments], stdout=subprocess.PIPE, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise ControlPlaneError(
            f"its programs cannot be built: {error}. CLUSTER=kube needs Go, bash and openssl; "
            "make demo without it needs none of them"
        ) from error
    return built.stdout.strip()


def fill(plane: ControlPlane, sample: Iterator[Made]) -> None:
    """Create the sample's objects, and what only a real cluster needs beside them."""
    for made in sample:
        if made.resource is STATEFUL_SETS:
            _provide_volumes(plane, made)
        plane.create(made.obj, _path(made.resource, made.namespace))
        if made.resource is NODES:
            name = made.obj["metadata"]["name"]
            plane.request("PATCH", f"/api/v1/nodes/{name}/status", {"status": made.obj["status"]})


def _path(resource: Resource, namespace: str) -> str:
    root = f"/apis/{resource.group_version}" if resource.group else f"/api/{resource.version}"
    return f"{root}/namespaces/{namespace}/{resource.plural}" if namespace else f"{root}/{resource.plural}"


def _provide_volumes(plane: ControlPlane, made: Made) -> None:
    """The claims that a StatefulSet's pods will ask for, bound already."""
    name, spec = made.obj["metadata"]["name"], made.obj["spec"]
    for template in spec.get("volumeClaimTemplates", ()):
        for number in range(spec["replicas"]):
            _provide_volume(
                plane, made.namespace, f"{template['metadata']['name']}-{name}-{number}", template["spec"]
            )


def _provide_volume(plane: ControlPlane, namespace: str, claim: str, wanted: Json) -> None:
    volume = f"pv-{namespace}-{claim}"
    size, shared = (
        wanted["resources"]["requests"],
        {k: wanted[k] for k in ("accessModes", "storageClassName")},
    )
    source = {"csi": {"driver": _DRIVER, "volumeHandle": volume}}
    bound = {"claimRef": {"kind": "PersistentVolumeClaim", "namespace": namespace, "name": claim}}
    plane.create(
        {"metadata": {"name": volume}, "spec": shared | source | bound | {"capacity": size}},
        "/api/v1/persistentvolumes",
    )
    meta = {"name": claim, "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    where = _path(CLAIMS, namespace)
    plane.create({"metadata": meta, "spec": wanted | {"volumeName": volume}}, where)
    status = {"phase": "Bound", "capacity": size, "accessModes": wanted["accessModes"]}
    plane.request("PATCH", f"{where}/{claim}/status", {"status": status})


@contextmanager
def _maintenance(plane: ControlPlane) -> Iterator[None]:
    """Move the maintenance taint from node to node while the block runs."""
    stopped = threading.Event()
    mover = threading.Thread(target=_move_taint, args=(plane, stopped), daemon=True)
    mover.start()
    try:
        yield
    finally:
        stopped.set()
        mover.join(10)


def _move_taint(plane: ControlPlane, stopped: threading.Event) -> None:
    place, pause = 0, SETTLED_SECONDS
    while not stopped.wait(pause):
        taint(plane, place)
        place, pause = place + 1, MAINTENANCE.total_seconds()


def taint(plane: ControlPlane, place: int) -> None:
    """Put the maintenance taint on one of the nodes for everybody, and take it off the others."""
    nodes = [
        m.obj["metadata"]["name"] for m in objects() if m.resource is NODES and not m.obj["spec"]["taints"]
    ]
    for number, name in enumerate(nodes):
        node = plane.request("GET", f"/api/v1/nodes/{name}")[1]
        others = [t for t in node["spec"].get("taints", ()) if t["key"] != TAINT["key"]]
        wanted = [*others, TAINT] if number == place % len(nodes) else others
        version = {"resourceVersion": node["metadata"]["resourceVersion"]}
        plane.request("PATCH", f"/api/v1/nodes/{name}", {"metadata": version, "spec": {"taints": wanted}})
