"""Fixtures that every part of the tests shares: the personas."""

import pytest
from django.contrib.auth.models import User

from decisions.models import Cluster, Role
from tests.builders import make_cluster, make_user


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
