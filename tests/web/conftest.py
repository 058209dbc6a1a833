"""Fixtures of the pages' tests: browsers of the personas, a worker that lives, a clock at the real now."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from decisions.models import Cluster, Decision, Heartbeat
from tests.builders import make_decision

Make = Callable[..., Decision]


@pytest.fixture
def worker(db: None) -> Heartbeat:
    """A worker that has just been seen."""
    return Heartbeat.objects.create(name="worker@test", seen_at=timezone.now())


@pytest.fixture
def make(cluster: Cluster, worker: Heartbeat) -> Make:
    """A decision that waits since a minute, and for another 59."""

    def build(**fields: Any) -> Decision:
        now = timezone.now()
        asked = now - timedelta(minutes=1)
        times = {
            "created_at": asked,
            "updated_at": asked,
            "nominated_at": asked,
            "expires_at": now + timedelta(minutes=59),
        }
        return make_decision(fields.pop("cluster", cluster), **{**times, **fields})

    return build


def browser_of(user: User) -> Client:
    """Django's client, signed in."""
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def as_ada(ada: User) -> Client:
    """An approver's browser."""
    return browser_of(ada)


@pytest.fixture
def as_viewer(viewer: User) -> Client:
    """A viewer's browser."""
    return browser_of(viewer)


@pytest.fixture
def as_admin(admin: User) -> Client:
    """An admin's browser."""
    return browser_of(admin)


@pytest.fixture
def as_stranger(stranger: User) -> Client:
    """A browser of somebody without a role."""
    return browser_of(stranger)
