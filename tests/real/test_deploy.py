"""``deploy`` is what it says: a real API server takes every object, Pod Security included, without a warning."""

from __future__ import annotations

import copy
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.urls import resolve

from deschedui.config import PREFIX, ConfigurationError, Environment, load
from tests.real.controlplane import ROOT, RealCluster

BASE = ROOT / "deploy" / "base"
KUBECTL = Path(sys.executable).parent / "kubectl"

Object = dict[str, Any]


def render(folder: Path) -> str:
    done = subprocess.run([KUBECTL, "kustomize", folder], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def rendered() -> str:
    """The overlay with everything in it."""
    return render(BASE.parent / "network")


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
    namespace = real.namespace(namespace_labels(objects))
    for number, spec in enumerate(pod_specs(objects)):
        pod = {"metadata": {"name": f"pod-{number}"}, "spec": {**spec, "serviceAccountName": ""}}
        real.post(f"/api/v1/namespaces/{namespace}/pods?dryRun=All", pod)


def root(spec: Object) -> None:
    spec["securityContext"].update(runAsNonRoot=False, runAsUser=0)


def unconfined(spec: Object) -> None:
    del spec["securityContext"]["seccompProfile"]


def escalating(spec: Object) -> None:
    spec["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True


def capable(spec: Object) -> None:
    spec["containers"][0]["securityContext"]["capabilities"] = {"add": ["NET_RAW"]}


def careless_at_its_start(spec: Object) -> None:
    del spec["initContainers"][0]["securityContext"]


def on_the_nodes_disk(spec: Object) -> None:
    spec["volumes"].append({"name": "host", "hostPath": {"path": "/"}})


def in_the_nodes_network(spec: Object) -> None:
    spec["hostNetwork"] = True


LOOSER = [
    root,
    unconfined,
    escalating,
    capable,
    careless_at_its_start,
    on_the_nodes_disk,
    in_the_nodes_network,
]


@pytest.mark.real
@pytest.mark.parametrize("loosen", LOOSER)
def test_a_looser_copy_of_its_pods_is_refused_there(
    real: RealCluster, objects: list[Object], loosen: Callable[[Object], None]
) -> None:
    namespace = real.namespace(namespace_labels(objects))
    spec = {**copy.deepcopy(next(pod_specs(objects))), "serviceAccountName": ""}
    pods = f"/api/v1/namespaces/{namespace}/pods?dryRun=All&fieldValidation=Strict"
    real.post(pods, {"metadata": {"name": "as-it-is"}, "spec": spec})
    loosen(spec)
    status, answer = real.plane.request("POST", pods, {"metadata": {"name": "looser"}, "spec": spec})
    assert (status, "restricted" in answer["message"]) == (403, True)


def namespace_labels(objects: list[Object]) -> dict[str, str]:
    (namespace,) = [each for each in objects if each["kind"] == "Namespace"]
    labels: dict[str, str] = namespace["metadata"]["labels"]
    return {name: value for name, value in labels.items() if name.startswith("pod-security")}


def test_the_namespace_asks_for_the_restricted_standard(objects: list[Object]) -> None:
    assert namespace_labels(objects)["pod-security.kubernetes.io/enforce"] == "restricted"


def test_every_variable_is_one_that_deschedui_reads(objects: list[Object]) -> None:
    known = {f"{PREFIX}{name.upper()}" for name in Environment.model_fields}
    assert set(config_of(objects)) <= known | {f"{variable}_FILE" for variable in known}


def config_of(objects: list[Object]) -> dict[str, str]:
    data: dict[str, str] = next(
        each["data"]
        for each in objects
        if each["kind"] == "ConfigMap" and each["metadata"]["name"] == "deschedui"
    )
    return data


def test_secrets_are_files_and_stand_in_no_environment(objects: list[Object]) -> None:
    secret = yaml.safe_load((BASE / "secret.example.yaml").read_text(encoding="utf-8"))
    files = {value for name, value in config_of(objects).items() if name.endswith("_FILE")}
    paths = {f"/etc/deschedui/secret/{key}" for key in secret["stringData"]}
    assert paths == {path for path in files if "/secret/" in path}
    for container in containers(objects):
        assert container.get("env", []) == []
        assert {source["configMapRef"]["name"] for source in container["envFrom"]} == {"deschedui"}


def test_its_group_and_nobody_else_reads_the_secrets_files(objects: list[Object]) -> None:
    for spec in pod_specs(objects):
        (volume,) = [volume["secret"] for volume in spec["volumes"] if "secret" in volume]
        assert volume == {"secretName": "deschedui", "defaultMode": 0o440}
        assert spec["securityContext"]["fsGroup"] == spec["securityContext"]["runAsGroup"] == 10001


def test_the_example_of_the_secret_cannot_be_used_as_it_is(objects: list[Object]) -> None:
    secret = yaml.safe_load((BASE / "secret.example.yaml").read_text(encoding="utf-8"))
    environment = {
        f"{PREFIX}{name.upper().replace('-', '_')}": value for name, value in secret["stringData"].items()
    }
    with pytest.raises(ConfigurationError) as refused:
        load(environment)
    assert {"DESCHEDUI_SECRET_KEY", "DESCHEDUI_INSTALLATION_ID"} <= set(
        re.findall("DESCHEDUI_[A-Z_]+", str(refused.value))
    )


def test_every_reference_has_its_object(objects: list[Object]) -> None:
    there = {(each["kind"], each["metadata"]["name"]) for each in objects}
    for spec in pod_specs(objects):
        assert ("ServiceAccount", spec["serviceAccountName"]) in there
        for volume in spec["volumes"]:
            assert "configMap" not in volume or ("ConfigMap", volume["configMap"]["name"]) in there


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


def test_callers_find_a_door_also_while_the_database_is_away(objects: list[Object]) -> None:
    """Web is not ready then; a caller with `ignorable: true` that finds nobody evicts."""
    services = {each["metadata"]["name"]: each["spec"] for each in objects if each["kind"] == "Service"}
    assert services["deschedui-doors"]["publishNotReadyAddresses"] is True
    assert services["deschedui-doors"]["selector"] == services["deschedui-web"]["selector"]
    config = next(
        each["data"]
        for each in objects
        if each["kind"] == "ConfigMap" and "DESCHEDUI_PUBLIC_URL" in each["data"]
    )
    assert {"deschedui-doors", "deschedui-doors.deschedui"} <= set(
        config["DESCHEDUI_ALLOWED_HOSTS"].split(",")
    )


def test_only_web_and_worker_get_a_token(objects: list[Object]) -> None:
    mounted = {
        spec["serviceAccountName"]: spec["automountServiceAccountToken"] for spec in pod_specs(objects)
    }
    assert mounted == {
        "deschedui-web": True,
        "deschedui-worker": True,
        "deschedui-beat": False,
        "deschedui-migrate": False,
    }
    accounts = [each for each in objects if each["kind"] == "ServiceAccount"]
    assert {each["automountServiceAccountToken"] for each in accounts} == {False}


def test_every_container_says_what_it_needs_and_at_most_takes(objects: list[Object]) -> None:
    for container in containers(objects):
        assert set(container["resources"]["requests"]) == {"cpu", "memory"}
        assert "memory" in container["resources"]["limits"]


def test_only_who_reads_the_policy_has_it(objects: list[Object]) -> None:
    readers = {
        container["name"]
        for container in containers(objects)
        if "policy" in {mount["name"] for mount in container["volumeMounts"]}
    }
    assert readers == {"worker", "migrate"}


def test_nothing_comes_in_or_goes_out_that_no_policy_names(objects: list[Object]) -> None:
    policies = {each["metadata"]["name"]: each["spec"] for each in objects if each["kind"] == "NetworkPolicy"}
    assert policies["deny-all"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    assert [name for name, spec in policies.items() if "ingress" in spec] == ["to-web"]
    for name, spec in policies.items():
        for rule in (*spec.get("ingress", ()), *spec.get("egress", ())):
            assert rule.get("from") or rule.get("to"), f"{name} is open to everybody"


def test_the_clouds_credentials_of_the_node_are_out_of_reach(objects: list[Object]) -> None:
    blocks = [
        peer["ipBlock"]
        for each in objects
        if each["kind"] == "NetworkPolicy"
        for rule in each["spec"].get("egress", ())
        for peer in rule["to"]
        if "ipBlock" in peer
    ]
    assert "169.254.0.0/16" in next(block["except"] for block in blocks if block["cidr"] == "0.0.0.0/0")


def test_the_base_stands_by_itself_without_network_policies() -> None:
    kinds = {each["kind"] for each in yaml.safe_load_all(render(BASE))}
    assert {"Deployment", "PodDisruptionBudget"} <= kinds
    assert "NetworkPolicy" not in kinds


def test_one_of_two_web_pods_stays_while_a_node_is_drained(objects: list[Object]) -> None:
    (budget,) = [each["spec"] for each in objects if each["kind"] == "PodDisruptionBudget"]
    (web,) = [
        each
        for each in objects
        if each["kind"] == "Deployment" and each["metadata"]["name"] == "deschedui-web"
    ]
    assert (web["spec"]["replicas"], budget["maxUnavailable"]) == (2, 1)
    assert budget["selector"] == web["spec"]["selector"]


def test_every_container_can_write_nothing_but_tmp(objects: list[Object]) -> None:
    for container in containers(objects):
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert {m["mountPath"] for m in container["volumeMounts"] if not m.get("readOnly")} == {"/tmp"}


# --- the image -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dockerfile() -> list[str]:
    """Its instructions, each on one line."""
    text = (BASE.parent / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def test_the_image_runs_as_the_user_that_the_pods_name(dockerfile: list[str], objects: list[Object]) -> None:
    users = [line.split()[1] for line in dockerfile if line.startswith("USER ")]
    context = next(pod_specs(objects))["securityContext"]
    assert users == [f"{context['runAsUser']}:{context['runAsGroup']}"]
    assert dockerfile.index(f"USER {users[0]}") > max(
        i for i, line in enumerate(dockerfile) if line.startswith("RUN")
    )


def test_the_image_starts_web_as_the_deployment_does(dockerfile: list[str], objects: list[Object]) -> None:
    (command,) = [json.loads(line.removeprefix("CMD ")) for line in dockerfile if line.startswith("CMD ")]
    web = next(container for container in containers(objects) if container["name"] == "web")
    assert set(command) <= set(web["command"])
    assert "decisions.doors.protocol:DoorProtocol" in command


def test_the_base_image_is_named_with_its_release(dockerfile: list[str]) -> None:
    (argument,) = [line.partition("=")[2] for line in dockerfile if line.startswith("ARG PYTHON=")]
    assert re.fullmatch(r"python:3\.\d+-slim-[a-z]+", argument)
    assert {line.split()[1] for line in dockerfile if line.startswith("FROM ")} == {"${PYTHON}"}


def test_the_image_takes_no_more_than_the_program(dockerfile: list[str]) -> None:
    copied = [line.split()[1:-1] for line in dockerfile if line.startswith("COPY ") and "--from" not in line]
    assert {source for sources in copied for source in sources} == {
        "requirements.lock",
        "manage.py",
        "pyproject.toml",
        "deschedui",
        "decisions",
        "templates",
    }
    assert not [
        line
        for line in dockerfile
        if line.startswith(("ENV", "ARG")) and re.search("KEY|PASS|TOKEN|SECRET", line)
    ]


def test_the_files_of_pages_can_be_collected_as_the_image_does(dockerfile: list[str], tmp_path: Path) -> None:
    line = next(line for line in dockerfile if line.startswith("RUN") and "collectstatic" in line)
    words = shlex.split(line.removeprefix("RUN "))
    variables = dict(word.split("=", 1) for word in words if word.startswith(PREFIX))
    done = subprocess.run(
        [sys.executable, "manage.py", "collectstatic", "--noinput"],
        cwd=ROOT,
        env={**variables, f"{PREFIX}STATIC_ROOT": str(tmp_path), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
