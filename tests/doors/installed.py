"""The web process as it is started in production, on a database of its own, with callers; a context manager.

As a program (``python -m tests.doors.installed``) it makes cluster and callers in the environment's database.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

import django

from deschedui import supervisor
from deschedui.config import ROOT
from tests.real.ports import free_port

START_SECONDS = 60.0


def environment_of(folder: Path, **more: str) -> dict[str, str]:
    """The variables of an installation in a folder: SQLite, an embedded broker."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "DJANGO_SETTINGS_MODULE": "deschedui.settings",
        "DESCHEDUI_SECRET_KEY": "for-tests-only-and-long-enough-not-to-be-warned-about",
        "DESCHEDUI_INSTALLATION_ID": "installation-of-the-tests",
        "DESCHEDUI_ALLOWED_HOSTS": "localhost,127.0.0.1",
        "DESCHEDUI_PUBLIC_URL": "http://localhost",
        "DESCHEDUI_DATABASE_URL": f"sqlite:///{folder / 'deschedui.sqlite3'}",
        "DESCHEDUI_BROKER_URL": f"filesystem://{folder / 'broker'}",
        "KUBECONFIG": "/dev/null",
        **more,
    }


def install(environment: Mapping[str, str], *, silent_kubeconfig: str = "/dev/null") -> dict[str, str]:
    """Migrate, and make two clusters with callers; gives their tokens by what is special about them.

    ``silent`` is the only one of the second cluster, which is reached with ``silent_kubeconfig``.
    """
    _python(environment, "manage.py", "migrate", "--verbosity", "0")
    printed = _python(environment, "-m", "tests.doors.installed", silent_kubeconfig)
    return dict(json.loads(printed.splitlines()[-1]))  # after the record's own lines


def _python(environment: Mapping[str, str], *arguments: str) -> str:
    argv = [sys.executable, *arguments]
    done = subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(arguments)}: {done.stderr[-3000:]}"
    return done.stdout


class Web:
    """One web process, started as ``manage.py serve`` starts it."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._log, self._environment = folder / "web.log", environment
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def start(self) -> None:
        """Start it, and wait until it listens."""
        with self._log.open("ab") as log:
            argv = supervisor.web(self.port).argv
            self.process = subprocess.Popen(
                argv, cwd=ROOT, env=self._environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        deadline = time.monotonic() + START_SECONDS
        while not self.listens():
            assert self.process.poll() is None, f"web ended\n{self.words()}"
            assert time.monotonic() < deadline, f"web does not listen\n{self.words()}"
            time.sleep(0.05)

    def listens(self) -> bool:
        """Whether it takes connections."""
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def terminate(self) -> None:
        """Ask it to end, as ``docker stop`` and the kubelet do."""
        if self.process is not None:
            self.process.terminate()

    def end(self) -> None:
        """End it, at last by force."""
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)
        self.process = None

    def words(self) -> str:
        """The end of its log."""
        return self._log.read_text(encoding="utf-8", errors="replace")[-5000:]


def main(silent_kubeconfig: str) -> None:
    """Make the clusters, armed, and their callers; print the tokens as JSON."""
    django.setup()
    from decisions.models import Cluster
    from decisions.services import access
    from decisions.services.actors import SYSTEM

    now = datetime.now(UTC)
    prod = Cluster.objects.create(name="prod", armed=True)
    silent = Cluster.objects.create(name="silent", armed=True, kubeconfig=silent_kubeconfig)
    tokens = {}
    for name in ("plain", "revoked", "expired", "path", "silent"):
        caller = access.register_caller(
            cluster=silent if name == "silent" else prod,
            name=name,
            timeout_seconds=3.0,
            path_token_allowed=name == "path",
            by=SYSTEM,
            now=now,
        )
        expires = now + timedelta(milliseconds=1) if name == "expired" else None
        _, tokens[name] = access.issue_caller_token(caller=caller, expires_at=expires, by=SYSTEM, now=now)
        if name == "revoked":
            access.revoke_caller(caller_id=caller.pk, by=SYSTEM, now=now)
    sys.stdout.write(f"\n{json.dumps(tokens)}\n")


if __name__ == "__main__":
    main(sys.argv[1])
