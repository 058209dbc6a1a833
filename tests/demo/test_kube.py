"""The sample on a real control plane."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from deschedui.demo.controlplane import ControlPlane
from deschedui.demo.kube import IMPATIENT_SECONDS, impatient, sample_control_plane, taint
from deschedui.descheduler.policy import load
from tests.real.controlplane import find_binaries


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    find_binaries()
    folder = tmp_path_factory.mktemp("kube")
    with sample_control_plane(folder / "plane", folder / "kubeconfig") as running:
        yield running


def ready(plane: ControlPlane) -> int:
    """How many pods are ready."""
    pods = plane.request("GET", "/api/v1/pods")[1]["items"]
    conditions = [c for p in pods for c in p["status"].get("conditions", ())]
    return sum((c["type"], c["status"]) == ("Ready", "True") for c in conditions)


@pytest.mark.real
def test_all_of_the_sample_runs(plane: ControlPlane) -> None:
    deadline = time.monotonic() + 90
    while (count := ready(plane)) < 140:
        assert time.monotonic() < deadline, f"only {count} pods are ready"
        time.sleep(0.5)


@pytest.mark.real
def test_maintenance_moves_from_node_to_node(plane: ControlPlane) -> None:
    marked = []
    for place in (0, 1):
        taint(plane, place)
        nodes = plane.request("GET", "/api/v1/nodes")[1]["items"]
        taints = {n["metadata"]["name"]: n["spec"].get("taints", ()) for n in nodes}
        marked.append([name for name, here in taints.items() if any(t["key"] == "maintenance" for t in here)])
    assert marked == [["eu-west-1a-general-1"], ["eu-west-1a-general-2"]]


def test_its_policy_is_impatient() -> None:
    text = (
        Path("deschedui/demo/policy.yaml")
        .read_text(encoding="utf-8")
        .replace("${DEMO_EXTENDER}", "127.0.0.1:1")
    )
    assert impatient(text).count(f"maxPodLifeTimeSeconds: {IMPATIENT_SECONDS}") == text.count("604800") > 0
    assert load(impatient(text)).errors == ()
