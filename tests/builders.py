"""Builders of rows, with overrides: a test names only what it is about."""

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User

from decisions.models import Cluster, Decision, Executor, Role, RoleBinding
from decisions.queries.installation import mark
from decisions.services.actors import Actor
from decisions.services.asks import Ask

NOW = datetime(2026, 11, 30, 3, 0, tzinfo=UTC)

FORECAST: dict[str, Any] = {
    "fits_on": ["n2", "n3"],
    "missing": {},
    "pdbs": [{"name": "web", "disruptions_allowed": 1, "current_healthy": 3, "desired_healthy": 2}],
    "pdb_applies": True,
    "ready": 3,
    "desired": 3,
    "only_replica": False,
    "same_name": False,
    "warnings": [],
}

WANTED: dict[str, Any] = {
    "namespace": "shop",
    "pod_name": "web-5fc9-kdpx9",
    "node": "n1",
    "owner_kind": "ReplicaSet",
    "owner_name": "web-5fc9",
    "owner_uid": "rs-uid",
    "workload": "Deployment/web",
    "profile": "default",
    "plugin": "PodLifeTime",
    "reason": "pod is 26h old, the policy allows at most 24h",
    "forecast": FORECAST,
}


def at(seconds: float) -> datetime:
    """NOW plus some seconds."""
    return NOW + timedelta(seconds=seconds)


def make_cluster(name: str = "prod", **fields: Any) -> Cluster:
    """An armed cluster whose Lease is ours, whatever the time; ``overrides={…}`` for its settings."""
    never = datetime(2100, 1, 1, tzinfo=UTC)
    ours = {"lease_checked_at": never, "lease_checked_by": mark(), "next_lease_at": never}
    return Cluster.objects.create(**{"name": name, "armed": True, **ours, **fields})


def make_user(
    name: str,
    role: str | None = None,
    *,
    clusters: list[Cluster] | None = None,
    namespaces: list[str] | None = None,
) -> User:
    """A person, with a role everywhere or in some clusters and namespaces."""
    user = User(username=name, password=make_password("correct horse battery"))
    User.objects.bulk_create([user])  # no signal: that somebody was added is no entry of the record
    if role is not None:
        binding = RoleBinding.objects.create(user=user, role=role, namespaces=namespaces or [])
        binding.clusters.set(clusters or [])
    return user


def approver(name: str = "ada") -> Actor:
    """An approver, as an actor."""
    return Actor.person(make_user(name, Role.APPROVER))


def make_ask(cluster: Cluster, **fields: Any) -> Ask:
    """A nomination of our policy for web-1 on n1."""
    defaults: dict[str, Any] = {
        "cluster": cluster,
        "pod_uid": str(uuid.uuid4()),
        **WANTED,
    }
    return Ask(**{**defaults, **fields})


def make_decision(cluster: Cluster, **fields: Any) -> Decision:
    """A pending decision of our policy, written straight to the database, for tests about what comes after."""
    defaults: dict[str, Any] = {
        "cluster": cluster,
        "asker": "policy",
        "asker_name": "our policy",
        "executor": Executor.US,
        "pod_uid": str(uuid.uuid4()),
        **WANTED,
        "nominated_at": NOW,
        "created_at": NOW,
        "updated_at": NOW,
        "expires_at": at(3600),
    }
    return Decision.objects.create(**{**defaults, **fields})
