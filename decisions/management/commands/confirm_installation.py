"""``manage.py confirm_installation``: this installation is the one that works on a cluster that has frozen itself."""

import getpass
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from decisions.models import Cluster
from decisions.services import installation
from decisions.services.actors import Actor
from decisions.services.clock import db_now


class Command(BaseCommand):
    """Needs the database alone; the worker that takes the Lease over may come later, within ten minutes."""

    help = (
        "Confirm that this installation works on a cluster that has frozen itself: its Lease is taken over."
    )
    requires_system_checks = []  # it must work when the rest of the house does not

    def add_arguments(self, parser: CommandParser) -> None:
        """The cluster's name, always: nobody should confirm another one than they mean."""
        parser.add_argument("cluster", help="The cluster's name.")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Confirm, and say what happens next."""
        cluster = _cluster(options["cluster"])
        if not cluster.stopped:
            self.stdout.write(f"Cluster {cluster} has not frozen itself: there is nothing to confirm.")
            return
        self.stdout.write(f"{cluster.stopped_why}.")
        by = Actor(name=f"{getpass.getuser()} (command line)")
        installation.confirm(cluster=cluster, by=by, now=db_now())
        self.stdout.write(
            f"Confirmed for ten minutes: a worker takes the Lease of {cluster} over, then cycles nominate afresh. "
            "Any other installation on this cluster freezes."
        )


def _cluster(name: str) -> Cluster:
    cluster = Cluster.objects.filter(name=name).first()
    if cluster is None:
        known = ", ".join(Cluster.objects.values_list("name", flat=True)) or "none"
        raise CommandError(f"There is no cluster {name}; there are: {known}.")
    return cluster
