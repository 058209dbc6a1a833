"""One suite, two servers: the demo's, and a real kube-apiserver with its controllers, its scheduler and kwok."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from deschedui.demo.controlplane import ControlPlane
from tests.truth.server import Api, Namespace


@pytest.fixture(scope="session", params=["demo", pytest.param("real", marks=pytest.mark.real)])
def api(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """The server under test, without anything in it that a new cluster has not."""
    if request.param == "demo":
        yield from _demo(tmp_path_factory.mktemp("demo"))
    else:
        plane: ControlPlane = request.getfixturevalue("control_plane")
        yield Api(plane.kubeconfig("admin"), partial(_compact, plane))


def _demo(folder: Path) -> Iterator[Api]:
    kubeconfig, ready = folder / "kubeconfig", folder / "ready.json"
    command = [sys.executable, "-m", "deschedui.demo.apiserver", "--empty"]
    with subprocess.Popen([*command, "--kubeconfig", str(kubeconfig), "--ready-file", str(ready)]) as process:
        try:
            _wait_for(ready, process)
            yield Api(kubeconfig, lambda api: api.done("POST", "/demo/compact"))
        finally:
            process.terminate()
            process.wait(10)


def _compact(plane: ControlPlane, api: Api) -> None:
    """Tell etcd, through its JSON gateway, to forget what was before the newest list."""
    newest = api.get("/api/v1/pods?limit=1")["metadata"]["resourceVersion"]
    etcd = http.client.HTTPConnection("127.0.0.1", plane._ports["etcd"], timeout=10)
    etcd.request("POST", "/v3/kv/compaction", json.dumps({"revision": newest}))
    assert etcd.getresponse().status == 200
    etcd.close()


def _wait_for(ready: Path, process: subprocess.Popen[bytes]) -> None:
    while not ready.exists():
        try:
            process.wait(0.05)
        except subprocess.TimeoutExpired:
            continue
        pytest.fail(f"the demo's API server ended with {process.returncode}")


@pytest.fixture
def ns(api: Api) -> Namespace:
    """A namespace of its own for each test."""
    return api.namespace()


@pytest.fixture(scope="session")
def node(api: Api) -> str:
    """A node that a kubelet plays, for the tests that do not care which."""
    return api.node()
