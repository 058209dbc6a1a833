"""The extender door's rate for answers that are known, against a bare Django view on the same server."""

import json
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deschedui import supervisor
from tests.bench import processes
from tests.bench.databases import DATABASES, database
from tests.bench.demo_cluster import DemoCluster, demo_cluster
from tests.bench.door_load import Load, ask, request
from tests.bench.lines import BenchLine, Unavailable, wanted
from tests.real.ports import free_port

CONNECTIONS = 16
SECONDS = 2.0
ROUNDS = 3
PODS = 50
# What a caller hears again and again: a no while it waits, and the yes that it was told already.
ANSWERS = {"waiting": "pending", "yes": "allowed"}

Loads = dict[str, list[Load]]


# Of a bare view's rate. Each yes is a committed write before it is said, a no only reads.
LEAST = {"waiting": 0.2, "yes": 0.1}


def main() -> list[BenchLine]:
    """The lines of this module."""
    return [line for name in DATABASES if _is_wanted(name) for line in _lines(name)]


def _is_wanted(name: str) -> bool:
    return any(wanted(f"door-{name}-{kind}-{of}", __name__) for kind in ANSWERS for of in ("rate", "p99"))


def _lines(name: str) -> list[BenchLine]:
    try:
        with database(name) as url:
            loads = _measure(url)
    except Unavailable as missing:
        print(f"door on {name}: skipped, {missing}", flush=True)
        return []
    return list(_as_lines(name, loads))


def _as_lines(name: str, loads: Loads) -> Iterator[BenchLine]:
    of = f"{CONNECTIONS} kept connections, pods looked up at the demo's API server; reference: a bare Django view"
    for kind in ANSWERS:
        ours, bare = loads[kind], loads["bare"]
        rate = f"door-{name}-{kind}-rate: answers a second, {of}"
        yield BenchLine(rate, _rate(ours), _rate(bare), bound=LEAST[kind], unit="1/s", at_least=True)
        yield BenchLine(f"door-{name}-{kind}-p99: {of}", _p99(ours), _p99(bare), bound=5)


def _rate(loads: Sequence[Load]) -> float:
    return statistics.median(load.rate for load in loads)


def _p99(loads: Sequence[Load]) -> float:
    return statistics.quantiles([seconds for load in loads for seconds in load.seconds], n=100)[-1]


def _measure(url: str) -> Loads:
    with tempfile.TemporaryDirectory(prefix="deschedui-bench-") as name:
        folder = Path(name)
        with demo_cluster(folder) as cluster:
            waiting, told = _pods(cluster)
            token = _set_up(url, cluster, waiting, told)
            nodes = {node["metadata"]["name"]: node for node in cluster.items("/api/v1/nodes")}
            bodies = {"waiting": _bodies(waiting, nodes), "yes": _bodies(told, nodes)}
            requests = {
                kind: [request("/doors/evict", body, token) for body in bodies[kind]] for kind in bodies
            }
            requests["bare"] = [request("/api/bare", body) for body in bodies["waiting"]]
            with _web(folder, url) as port:
                return _in_turns(port, requests)


def _pods(cluster: DemoCluster) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    running = [pod for pod in cluster.items("/api/v1/pods") if pod["status"].get("phase") == "Running"]
    return running[:PODS], running[PODS : 2 * PODS]


def _bodies(pods: list[dict[str, Any]], nodes: dict[str, Any]) -> list[bytes]:
    """As the proposal's plugin asks: the whole pod and the whole node."""
    return [json.dumps({"pod": pod, "node": nodes[pod["spec"]["nodeName"]]}).encode() for pod in pods]


def _set_up(url: str, cluster: DemoCluster, waiting: list[dict[str, Any]], told: list[dict[str, Any]]) -> str:
    asked = json.dumps({"waiting": waiting, "told": told})
    argv = ("tests.bench.door_setup", str(cluster.kubeconfig))
    return processes.run(*argv, env={"DESCHEDUI_DATABASE_URL": url}, text=asked)


@contextmanager
def _web(folder: Path, url: str) -> Iterator[int]:
    """The web process with its real server; gives its port."""
    port, settings = free_port(), "tests.bench.installation"
    argv = supervisor.web(port).argv[2:]  # As it is deployed: with the doors' own protocol and loop.
    env = {
        "DESCHEDUI_DATABASE_URL": url,
        "DJANGO_SETTINGS_MODULE": settings,
        "DESCHEDUI_LOG_LEVEL": "WARNING",
    }
    with processes.process(*argv, log=folder / "web.log", env=env, ready=processes.listens(port)):
        yield port


def _in_turns(port: int, requests: dict[str, list[bytes]]) -> Loads:
    """Each for a while and again, so that whatever else the machine does meets all of them."""
    loads: Loads = {kind: [] for kind in requests}
    for _ in range(ROUNDS + 1):
        for kind, sent in requests.items():
            loads[kind].append(ask(port, sent, connections=CONNECTIONS, seconds=SECONDS))
    _check({kind: found[0] for kind, found in loads.items()})
    return {kind: found[1:] for kind, found in loads.items()}


def _check(first: dict[str, Load]) -> None:
    """The answers are those that were to be measured."""
    for kind, state in ANSWERS.items():
        states = {json.loads(answer)["state"] for answer in first[kind].answers}
        assert states == {state}, f"{kind}: {states}: {first[kind].answers[0]!r}"


if __name__ == "__main__":
    for line in main():
        print(line)
