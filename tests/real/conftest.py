"""Shorthands for tests on the real control plane (the fixture ``control_plane`` is every folder's)."""

from __future__ import annotations

import pytest

from deschedui.demo.controlplane import ControlPlane
from tests.real.controlplane import RealCluster


@pytest.fixture(scope="session")
def real(control_plane: ControlPlane) -> RealCluster:
    """The control plane with shorthands for tests."""
    return RealCluster(control_plane)


@pytest.fixture(scope="session")
def shared_node(real: RealCluster) -> str:
    """A node for the pods of tests that do not care where they run."""
    return real.node(labels={"shared": "true"})
