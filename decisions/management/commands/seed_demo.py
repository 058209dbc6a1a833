"""``manage.py seed_demo``: three people, an armed cluster, and a caller, for the demo only."""

from argparse import ArgumentParser
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.core.management import BaseCommand

from decisions.models import Caller, Cluster, Role, TeamReason
from decisions.services import access, clusters
from decisions.services.actors import SYSTEM

PEOPLE = (
    ("ada", "Ada Okafor", Role.APPROVER),
    ("vera", "Vera Lindt", Role.VIEWER),
    ("root", "Robin Root", Role.ADMIN),
)
REASONS = (
    "Not during business hours",
    "Incident in progress",
    "Backup is running",
    "Ask the owning team first",
)


class Command(BaseCommand):
    """Idempotent: what is there already stays."""

    help = "Make the demo's people, arm its cluster, register a caller."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--password", required=True)
        parser.add_argument("--token-file", type=Path, required=True)

    def handle(self, *args: Any, password: str, token_file: Path, **options: Any) -> None:
        now = datetime.now(UTC)
        for username, name, role in PEOPLE:
            _person(username, name, role, password, now)
        for text in REASONS:
            TeamReason.objects.get_or_create(text=text)
        cluster = Cluster.objects.get(name="demo")
        clusters.change(cluster=cluster, interval_seconds=30, by=SYSTEM, now=now)
        clusters.arm(cluster=cluster, by=SYSTEM, now=now)
        if not Caller.objects.filter(cluster=cluster).exists():
            caller = access.register_caller(
                name="nightly-descheduler", cluster=cluster, interval_seconds=60, by=SYSTEM, now=now
            )
            _, secret = access.issue_caller_token(caller=caller, by=SYSTEM, now=now)
            token_file.write_text(secret, encoding="utf-8")
            token_file.chmod(0o600)


def _person(username: str, name: str, role: str, password: str, now: datetime) -> None:
    user, made = User.objects.get_or_create(
        username=username, defaults={"first_name": name.split(maxsplit=1)[0], "last_name": name.split()[1]}
    )
    if made:
        user.set_password(password)
        user.save(update_fields=["password"])
        access.bind_role(role=role, user=user, by=SYSTEM, now=now)
