"""``manage.py bootstrap``: make what the environment names and the database lacks."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from decisions.services.bootstrap import bootstrap, next_steps
from decisions.services.errors import Invalid


class Command(BaseCommand):
    """Run it after ``migrate``, at every start if you like."""

    help = "Make the cluster and read the policy that the environment names, where they are not there yet."

    def handle(self, *_args: Any, **options: Any) -> None:
        """Do it, and say what was done."""
        try:
            done = bootstrap(env=settings.ENV, now=timezone.now())
        except Invalid as problem:
            raise CommandError(str(problem)) from problem
        for sentence in [*done, *next_steps()] if options["verbosity"] else []:
            self.stdout.write(sentence)
