"""A Celery worker of its own process over a real Redis, against the demo's API server: messages and workers get lost.

The worker shares this test's database (SQLite, or PostgreSQL with ``DESCHEDUI_TEST_DATABASE_URL``).
"""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from decisions.models import Cluster, Decision, Event, Eviction, Role
from decisions.services import heartbeats, verdicts
from decisions.services.actors import Actor
from tests.builders import make_cluster, make_decision, make_user
from tests.real.services import RedisServer, redis_server

__all__ = ["redis_server"]

pytestmark = [pytest.mark.real, pytest.mark.django_db(transaction=True)]
ROOT = Path(settings.BASE_DIR)
WORKER = "w1@test"
SECONDS = 40.0


def wait_until(
    holds: Callable[[], object], what: str, *, log: Path | None = None, seconds: float = SECONDS
) -> None:
    """Poll until it holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        words = log.read_text(encoding="utf-8", errors="replace")[-3000:] if log and log.exists() else ""
        assert time.monotonic() < deadline, f"not in {seconds:.0f} s: {what}\n{words}"
        time.sleep(0.1)


# --- the demo's API server --------------------------------------------------------------------------------


class ApiServer:
    """The demo's API server in a process of its own, with one Deployment of three pods."""

    def __init__(self, folder: Path) -> None:
        self.kubeconfig, ready = folder / "kubeconfig", folder / "ready.json"
        self._stalls = folder / "stalls"
        argv = ["-m", "tests.real.stalling_apiserver", "--empty", "--kubeconfig", str(self.kubeconfig)]
        with (folder / "apiserver.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, *argv, "--ready-file", str(ready)],
                cwd=ROOT,
                env={**os.environ, "STALLS_WHILE": str(self._stalls)},
                stdout=log,
                stderr=log,
            )
        wait_until(ready.exists, "the API server listens", log=folder / "apiserver.log")
        said = json.loads(ready.read_text())
        context = ssl.create_default_context(cadata=_authority(said["certificateAuthority"]))
        headers = {"Authorization": f"Bearer {said['token']}"}
        self.http = httpx.Client(base_url=said["url"], headers=headers, verify=context, timeout=20)

    def deploy(self, replicas: int = 3) -> None:
        """A Deployment, and wait until its pods are Ready."""
        labels = {"app": "web"}
        template = {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "web", "image": "registry.example/web:1"}]},
        }
        for name in ("shop", "deschedui"):
            self._post("/api/v1/namespaces", {"metadata": {"name": name}})
        self._post("/api/v1/nodes", _node("n1"))
        self._post("/api/v1/nodes", _node("n2"))
        self._post(
            "/apis/apps/v1/namespaces/shop/deployments",
            {
                "metadata": {"name": "web", "namespace": "shop"},
                "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
            },
        )
        wait_until(lambda: len(self.ready()) == replicas, "the pods are Ready")

    def _post(self, path: str, body: dict[str, Any]) -> None:
        answer = self.http.post(path, json=body)
        assert answer.status_code in {200, 201, 409}, f"{path}: {answer.status_code} {answer.text}"

    def pods(self) -> list[dict[str, Any]]:
        """The pods."""
        return list(self.http.get("/api/v1/namespaces/shop/pods").json()["items"])

    def ready(self) -> list[dict[str, Any]]:
        """Those that are Ready and not ending."""
        return [pod for pod in self.pods() if _is_ready(pod) and "deletionTimestamp" not in pod["metadata"]]

    def uids(self) -> set[str]:
        """Their UIDs."""
        return {pod["metadata"]["uid"] for pod in self.pods()}

    def stall(self) -> None:
        """Let nobody read a pod: a claim is made, and nothing comes of it."""
        self._stalls.touch()

    def go_on(self) -> None:
        """Answer again."""
        self._stalls.unlink()

    def end(self) -> None:
        """End it."""
        self.http.close()
        self.process.terminate()
        self.process.wait(10)


def _authority(given: str) -> str:
    return given if given.startswith("-----BEGIN") else Path(given).read_text(encoding="utf-8")


def _node(name: str) -> dict[str, Any]:
    room = {"cpu": "8", "memory": "16Gi", "pods": "50"}
    conditions = [{"type": "Ready", "status": "True"}]
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": room, "capacity": room, "conditions": conditions},
    }


def _is_ready(pod: dict[str, Any]) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)


@pytest.fixture
def api(tmp_path: Path) -> Iterator[ApiServer]:
    """The API server with its Deployment."""
    server = ApiServer(tmp_path)
    try:
        server.deploy()
        yield server
    finally:
        server.end()


# --- the worker -------------------------------------------------------------------------------------------


def database_url() -> str:
    """This test's database, for another process."""
    given = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{given['NAME']}"
    who = quote(given["USER"]) + (f":{quote(given['PASSWORD'])}" if given["PASSWORD"] else "")
    return f"postgresql://{who}@{given['HOST']}:{given['PORT']}/{given['NAME']}"


