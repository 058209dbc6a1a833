"""``manage.py seed_demo``: three people, an armed cluster, and a caller, for the demo only."""

from argparse import ArgumentParser
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import Group, User
from django.core.management import BaseCommand, CommandError

from decisions.models import Caller, Cluster, Role, TeamReason
from decisions.services import access, clusters
from decisions.services.actors import SYSTEM
from deschedui.demo import people

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
    """Idempotent: what is there already stays. Refused outside the demo, apart from ``--remove``."""

    help = "Make the demo's people, arm its cluster, register a caller; or keep the demo's people out."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--password", default=people.PASSWORD)
        parser.add_argument("--token-file", type=Path)
        parser.add_argument("--remove", action="store_true", help="Nobody of the demo may sign in any more.")

    def handle(
        self, *args: Any, password: str, token_file: Path | None, remove: bool, **options: Any
    ) -> None:
        if remove:
            self._remove()
        elif not settings.ENV.demo:
            raise CommandError(
                "This is no demo (DESCHEDUI_DEMO is off): everybody knows these people's password."
            )
        elif token_file is None:
            raise CommandError("Say where the caller's token goes: --token-file.")
        else:
            self._seed(password, token_file)

    def _remove(self) -> None:
        """Their rows stay, because decisions name them; they can neither sign in nor do anything."""
        of_the_demo = User.objects.filter(groups__name=people.GROUP) | User.objects.filter(
            username__in=[name for name, _ in people.USERS]
        )
        removed = [user for user in of_the_demo.distinct() if _is_of_the_demo(user)]
        for user in removed:
            user.set_unusable_password()
            user.is_active = False
            user.save(update_fields=["password", "is_active"])
        names = ", ".join(user.get_username() for user in removed) or "nobody"
        self.stdout.write(f"Of the demo's people these can no longer sign in: {names}.")

    def _seed(self, password: str, token_file: Path) -> None:
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


def _is_of_the_demo(user: User) -> bool:
    return user.groups.filter(name=people.GROUP).exists() or user.check_password(people.PASSWORD)


def _person(username: str, name: str, role: str, password: str, now: datetime) -> None:
    user, made = User.objects.get_or_create(
        username=username, defaults={"first_name": name.split(maxsplit=1)[0], "last_name": name.split()[1]}
    )
    if made:
        user.set_password(password)
        user.save(update_fields=["password"])
        user.groups.add(Group.objects.get_or_create(name=people.GROUP)[0])
        access.bind_role(role=role, user=user, by=SYSTEM, now=now)
