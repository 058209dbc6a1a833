"""A process that serves a list of generated pods of about 10 kB, by pages, as an API server does."""

import http.server
import json
import multiprocessing
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any
from urllib.parse import parse_qs, urlsplit


def pod(number: int) -> dict[str, Any]:
    """A pod as real ones are: half of it bookkeeping, probes, mounts and conditions."""
    name = f"cart-7d9f8b6c5d-{number:05d}"
    return {
        "metadata": {
            "name": name,
            "generateName": "cart-7d9f8b6c5d-",
            "namespace": f"team-{number % 40}",
            "uid": f"3f6c1f0e-6a2b-4a54-9c1e-{number:012d}",
            "resourceVersion": str(100_000 + number),
            "creationTimestamp": "2026-11-30T08:00:00Z",
            "labels": {f"app.kubernetes.io/label-{index}": f"value-{number % 7}" for index in range(8)},
            "annotations": {f"example.com/annotation-{index}": "x" * 120 for index in range(6)},
            "ownerReferences": [_owner(number)],
            "managedFields": [_managed(index) for index in range(3)],
        },
        "spec": {
            "nodeName": f"node-{number % 200}",
            "containers": [_container(index) for index in range(3)],
            "volumes": [_volume(index) for index in range(4)],
            "tolerations": [_toleration(key) for key in ("not-ready", "unreachable")],
            "priority": 0,
            "restartPolicy": "Always",
            "serviceAccountName": "cart",
            "terminationGracePeriodSeconds": 30,
        },
        "status": {
            "phase": "Running",
            "qosClass": "Burstable",
            "startTime": "2026-11-30T08:00:01Z",
            "podIP": "10.1.2.3",
            "conditions": [
                _condition(kind) for kind in ("PodScheduled", "Initialized", "Ready", "ContainersReady")
            ],
            "containerStatuses": [_container_status(index) for index in range(3)],
        },
    }


def _owner(number: int) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "cart-7d9f8b6c5d",
        "uid": f"5a6c1f0e-6a2b-4a54-9c1e-{number % 100:012d}",
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _managed(index: int) -> dict[str, Any]:
    fields: dict[str, Any] = {f"f:field-{number}": {"f:value": {}, ".": {}} for number in range(24)}
    return {
        "manager": f"manager-{index}",
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-11-30T08:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": fields},
    }


def _container(index: int) -> dict[str, Any]:
    probe = {
        "httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"},
        "periodSeconds": 10,
        "timeoutSeconds": 1,
    }
    mount = {"name": f"volume-{index}", "mountPath": f"/data/{index}", "readOnly": True}
    return {
        "name": f"container-{index}",
        "image": "registry.example.com/team/cart:2026.11.30-abcdef",
        "args": [f"--flag-{number}=some-value" for number in range(6)],
        "env": [{"name": f"VARIABLE_{number}", "value": "some value of it"} for number in range(12)],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        "volumeMounts": [mount],
        "livenessProbe": probe,
        "readinessProbe": probe,
        "terminationMessagePath": "/dev/termination-log",
        "imagePullPolicy": "IfNotPresent",
    }


def _volume(index: int) -> dict[str, Any]:
    return {"name": f"volume-{index}", "configMap": {"name": f"config-{index}", "defaultMode": 420}}


def _toleration(key: str) -> dict[str, Any]:
    return {
        "key": f"node.kubernetes.io/{key}",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 300,
    }


def _condition(kind: str) -> dict[str, Any]:
    return {
        "type": kind,
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": "2026-11-30T08:00:05Z",
    }


def _container_status(index: int) -> dict[str, Any]:
    return {
        "name": f"container-{index}",
        "ready": True,
        "started": True,
        "restartCount": index,
        "image": "registry.example.com/team/cart:2026.11.30-abcdef",
        "imageID": "registry.example.com/team/cart@sha256:" + "a" * 64,
        "containerID": "containerd://" + "b" * 64,
        "state": {"running": {"startedAt": "2026-11-30T08:00:04Z"}},
        "lastState": {},
    }


@contextmanager
def running(count: int) -> Iterator[str]:
    """The server's address; its process ends with the block."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(count, there), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{here.recv()}"
    finally:
        process.terminate()
        process.join()


def serve(count: int, ready: Connection) -> None:
    """Serve so many pods until the process is ended."""
    items = [json.dumps(pod(number), separators=(",", ":")).encode() for number in range(count)]
    print(f"pods of {len(items[0])} bytes", file=sys.stderr, flush=True)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            query = parse_qs(urlsplit(self.path).query)
            start = int(query.get("continue", ["0"])[0])
            end = min(count, start + int(query.get("limit", [str(count)])[0]))
            following = str(end) if end < count else ""
            head = b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":"%b"},"items":['
            body = head % following.encode() + b",".join(items[start:end]) + b"]}"
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing: the benchmark's output is read by programs."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    ready.send(server.server_address[1])
    server.serve_forever()
