"""Fixtures that every part of the tests shares: the personas, and one real control plane a session."""

import os
from collections.abc import Generator, Iterator

import pytest
from django.contrib.auth.models import User

from decisions.models import Cluster, Role
from deschedui.demo.controlplane import WEB, WORKER, ControlPlane
from tests.builders import make_cluster, make_user
from tests.real.controlplane import RBAC, find_binaries


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a real component that is missing is a failure: a skip there would hide it."""
    report = yield
    needs_real = any(item.get_closest_marker(name) for name in ("real", "browser"))
    if report.skipped and needs_real and os.environ.get("CI") == "true":
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not allow: {report.longrepr}"
    return report


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """etcd, API server, controllers, scheduler and kwok, with the accounts and rights of ``deploy/base``.

    Skipped with a reason where it is not built.
    """
    folder = tmp_path_factory.mktemp("controlplane")
    with ControlPlane(find_binaries(), folder, manifests=RBAC, audit_users=(WEB, WORKER)) as plane:
        yield plane


@pytest.fixture
def cluster(db: None) -> Cluster:
    """An armed cluster called prod."""
    return make_cluster()


@pytest.fixture
def viewer(db: None) -> User:
    """May look at everything."""
    return make_user("vera", Role.VIEWER)


@pytest.fixture
def ada(db: None) -> User:
    """May decide everywhere."""
    return make_user("ada", Role.APPROVER)


@pytest.fixture
def admin(db: None) -> User:
    """May configure everything."""
    return make_user("root", Role.ADMIN)


@pytest.fixture
def stranger(db: None) -> User:
    """Signed in, with no role anywhere."""
    return make_user("stan")
