"""The real control plane, started once a session; skipped with a reason where it is not built."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from deschedui.demo.controlplane import ControlPlane
from tests.real.controlplane import RBAC, RealCluster, find_binaries


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """etcd, API server, controllers, scheduler and kwok, with the accounts and rights of ``deploy/base``."""
    folder = tmp_path_factory.mktemp("controlplane")
    with ControlPlane(find_binaries(), folder, manifests=RBAC) as plane:
        yield plane


@pytest.fixture(scope="session")
def real(control_plane: ControlPlane) -> RealCluster:
    """The control plane with shorthands for tests."""
    return RealCluster(control_plane)


@pytest.fixture(scope="session")
def shared_node(real: RealCluster) -> str:
    """A node for the pods of tests that do not care where they run."""
    return real.node(labels={"shared": "true"})
