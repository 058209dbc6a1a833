"""``manage.py run_cycle``: run one cycle here and now, without a broker; a dry run unless told otherwise."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from decisions.models import Cluster, Cycle, CycleKind, CycleState
from decisions.services import connections, cycles
from decisions.services.actors import Actor
from decisions.services.errors import AlreadyRuns, Closed


class Command(BaseCommand):
    """Useful before a worker runs, to see what a policy would do."""

    help = "Run one cycle of a cluster and print what it found. A dry run, unless --record is given."

    def add_arguments(self, parser: CommandParser) -> None:
        """The cluster, and whether decisions may come of it."""
        parser.add_argument(
            "cluster", nargs="?", help="The cluster's name; may be left out where there is one."
        )
        parser.add_argument(
            "--record", action="store_true", help="Make decisions, where the cluster is armed."
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Start, run, print."""
        cluster = _cluster(options["cluster"])
        kind = CycleKind.MANUAL if options["record"] else CycleKind.DRY_RUN
        try:
            cycle = cycles.start(
                cluster_id=cluster.pk, kind=kind, by=Actor(name="command line"), now=timezone.now()
            )
        except (AlreadyRuns, Closed) as busy:
            raise CommandError(str(busy)) from busy
        cycles.run(cycle.pk, client=connections.client_for(cluster))
        cycle.refresh_from_db()
        self.stdout.write(_summary(cycle))
        if cycle.state == CycleState.FAILED:
            raise CommandError(cycle.error)


def _cluster(name: str | None) -> Cluster:
    found = list(Cluster.objects.filter(name=name) if name else Cluster.objects.all()[:2])
    if len(found) != 1:
        known = ", ".join(Cluster.objects.values_list("name", flat=True)) or "none"
        raise CommandError(f"Name one cluster; there are: {known}.")
    return found[0]


def _summary(cycle: Cycle) -> str:
    head = f"Cycle {cycle.pk} of {cycle.cluster}, {cycle.get_kind_display()}: {cycle.get_state_display()}"
    steps = [f"  {step['name']}: {step['seconds']:.1f} s {step['detail']}".rstrip() for step in cycle.steps]
    counts = "  " + ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in cycle.counts.items())
    warnings = [f"  warning: {warning}" for warning in cycle.warnings]
    return "\n".join([head, *steps, counts, *warnings])
