"""The control plane of the tests itself: it says what is missing, and leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deschedui.demo.controlplane import READY_AFTER, WEB, ControlPlane, ControlPlaneError
from tests.real.controlplane import ROOT, RealCluster, find_binaries

pytestmark = pytest.mark.real


def test_a_missing_program_is_named_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(ControlPlaneError, match="kube-apiserver"):
        ControlPlane(tmp_path, tmp_path / "state").start()
    assert not (tmp_path / "state").exists()


def test_a_program_that_ends_is_shown_with_its_log(tmp_path: Path) -> None:
    binaries = tmp_path / "bin"
    binaries.mkdir()
    for name in ("server", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"):
        script = binaries / name
        script.write_text("#!/bin/sh\necho the disk is full; exit 3\n", encoding="utf-8")
        script.chmod(0o755)
    with pytest.raises(ControlPlaneError, match="ended with 3:\nthe disk is full"):
        ControlPlane(binaries, tmp_path / "state").start()


STARTER = """
import os, pathlib, sys
from deschedui.demo.controlplane import ControlPlane
plane = ControlPlane(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])).start()
print(*(process.pid for _, process, _ in plane._processes), flush=True)
os._exit(9)
"""


def test_nothing_is_left_when_its_starter_is_killed(tmp_path: Path) -> None:
    arguments = [sys.executable, "-c", STARTER, str(find_binaries()), str(tmp_path)]
    started = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=False)

    pids = [int(pid) for pid in started.stdout.split()]

    assert len(pids) == 5, started.stderr
    deadline = time.monotonic() + 30
    while any(alive(pid) for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or ") Z " not in state.read_text(encoding="utf-8")


def test_an_account_has_no_more_rights_than_it_was_given(real: RealCluster) -> None:
    assert real.plane.request("GET", "/api/v1/secrets", account="worker")[0] == 403
    assert real.plane.request("DELETE", "/api/v1/namespaces/default/pods/x", account="worker")[0] == 403
    assert (
        real.plane.request("GET", "/api/v1/namespaces/deschedui/configmaps/other", account="worker")[0] == 403
    )


def test_tokens_are_readable_by_their_owner_alone(real: RealCluster) -> None:
    for path in (
        real.plane.kubeconfig("worker"),
        real.plane.folder / "tokens.csv",
        real.plane.folder / "sa.key",
    ):
        assert path.stat().st_mode & 0o077 == 0


def test_a_pod_takes_its_time_to_be_ready_where_it_says_so(real: RealCluster, shared_node: str) -> None:
    namespace = real.namespace()
    real.pod(namespace, "fast", nodeName=shared_node)
    real.pod(namespace, "slow", annotations={READY_AFTER: "3s"}, nodeName=shared_node)
    started = time.monotonic()
    assert [pod["metadata"]["name"] for pod in real.ready_pods(namespace, 1)] == ["fast"]
    real.ready_pods(namespace, 2)
    assert time.monotonic() - started > 2


def test_every_call_of_our_accounts_stands_in_the_audit_log(real: RealCluster) -> None:
    namespace = real.namespace()
    real.client("web").list_pdbs(namespace)
    calls = [entry for entry in real.audit() if entry.get("objectRef", {}).get("namespace") == namespace]
    assert [(entry["verb"], entry["user"]["username"]) for entry in calls] == [("list", WEB)]
