"""The API's own document, and an installation with a row of each kind for schemathesis to find."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import schemathesis
from django.contrib.auth.models import User
from django.core.handlers.wsgi import WSGIHandler
from django.utils import timezone
from drf_spectacular.generators import SchemaGenerator
from schemathesis.schemas import BaseSchema

from decisions.models import Cluster, Cycle, Decision, Freeze, PolicyVersion, Role, Verdict
from decisions.services import freezes, policies
from decisions.services.actors import SYSTEM
from tests.api.clients import token_of
from tests.builders import make_cluster, make_decision, make_user
from tests.fuzz.policy_texts import FULL


def api() -> BaseSchema:
    """What the API says of itself, to be called in this process."""
    generator: Any = SchemaGenerator  # it has no types
    document: dict[str, Any] = generator().get_schema(request=None, public=True)
    schema = schemathesis.openapi.from_dict(document)
    schema.app = WSGIHandler()
    schema.config.update(base_url="http://testserver")
    return schema


@dataclass
class World:
    """Rows to ask about, and an admin to ask as."""

    admin: User
    token: str
    cluster: Cluster
    rows: dict[str, list[int]]

    def place(self, path: str, parameters: dict[str, Any], number: int) -> dict[str, Any]:
        """The same parameters with, mostly, a row that is there."""
        placed = dict(parameters)
        if "name" in placed and number % 4:
            placed["name"] = self.cluster.name
        if "id" in placed and number % 4:
            there = self.rows[path.split("/")[3]]
            placed["id"] = there[number % len(there)]
        return placed


def make_world() -> World:
    """A cluster with decisions in several states, a cycle, a policy, a freeze."""
    now = timezone.now()
    cluster = make_cluster()
    later = {"nominated_at": now, "expires_at": now + timedelta(hours=1)}
    make_decision(cluster, **later)
    make_decision(cluster, verdict=Verdict.DENIED, cooldown_until=now + timedelta(hours=1), expires_at=None)
    make_decision(cluster, verdict=Verdict.ALLOWED, eviction="queued", not_before=now + timedelta(hours=1))
    times = dict.fromkeys(("started_at", "deadline_at", "heartbeat_at"), now)
    cluster.cycles.create(kind="dry_run", state="completed", **times)
    policies.save_text(cluster=cluster, text=FULL, by=SYSTEM, now=now)
    freezes.freeze(cluster=make_cluster("frozen"), by=SYSTEM, reason="stop", now=now)
    rows = {
        "decisions": list(Decision.objects.values_list("pk", flat=True)),
        "cycles": list(Cycle.objects.values_list("pk", flat=True)),
        "policies": list(PolicyVersion.objects.values_list("pk", flat=True)),
        "freezes": list(Freeze.objects.values_list("pk", flat=True)),
    }
    admin = make_user("fuzz", Role.ADMIN)
    token = token_of(admin, "read", "decide", "override", "configure")
    return World(admin, token, cluster, rows)
