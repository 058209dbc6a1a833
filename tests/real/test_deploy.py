"""``deploy/base`` is what it says: a real API server takes every object, Pod Security included, without a warning."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.urls import resolve

from deschedui.config import PREFIX, Environment
from tests.real.controlplane import ROOT, RealCluster

BASE = ROOT / "deploy" / "base"
KUBECTL = Path(sys.executable).parent / "kubectl"

Object = dict[str, Any]


@pytest.fixture(scope="module")
def rendered() -> str:
    done = subprocess.run([KUBECTL, "kustomize", BASE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def objects(rendered: str) -> list[Object]:
    return list(yaml.safe_load_all(rendered))


def pod_specs(objects: list[Object]) -> Iterator[Object]:
    for each in objects:
        if each["kind"] in {"Deployment", "Job"}:
            yield each["spec"]["template"]["spec"]


def containers(objects: list[Object]) -> Iterator[Object]:
    for spec in pod_specs(objects):
        yield from (*spec.get("initContainers", ()), *spec["containers"])


@pytest.mark.real
def test_the_api_server_takes_every_object_without_a_warning(real: RealCluster, rendered: str) -> None:
    arguments = [
        "apply",
        "--server-side",
        "--dry-run=server",
        "--validate=strict",
        "--warnings-as-errors",
        "-f",
        "-",
    ]
    done = subprocess.run(
        [KUBECTL, "--kubeconfig", real.plane.kubeconfig("admin"), *arguments, "--force-conflicts"],
        input=rendered,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    assert "deployment.apps/deschedui-web serverside-applied" in done.stdout


@pytest.mark.real
def test_its_pods_run_where_pod_security_is_restricted(real: RealCluster, objects: list[Object]) -> None:
    namespace = real.namespace({"pod-security.kubernetes.io/enforce": "restricted"})
    for number, spec in enumerate(pod_specs(objects)):
        pod = {"metadata": {"name": f"pod-{number}"}, "spec": {**spec, "serviceAccountName": ""}}
        real.post(f"/api/v1/namespaces/{namespace}/pods?dryRun=All", pod)


@pytest.mark.real
def test_a_pod_without_such_care_is_refused_there(real: RealCluster) -> None:
    namespace = real.namespace({"pod-security.kubernetes.io/enforce": "restricted"})
    pod = {"metadata": {"name": "careless"}, "spec": {"containers": [{"name": "main", "image": "app"}]}}
    status, answer = real.plane.request("POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", pod)
    assert status == 403
    assert "restricted" in answer["message"]


def test_the_namespace_asks_for_the_restricted_standard(objects: list[Object]) -> None:
    (namespace,) = [each for each in objects if each["kind"] == "Namespace"]
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


def test_every_variable_is_one_that_deschedui_reads(objects: list[Object]) -> None:
    known = {f"{PREFIX}{name.upper()}" for name in Environment.model_fields}
    config = next(
        each for each in objects if each["kind"] == "ConfigMap" and each["metadata"]["name"] == "deschedui"
    )
    assert set(config["data"]) <= known
    for container in containers(objects):
        assert {variable["name"] for variable in container["env"]} <= known


def test_every_reference_has_its_object(objects: list[Object]) -> None:
    there = {(each["kind"], each["metadata"]["name"]) for each in objects}
    secret = yaml.safe_load((BASE / "secret.example.yaml").read_text(encoding="utf-8"))
    for container in containers(objects):
        for source in container["envFrom"]:
            assert ("ConfigMap", source["configMapRef"]["name"]) in there
        for variable in container["env"]:
            reference = variable["valueFrom"]["secretKeyRef"]
            assert reference["name"] == secret["metadata"]["name"]
            assert reference["key"] in secret["stringData"]
    for spec in pod_specs(objects):
        if "serviceAccountName" in spec:
            assert ("ServiceAccount", spec["serviceAccountName"]) in there


def test_every_pod_runs_the_same_image(objects: list[Object]) -> None:
    assert {container["image"] for container in containers(objects)} == {"deschedui:latest"}


def test_the_probes_ask_for_pages_that_exist(objects: list[Object]) -> None:
    paths = [
        container[probe]["httpGet"]["path"]
        for container in containers(objects)
        for probe in ("readinessProbe", "livenessProbe", "startupProbe")
        if "httpGet" in container.get(probe, {})
    ]
    assert {resolve(path).view_name for path in paths} == {"healthz", "livez"}


def test_only_web_and_worker_get_a_token(objects: list[Object]) -> None:
    accounts = {
        spec.get("serviceAccountName", ""): spec.get("automountServiceAccountToken")
        for spec in pod_specs(objects)
    }
    assert accounts == {"deschedui-web": None, "deschedui-worker": None, "": False}


def test_every_container_can_write_nothing_but_tmp(objects: list[Object]) -> None:
    for container in containers(objects):
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert {m["mountPath"] for m in container["volumeMounts"] if not m.get("readOnly")} == {"/tmp"}