@contextmanager
def worker(redis: RedisServer, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A worker with beat, in a session of its own."""
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "deschedui.settings",
        "DESCHEDUI_SECRET_KEY": "for-tests-only-and-long-enough-not-to-be-warned-about",
        "DESCHEDUI_DATABASE_URL": database_url(),
        "DESCHEDUI_BROKER_URL": redis.url,
        "DESCHEDUI_TICK_SECONDS": "0.3",
    }
    argv = ["-m", "celery", "-A", "deschedui", "worker", "-B", "-P", "threads", "-c", "4", "-n", WORKER]
    with (folder / "worker.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, *argv, "--schedule", str(folder / "schedule"), "--loglevel", "INFO"],
            cwd=ROOT,
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)


def probe(redis: RedisServer, *, within: float) -> bool:
    """The worker's liveness probe, as the kubelet runs it."""
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "deschedui.settings",
        "DESCHEDUI_SECRET_KEY": "for-tests-only-and-long-enough-not-to-be-warned-about",
        "DESCHEDUI_DATABASE_URL": database_url(),
        "DESCHEDUI_BROKER_URL": redis.url,
    }
    argv = [sys.executable, "manage.py", "worker_probe", "--worker", WORKER, "--within", str(within)]
    return subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, check=False).returncode == 0


# --- rows -------------------------------------------------------------------------------------------------


@pytest.fixture
def cluster(api: ApiServer) -> Cluster:
    """The API server as a cluster."""
    return make_cluster(kubeconfig=str(api.kubeconfig))


def approve_one(cluster: Cluster, api: ApiServer, *, undo: float = 0) -> Decision:
    """Approve the eviction of one of the pods."""
    pod = api.ready()[0]
    [owner] = pod["metadata"]["ownerReferences"]
    now = timezone.now()
    row = make_decision(
        cluster,
        pod_uid=pod["metadata"]["uid"],
        pod_name=pod["metadata"]["name"],
        owner_kind=owner["kind"],
        owner_name=owner["name"],
        owner_uid=owner["uid"],
        forecast={"ready": 3, "desired": 3},
        nominated_at=now,
        expires_at=now + timedelta(hours=1),
    )
    ada = Actor.person(make_user("ada", Role.APPROVER))
    return verdicts.approve(decision_id=row.pk, version=1, by=ada, undo_seconds=undo, now=now)


def status_of(row: Decision) -> str:
    row.refresh_from_db()
    return row.eviction


def evicted_once(row: Decision, api: ApiServer, before: set[str], folder: Path) -> None:
    """Wait for the whole way: evicted, replaced, Ready; and exactly one pod was."""
    log = folder / "worker.log"
    wait_until(lambda: status_of(row) == Eviction.EVICTED, f"{row} is evicted", log=log)
    wait_until(lambda: status_of(row) and row.replacement_ready_at, "the replacement is Ready", log=log)
    assert before - api.uids() == {row.pod_uid}


# --- the tests --------------------------------------------------------------------------------------------


def test_a_worker_over_redis_evicts_what_was_approved_and_sees_the_replacement(
    cluster: Cluster, api: ApiServer, redis_server: RedisServer, tmp_path: Path
) -> None:
    before = api.uids()
    with worker(redis_server, tmp_path):
        row = approve_one(cluster, api)
        evicted_once(row, api, before, tmp_path)
    assert row.replacement_node in {"n1", "n2"}


def test_redis_may_lose_everything_and_nothing_is_lost(
    cluster: Cluster, api: ApiServer, redis_server: RedisServer, tmp_path: Path
) -> None:
    before = api.uids()
    with worker(redis_server, tmp_path):
        wait_until(heartbeats.last_seen, "the worker is up", log=tmp_path / "worker.log")
        row = approve_one(cluster, api, undo=1)
        redis_server.flush()
        redis_server.restart()
        evicted_once(row, api, before, tmp_path)
    assert row.attempt == 1


def test_a_worker_killed_in_the_middle_loses_nothing(
    cluster: Cluster, api: ApiServer, redis_server: RedisServer, tmp_path: Path
) -> None:
    before = api.uids()
    row = approve_one(cluster, api)
    api.stall()
    with worker(redis_server, tmp_path) as process:
        wait_until(lambda: status_of(row) == Eviction.EVICTING, "it is claimed", log=tmp_path / "worker.log")
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)
    api.go_on()
    # Two minutes later:
    Decision.objects.filter(pk=row.pk).update(lease_until=timezone.now())
    with worker(redis_server, tmp_path):
        evicted_once(row, api, before, tmp_path)
    assert (row.attempt, row.events.filter(kind=Event.LEASE_LOST).count()) == (2, 1)


def test_cq03_a_worker_that_consumes_nothing_fails_its_probe_and_catches_up(
    cluster: Cluster, api: ApiServer, redis_server: RedisServer, tmp_path: Path
) -> None:
    before = api.uids()
    with worker(redis_server, tmp_path) as process:
        wait_until(heartbeats.last_seen, "the worker is up", log=tmp_path / "worker.log")
        assert probe(redis_server, within=20)
        os.killpg(process.pid, signal.SIGSTOP)
        assert process.poll() is None
        assert not probe(redis_server, within=2)
        row = approve_one(cluster, api)
        redis_server.restart()
        os.killpg(process.pid, signal.SIGCONT)
        evicted_once(row, api, before, tmp_path)
        assert probe(redis_server, within=20)
