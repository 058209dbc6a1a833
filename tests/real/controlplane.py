"""A control plane for a test session, and what tests want to do with it in a word."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from deschedui.demo.controlplane import PROGRAMS, ControlPlane
from deschedui.kube.budget import Budget
from deschedui.kube.client import ClusterClient
from deschedui.kube.config import ClusterConnection

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "tests" / "controlplane" / "build.sh"
RBAC = (ROOT / "deploy" / "base" / "serviceaccounts.yaml", ROOT / "deploy" / "base" / "rbac.yaml")

IN_CI = os.environ.get("CI", "") == "true"


def find_binaries() -> Path:
    """The folder of the built programs. Skips where they are missing; in CI it builds them, or fails."""
    where = _build("--where")
    if not (where / ".complete").exists() and IN_CI:
        where = _build()
    missing = [name for name in PROGRAMS if not (where / name).is_file()]
    if missing or not (where / ".complete").exists():
        stop = pytest.fail if IN_CI else pytest.skip
        stop(f"no control plane: {', '.join(missing) or 'the build'} missing; run {BUILD.relative_to(ROOT)}")
    return where


def _build(*args: str) -> Path:
    built = subprocess.run(["bash", str(BUILD), *args], capture_output=True, text=True, check=False)
    if built.returncode:
        pytest.fail(f"{BUILD.relative_to(ROOT)} failed: {built.stderr[-2000:]}")
    return Path(built.stdout.strip())


class RealCluster:
    """A running control plane, its client for each account, and shorthands for what tests set up."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self._numbers = itertools.count(1)

    def client(self, account: str = "worker", *, page_size: int = 500) -> ClusterClient:
        """A client with the rights of an account (``worker``, ``web``, ``admin``), in no hurry about its budget."""
        connection = ClusterConnection("real", kubeconfig=str(self.plane.kubeconfig(account)))
        budget = Budget(requests_per_second=1000)
        return ClusterClient.connect(connection, budget=budget, page_size=page_size)

    def forget_installation(self) -> None:
        """Take away the Lease of a product that worked here before; the next one makes its own."""
        path = "/apis/coordination.k8s.io/v1/namespaces/deschedui/leases/deschedui"
        assert self.plane.request("DELETE", path)[0] in {200, 404}

    def namespace(self, labels: Mapping[str, str] | None = None) -> str:
        """A new namespace of its own for a test; its name."""
        name = f"test-{next(self._numbers)}-{os.getpid()}"
        metadata = {"name": name, "labels": dict(labels or {})}
        self.plane.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        return name

    def node(self, *, cpu: str = "8", memory: str = "16Gi", labels: Mapping[str, str] | None = None) -> str:
        """A new, empty node with a name of its own."""
        name = f"node-{next(self._numbers)}-{os.getpid()}"
        all_labels = {"kubernetes.io/hostname": name, "type": "kwok", **(labels or {})}
        self.post("/api/v1/nodes", {"kind": "Node", "metadata": {"name": name, "labels": all_labels}})
        room = {"cpu": cpu, "memory": memory, "pods": "110"}
        status = {"status": {"allocatable": room, "capacity": room}}
        self.patch(f"/api/v1/nodes/{name}/status", status)
        return name

    def deployment(self, namespace: str, name: str, *, replicas: int = 1, node: str = "", **spec: Any) -> str:
        """A Deployment whose pods carry the label ``app``; on one node where that is given."""
        selector = {"nodeSelector": {"kubernetes.io/hostname": node}} if node else {}
        self.post(
            f"/apis/apps/v1/namespaces/{namespace}/deployments",
            {
                "metadata": {"name": name},
                "spec": {
                    "replicas": replicas,
                    "selector": {"matchLabels": {"app": name}},
                    "template": {
                        "metadata": {"labels": {"app": name}},
                        "spec": {"containers": [_container()], **selector, **spec},
                    },
                },
            },
        )
        return name

    def pod(
        self,
        namespace: str,
        name: str,
        *,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        **spec: Any,
    ) -> str:
        """A pod without an owner; its UID."""
        body = {
            "metadata": {"name": name, "labels": dict(labels or {}), "annotations": dict(annotations or {})},
            "spec": {"containers": [_container()], **spec},
        }
        return str(self.post(f"/api/v1/namespaces/{namespace}/pods", body)["metadata"]["uid"])

    def pdb(self, namespace: str, name: str, *, labels: Mapping[str, str], **spec: Any) -> None:
        """A PodDisruptionBudget, ``max_unavailable``/``min_available`` in Kubernetes' spelling; counted already."""
        path = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
        body = {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": dict(labels)}, **spec}}
        self.post(path, body)
        self.wait(lambda: "observedGeneration" in self.get(f"{path}/{name}").get("status", {}))

    def pods(self, namespace: str) -> list[dict[str, Any]]:
        """The pods of a namespace, as the API server has them."""
        items = self.get(f"/api/v1/namespaces/{namespace}/pods")["items"]
        return [dict(item) for item in items]

    def old_pods(self, namespace: str) -> None:
        """Wait until all pods are older than a second, which the tests' policies call too old."""
        self.wait(lambda: all(map(_is_old, self.pods(namespace))), "pods older than a second")

    def ready_pods(self, namespace: str, count: int) -> list[dict[str, Any]]:
        """Wait for exactly so many pods that are Ready and not ending, and return them."""
        self.wait(lambda: len(self._ready(namespace)) == count, f"{count} ready pods in {namespace}")
        return self._ready(namespace)

    def _ready(self, namespace: str) -> list[dict[str, Any]]:
        return [pod for pod in self.pods(namespace) if _is_ready(pod)]

    def audited(self, namespace: str) -> list[dict[str, Any]]:
        """What the API server's own audit log says about evictions in a namespace."""
        about = [entry for entry in self.audit() if entry.get("objectRef", {}).get("namespace") == namespace]
        return [entry for entry in about if entry["objectRef"].get("subresource") == "eviction"]

    def audit(self, since: int = 0) -> list[dict[str, Any]]:
        """The API server's audit log from a byte on: all evictions, and every call of our accounts."""
        with self.plane.audit_log.open("rb") as log:
            log.seek(since)
            return [json.loads(line) for line in log if line.endswith(b"\n")]

    @contextmanager
    def webhook(self, configuration: dict[str, Any]) -> Iterator[None]:
        """A ValidatingWebhookConfiguration, for as long as the block runs."""
        path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
        self.post(path, configuration)
        try:
            yield
        finally:
            self.plane.request("DELETE", f"{path}/{configuration['metadata']['name']}")

    def get(self, path: str) -> dict[str, Any]:
        """Read as admin."""
        return self._call("GET", path)

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Create as admin."""
        return self._call("POST", path, body)

    def patch(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Merge-patch as admin."""
        return self._call("PATCH", path, body)

    def delete(self, path: str) -> None:
        """Delete as admin."""
        self._call("DELETE", path)

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        status, answer = self.plane.request(method, path, body)
        assert status < 300, f"{method} {path}: {status} {answer}"
        return dict(answer)

    def wait(self, ready: Callable[[], object], what: str = "it", seconds: float = 30) -> None:
        """Wait until something holds."""
        deadline = time.monotonic() + seconds
        while not ready():
            assert time.monotonic() < deadline, f"{what} did not come true within {seconds:g} s"
            time.sleep(0.1)


def _container() -> dict[str, Any]:
    return {
        "name": "main",
        "image": "registry.example/app:1",
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
        "env": [{"name": "PASSWORD", "value": "hunter2"}],
    }


def _is_old(pod: Mapping[str, Any]) -> bool:
    created = datetime.fromisoformat(pod["metadata"]["creationTimestamp"])
    return datetime.now(UTC) - created > timedelta(seconds=2)


def _is_ready(pod: Mapping[str, Any]) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    ready = any(found["type"] == "Ready" and found["status"] == "True" for found in conditions)
    return ready and "deletionTimestamp" not in pod["metadata"]
