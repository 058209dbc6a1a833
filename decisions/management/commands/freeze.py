"""``manage.py freeze``: no eviction leaves a cluster, or any, until it is lifted. Needs the database alone."""

import getpass
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from decisions.models import Cluster, Freeze
from decisions.services import freezes
from decisions.services.actors import Actor
from decisions.services.errors import Invalid


class Command(BaseCommand):
    """Works while web and Redis are away: workers test the freeze in the database before each call."""

    help = "Freeze a cluster (without a name: all), or lift a freeze."
    requires_system_checks = []  # it must work when the rest of the house does not

    def add_arguments(self, parser: CommandParser) -> None:
        """``freeze [cluster] --reason …`` or ``freeze [cluster] --lift``."""
        parser.add_argument("cluster", nargs="?", help="The cluster's name; left out: all clusters.")
        action = parser.add_mutually_exclusive_group(required=True)
        action.add_argument("--reason", help="Why; everybody who waits will read it.")
        action.add_argument("--lift", action="store_true", help="Lift the freeze.")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Set or lift, and say what that means."""
        cluster = _cluster(options["cluster"])
        by = Actor(name=f"{getpass.getuser()} (command line)")
        if options["lift"]:
            self._lift(cluster, by)
        else:
            self._freeze(cluster, by, options["reason"])

    def _freeze(self, cluster: Cluster | None, by: Actor, reason: str) -> None:
        try:
            row = freezes.freeze(cluster=cluster, by=by, reason=reason, now=timezone.now())
        except Invalid as problem:
            raise CommandError(str(problem)) from problem
        self.stdout.write(f"Frozen since {row.set_at:%F %T} UTC by {row.set_by}: {row.reason}")
        self.stdout.write(
            f"{row.calls_in_flight} eviction calls were already in flight, "
            f"{row.callers_told} callers had heard a yes; neither can be called back."
        )

    def _lift(self, cluster: Cluster | None, by: Actor) -> None:
        row = Freeze.objects.filter(cluster=cluster, lifted_at=None).first()
        what = f"Cluster {cluster}" if cluster else "The freeze of all clusters"
        if row is None or not freezes.lift(freeze_id=row.pk, by=by, now=timezone.now()):
            self.stdout.write(f"{cluster or 'All clusters together'}: there is no freeze to lift.")
            return
        self.stdout.write(f"{what}: lifted." if cluster is None else f"{what}: the freeze was lifted.")
        if cluster is not None and (still := freezes.active(cluster.pk)):
            self.stdout.write(f"It is still held by the freeze of all clusters: {still.reason}")


def _cluster(name: str | None) -> Cluster | None:
    if name is None:
        return None
    cluster = Cluster.objects.filter(name=name).first()
    if cluster is None:
        known = ", ".join(Cluster.objects.values_list("name", flat=True)) or "none"
        raise CommandError(f"There is no cluster {name}; there are: {known}.")
    return cluster
