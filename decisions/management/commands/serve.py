"""``manage.py serve``: one machine runs it all: web, worker and beat, with an embedded broker or Redis."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, call_command

from deschedui import supervisor
from deschedui.config import ROOT


class Command(BaseCommand):
    """Migrate, make what the environment names (cluster, policy), then run until Ctrl-C."""

    help = "Run web, worker and beat on this machine."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=int, default=8000)
        parser.add_argument("--host", default="127.0.0.1")

    def handle(self, *args: Any, port: int, host: str, **options: Any) -> None:
        call_command("migrate", verbosity=0)
        call_command("collectstatic", interactive=False, verbosity=0)
        call_command("bootstrap")
        with supervisor.Supervisor(ROOT / "var" / "logs") as processes:
            processes.start(supervisor.web(port, host=host))
            processes.start(supervisor.worker(settings.ENV.worker_concurrency))
            self.stdout.write(f"deschedui is on http://{host}:{port}/ (logs in var/logs; Ctrl-C ends it)")
            try:
                processes.watch()
            except supervisor.Interrupted:
                self.stdout.write("ending")
