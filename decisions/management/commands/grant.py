"""``manage.py grant``: give a user a role from the command line, the first admin above all."""

from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from decisions.models import Cluster, Role
from decisions.services import access
from decisions.services.actors import Actor
from decisions.services.errors import Invalid


class Command(BaseCommand):
    """``manage.py grant ada approver --cluster prod --namespace shop``."""

    help = "Give a user a role, in all clusters and namespaces or in some."

    def add_arguments(self, parser: CommandParser) -> None:
        """Who, which role, where."""
        parser.add_argument("user")
        parser.add_argument("role", choices=Role.values)
        parser.add_argument("--cluster", action="append", default=[], help="Several may be given; none: all.")
        parser.add_argument(
            "--namespace", action="append", default=[], help="Several may be given; none: all."
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Bind the role."""
        user = User.objects.filter(username=options["user"]).first()
        if user is None:
            raise CommandError(f"There is no user {options['user']}; manage.py createsuperuser makes one.")
        clusters = list(Cluster.objects.filter(name__in=options["cluster"]))
        if missing := sorted(set(options["cluster"]) - {cluster.name for cluster in clusters}):
            raise CommandError(f"There is no cluster {missing[0]}.")
        try:
            access.bind_role(
                role=options["role"],
                user=user,
                clusters=clusters,
                namespaces=options["namespace"],
                by=Actor(name="command line"),
                now=timezone.now(),
            )
        except Invalid as problem:
            raise CommandError(str(problem)) from problem
        self.stdout.write(f"{user.get_username()} is {options['role']} now.")
