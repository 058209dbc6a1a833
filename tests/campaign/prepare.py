"""What an admin does once: people and their roles, tokens, the caller, settings; arms the cluster.

``python -m tests.campaign.prepare``, in a process of its own with the product's environment; reads JSON, prints JSON.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime, timedelta

import django


def main() -> None:
    """Make everybody who acts in a campaign, and give out their tokens."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "deschedui.settings")
    django.setup()
    from django.contrib.auth.models import User

    from decisions.models import Cluster
    from decisions.services import access, clusters
    from decisions.services.actors import Actor

    asked, now = json.load(sys.stdin), datetime.now(UTC)
    tokens = {}
    scopes = {"approver": ["read", "decide"], "admin": ["read", "decide", "configure"]}
    for name, role in asked["people"].items():
        user = User.objects.create_user(name, password=asked["password"])
        access.bind_role(role=role, user=user, by=Actor(name="campaign"), now=now)
        _, tokens[name] = access.create_api_token(
            owner=user,
            name="campaign",
            scopes=scopes[role],
            expires_at=now + timedelta(days=1),
            by=Actor.person(user),
            now=now,
        )
    by = Actor.person(User.objects.get(username=asked["admin"]))
    cluster = Cluster.objects.get(name=asked["cluster"])
    clusters.change(cluster=cluster, interval_seconds=asked["interval_seconds"], by=by, now=now)
    clusters.change_settings(cluster=cluster, changes=asked["settings"], by=by, now=now)
    clusters.arm(cluster=cluster, by=by, now=now)
    caller = access.register_caller(name="descheduler", cluster=cluster, by=by, now=now, **asked["caller"])
    _, secret = access.issue_caller_token(caller=caller, by=by, now=now)
    sys.stdout.write(json.dumps({"tokens": tokens, "caller": secret}) + "\n")


if __name__ == "__main__":
    main()
