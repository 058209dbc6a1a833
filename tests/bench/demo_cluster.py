"""The demo's API server with its sample cluster, as a process of a benchmark."""

import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.bench import processes


@dataclass(frozen=True)
class DemoCluster:
    """How to reach it."""

    url: str
    token: str
    authority: str
    kubeconfig: Path

    def client(self) -> httpx.Client:
        """A plain client with one kept connection."""
        context = ssl.create_default_context(cadata=self.authority)
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx.Client(base_url=self.url, verify=context, headers=headers, trust_env=False)

    def items(self, path: str) -> list[dict[str, Any]]:
        """The objects of a list."""
        with self.client() as client:
            answer = client.get(path).raise_for_status()
        return list(answer.json()["items"])


@contextmanager
def demo_cluster(folder: Path, module: str = "deschedui.demo.apiserver", **env: str) -> Iterator[DemoCluster]:
    """Start it; ``module`` takes the command line of the demo's own."""
    ready, kubeconfig = folder / "apiserver.json", folder / "kubeconfig"
    argv = (module, "--kubeconfig", str(kubeconfig), "--ready-file", str(ready))
    with processes.process(*argv, log=folder / "apiserver.log", env=env, ready=ready.exists):
        told = json.loads(ready.read_text(encoding="utf-8"))
        yield DemoCluster(told["url"], told["token"], told["certificateAuthority"], kubeconfig)
