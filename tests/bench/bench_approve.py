"""From a human's yes to the Eviction's arrival at the API server, with a real worker and a real broker."""

import json
import secrets
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.bench import processes
from tests.bench.demo_cluster import demo_cluster
from tests.bench.lines import BenchLine, Unavailable, wanted
from tests.real import services

APPROVALS = 64
ROUND_TRIPS = 40
REPLICAS = 2
NAMESPACE = "bench"
# Around its four calls an eviction has some twenty short statements of the database, each of them as long as a call to
# an API server on the same machine; and the embedded broker is a folder that is looked into every tenth of a second.
BOUNDS = {"embedded": 40.0, "redis": 20.0}


@dataclass(frozen=True)
class Measured:
    """Seconds of each approval, and of each of the reference's rounds."""

    ours: list[float]
    reference: list[float]


def main() -> list[BenchLine]:
    """The lines of this module."""
    return [line for broker in BOUNDS if _is_wanted(broker) for line in _lines(broker)]


def _is_wanted(broker: str) -> bool:
    return any(wanted(f"approve-{broker}-{measure}", __name__) for measure in ("p50", "p95"))


def _lines(broker: str) -> list[BenchLine]:
    try:
        with (
            tempfile.TemporaryDirectory(prefix="deschedui-bench-") as name,
            _broker(broker, Path(name)) as url,
        ):
            measured = _measure(Path(name), url)
    except Unavailable as missing:
        print(f"approve with {broker}: skipped, {missing}", flush=True)
        return []
    of = "to the Eviction's arrival; reference: the four calls that it takes, one by one"
    return [
        BenchLine(
            f"approve-{broker}-{name}: {len(measured.ours)} approvals {of}",
            measure(measured.ours),
            measure(measured.reference),
            bound=BOUNDS[broker],
        )
        for name, measure in (("p50", statistics.median), ("p95", _p95))
    ]


def _p95(seconds: list[float]) -> float:
    return statistics.quantiles(seconds, n=20)[-1]


@contextmanager
def _broker(name: str, folder: Path) -> Iterator[str]:
    if name == "embedded":
        yield f"filesystem://{folder / 'broker'}"
        return
    try:
        with services.redis_of_its_own() as server:
            yield server.url
    except services.Missing as missing:
        raise Unavailable(str(missing)) from missing


def _measure(folder: Path, broker: str) -> Measured:
    arrivals = folder / "arrivals"
    recorder = "tests.bench.recording_apiserver"
    env = {
        "DESCHEDUI_DATABASE_URL": f"sqlite:///{folder / 'bench.sqlite3'}",
        "DESCHEDUI_BROKER_URL": broker,
        "DESCHEDUI_LOG_LEVEL": "WARNING",
        "DESCHEDUI_SECRET_KEY": secrets.token_urlsafe(48),
        "DJANGO_SETTINGS_MODULE": "tests.bench.installation",
    }
    with demo_cluster(folder, recorder, BENCH_ARRIVALS=str(arrivals)) as cluster, cluster.client() as client:
        pods = _workloads(client, APPROVALS + ROUND_TRIPS)
        asked = json.dumps(pods[:APPROVALS])
        processes.run("tests.bench.approver", "make", str(cluster.kubeconfig), env=env, text=asked)
        with _worker(folder, env):
            told = processes.run("tests.bench.approver", "approve", str(arrivals), env=env)
            reference = [_round_trips(client, pod) for pod in pods[APPROVALS:]]
    return Measured(json.loads(told), reference)


@contextmanager
def _worker(folder: Path, env: dict[str, str]) -> Iterator[None]:
    """Worker and beat in one process, as on one machine; the first approvals wait until it is there."""
    argv = ("celery", "-A", "deschedui", "worker", "-B", "-P", "threads", "-c", "8", "--loglevel", "WARNING")
    schedule = ("--schedule", str(folder / "beat-schedule"))
    with processes.process(*argv, *schedule, log=folder / "worker.log", env=env, ready=lambda: True):
        yield


def _workloads(client: httpx.Client, count: int) -> list[dict[str, Any]]:
    """Deployments of two pods under a budget; one pod of each."""
    for name in (NAMESPACE, "deschedui"):  # the second one is that of the Lease
        _post(client, "/api/v1/namespaces", {"metadata": {"name": name}})
    size = {"cpu": "1000", "memory": "1000Gi", "pods": "10000"}
    node = {"metadata": {"name": "n1"}, "status": {"allocatable": size, "capacity": size}}
    _post(client, "/api/v1/nodes", node)
    for number in range(count):
        _post(client, f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments", _deployment(f"web-{number}"))
        _post(
            client, f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets", _budget(f"web-{number}")
        )
    return _one_of_each(client, count)


def _post(client: httpx.Client, path: str, body: dict[str, Any]) -> None:
    client.post(path, json=body).raise_for_status()


def _deployment(name: str) -> dict[str, Any]:
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "web", "image": "web:1"}]},
    }
    spec = {"replicas": REPLICAS, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"metadata": {"name": name}, "spec": spec}


def _budget(name: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": name}}},
    }


def _one_of_each(client: httpx.Client, count: int) -> list[dict[str, Any]]:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        answer = client.get(f"/api/v1/namespaces/{NAMESPACE}/pods").raise_for_status()
        running = [pod for pod in answer.json()["items"] if pod["status"].get("phase") == "Running"]
        if len(running) == REPLICAS * count:
            return list({pod["metadata"]["labels"]["app"]: pod for pod in running}.values())
        time.sleep(0.1)
    raise RuntimeError("the demo's API server did not start the pods")


def _round_trips(client: httpx.Client, pod: dict[str, Any]) -> float:
    """Read the pod, its owner and the budgets, and evict: nothing else, on one kept connection."""
    meta = pod["metadata"]
    owner = meta["ownerReferences"][0]["name"]
    preconditions = {"deleteOptions": {"preconditions": {"uid": meta["uid"]}}}
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": meta["name"]},
        **preconditions,
    }
    namespace = f"/api/v1/namespaces/{NAMESPACE}"
    started = time.perf_counter()
    client.get(f"{namespace}/pods/{meta['name']}").raise_for_status().json()
    client.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/replicasets/{owner}").raise_for_status().json()
    client.get(f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets").raise_for_status().json()
    client.post(f"{namespace}/pods/{meta['name']}/eviction", json=eviction).raise_for_status()
    return time.perf_counter() - started


if __name__ == "__main__":
    for line in main():
        print(line)
