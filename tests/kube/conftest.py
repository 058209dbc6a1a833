"""Clients of the scripted server."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deschedui.kube.budget import Budget
from deschedui.kube.client import ClusterClient, Timeouts
from deschedui.kube.config import ClusterConnection

TOKEN = "t0p-secret-token"
Connect = Callable[..., ClusterClient]


def write_kubeconfig(path: Path, server: str, user: dict[str, Any] | None = None) -> Path:
    """A kubeconfig with one context, ``only``."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "only",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": TOKEN} if user is None else user}],
        "contexts": [{"name": "only", "context": {"cluster": "c", "user": "u"}}],
    }
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


@pytest.fixture
def connect(tmp_path: Path) -> Connect:
    """A client for a server, through a kubeconfig like any other."""

    def connected(server: str, **overrides: Any) -> ClusterClient:
        kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", server, overrides.pop("user", None))
        connection = ClusterConnection("shop", kubeconfig=str(kubeconfig))
        defaults: dict[str, Any] = {"budget": Budget(), "timeouts": Timeouts(read=2, page=2, eviction=2)}
        return ClusterClient.connect(connection, **(defaults | overrides))

    return connected
