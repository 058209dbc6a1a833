"""What an admin does once after the installation, on the settings page: people, their roles, a token; arms the cluster.

``python -m tests.real.people``, in a process of its own with the product's environment; reads JSON, prints JSON.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime, timedelta

import django


def main() -> None:
    """Make ``ada`` (approver), ``root`` (admin), root's token and a caller; set up and arm the cluster."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "deschedui.settings")
    django.setup()
    from django.contrib.auth.models import User

    from decisions.models import Cluster
    from decisions.services import access, clusters
    from decisions.services.actors import Actor

    asked, now = json.load(sys.stdin), datetime.now(UTC)
    people = {}
    for name, role in (("ada", "approver"), ("root", "admin")):
        people[name] = User.objects.create_user(name, password=asked["password"])
        access.bind_role(role=role, user=people[name], by=Actor(name="test"), now=now)
    by = Actor.person(people["root"])
    cluster = Cluster.objects.get(name=asked["cluster"])
    clusters.change(cluster=cluster, interval_seconds=24 * 3600, by=by, now=now)
    clusters.change_settings(cluster=cluster, changes=asked["settings"], by=by, now=now)
    clusters.arm(cluster=cluster, by=by, now=now)
    _, token = access.create_api_token(
        owner=people["root"],
        name="tests",
        scopes=["read", "decide", "configure"],
        expires_at=now + timedelta(days=1),
        by=by,
        now=now,
    )
    caller = access.register_caller(name="drain", cluster=cluster, owner=people["root"], by=by, now=now)
    _, secret = access.issue_caller_token(caller=caller, by=by, now=now)
    sys.stdout.write(json.dumps({"token": token, "caller_token": secret}))


if __name__ == "__main__":
    main()
