"""``manage.py serve``: one machine runs it all: web, worker and beat, with an embedded broker or Redis."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, CommandError, call_command

from decisions.checks import refuse_start
from deschedui import supervisor
from deschedui.config import ROOT
from deschedui.refusals import sqlite_objection


class Command(BaseCommand):
    """Migrate, make what the environment names (cluster, policy), then run until Ctrl-C."""

    help = "Run web, worker and beat on this machine."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=int, default=8000)
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument(
            "--workers",
            type=int,
            default=settings.ENV.web_processes,
            help="Web processes; more than one needs PostgreSQL. Default: DESCHEDUI_WEB_PROCESSES.",
        )

    def handle(self, *args: Any, port: int, host: str, workers: int, **options: Any) -> None:
        _refuse(workers)
        call_command("migrate", verbosity=0)
        refuse_start("serve")
        call_command("collectstatic", interactive=False, verbosity=0)
        call_command("bootstrap")
        with supervisor.Supervisor(ROOT / "var" / "logs") as processes:
            processes.start(supervisor.web(port, host=host, processes=workers))
            processes.start(supervisor.worker(settings.ENV.worker_concurrency))
            self.stdout.write(f"deschedui is on http://{host}:{port}/ (logs in var/logs; Ctrl-C ends it)")
            try:
                processes.watch()
            except supervisor.Interrupted:
                self.stdout.write("ending")


def _refuse(workers: int) -> None:
    if not 1 <= workers <= 64:
        raise CommandError("--workers is between 1 and 64.")
    for sentence in [] if settings.ENV.demo else sqlite_objection(settings.ENV.database_url, workers):
        raise CommandError(sentence)
