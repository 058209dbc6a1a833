"""Processes that the campaign starts, harms and starts again; each ends by its own pid, and none outlives us."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

# Ends the process with us, even where we are killed; from util-linux.
_WITH_US: Final = ("setpriv", "--pdeathsig", "KILL")
END_SECONDS: Final = 6.0
RESTART_PAUSE: Final = 1.0


@dataclass(frozen=True)
class Program:
    """What to run.

    Args:
        account: a user to run as; PostgreSQL does not run as root.
        dead_in: seconds that it may take to end when asked.
    """

    name: str
    argv: Sequence[str]
    environment: Mapping[str, str]
    folder: Path
    account: str | None = None
    stop_signal: int = signal.SIGTERM


@dataclass
class Service:
    """A program that is to run, again and again."""

    program: Program
    log: Path
    popen: subprocess.Popen[bytes] | None = None
    wanted: bool = False
    started_at: float = 0.0
    ended_by_itself: list[str] = field(default_factory=list)

    def start(self) -> None:
        """Start it; from the main thread only, whose end it shares."""
        self.wanted, self.started_at = True, time.monotonic()
        with self.log.open("ab") as output:
            self.popen = subprocess.Popen(
                [*_WITH_US, *self.program.argv],
                cwd=self.program.folder,
                env=dict(self.program.environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                user=self.program.account,
                start_new_session=True,  # a Ctrl-C reaches us alone, and we end it
            )

    @property
    def runs(self) -> bool:
        """Whether its process is there."""
        return self.popen is not None and self.popen.poll() is None

    def kill(self) -> None:
        """``kill -9``, with its children; it stays down until it is started again."""
        self.wanted = False
        self._signal(signal.SIGKILL)
        if self.popen is not None:
            self.popen.wait(10)

    def stop(self) -> None:
        """SIGSTOP."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """SIGCONT."""
        self._signal(signal.SIGCONT)

    def end(self) -> None:
        """Ask it to end, then make it."""
        self.wanted = False
        if self.popen is None or self.popen.poll() is not None:
            return
        self._signal(signal.SIGCONT)
        self.popen.send_signal(self.program.stop_signal)
        try:
            self.popen.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def tend(self) -> None:
        """Start it again where it ended by itself, as whoever runs it in production would."""
        if not self.wanted or self.runs or time.monotonic() < self.started_at + RESTART_PAUSE:
            return
        code = self.popen.returncode if self.popen is not None else None
        self.ended_by_itself.append(f"{self.program.name} ended by itself with {code}")
        self.start()

    def _signal(self, number: int) -> None:
        if self.popen is None or self.popen.poll() is not None:
            return
        pids = [self.popen.pid, *children(self.popen.pid)]
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)


def children(pid: int) -> list[int]:
    """The processes that this one started, and theirs."""
    try:
        direct = [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
    return [each for child in direct for each in (child, *children(child))]


class Keeper:
    """All services by name."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self.services: dict[str, Service] = {}

    def add(self, program: Program) -> Service:
        """Know a program and start it."""
        service = Service(program, self._logs / f"{program.name}.log")
        self.services[program.name] = service
        service.start()
        return service

    def __getitem__(self, name: str) -> Service:
        return self.services[name]

    def tend(self) -> None:
        """Start again what ended by itself."""
        for service in self.services.values():
            service.tend()

    def ended_by_themselves(self) -> list[str]:
        """Which processes ended without being told to, a line each."""
        return [line for service in self.services.values() for line in service.ended_by_itself]

    def end_all(self) -> None:
        """End them, the last started first."""
        for service in reversed(self.services.values()):
            service.end()
