"""Reads the list once, in a process of its own: `python -m tests.bench.list_reader <way> <url>`.

Prints the seconds, and the peak of its resident memory in MB.
"""

import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from deschedui.kube.budget import Budget
from deschedui.kube.client import ClusterClient
from deschedui.kube.config import ClusterConnection

PAGE = 500


def ours(url: str) -> int:
    """The engine's structs, by pages."""
    return len(_client(url).list_pods().items)


def ours_raw(url: str) -> int:
    """The same, keeping the bytes of every pod."""
    return len(_client(url).list_pods(keep_raw=True).raw)


def typed(url: str) -> int:
    """The official client's models, by the same pages."""
    from kubernetes import client

    configuration = client.Configuration()
    configuration.host = url
    api = client.CoreV1Api(client.ApiClient(configuration))
    items, following = [], None
    while following != "":
        page = api.list_pod_for_all_namespaces(limit=PAGE, _continue=following)
        items += page.items
        following = (page.metadata and page.metadata._continue) or ""
    return len(items)


def _client(url: str) -> ClusterClient:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "x",
        "clusters": [{"name": "x", "cluster": {"server": url}}],
        "users": [{"name": "x", "user": {"token": "x"}}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
    }
    path = Path(tempfile.mkdtemp()) / "kubeconfig"
    path.write_text(json.dumps(config), encoding="utf-8")
    return ClusterClient.connect(ClusterConnection("bench", kubeconfig=str(path)), budget=Budget())


WAYS: dict[str, Callable[[str], int]] = {"ours": ours, "ours_raw": ours_raw, "typed": typed}

if __name__ == "__main__":
    started = time.perf_counter()
    count = WAYS[sys.argv[1]](sys.argv[2])
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"count": count, "seconds": seconds, "peak_mb": peak}))
