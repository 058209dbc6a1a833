"""Runs a handful of processes as one: starts them in order, ends them all when one ends or on Ctrl-C."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

END_SECONDS = 15.0


@dataclass(frozen=True)
class Program:
    """One process: what to run, and with which variables beside our own."""

    name: str
    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)


class Interrupted(BaseException):
    """Somebody asked us to end (SIGTERM, SIGINT, SIGHUP)."""


class Supervisor:
    """Owns its processes: whatever happens in the ``with`` block, none of them outlives it.

    Each writes to ``<logs>/<name>.log``. They get sessions of their own, so that a Ctrl-C reaches only us and
    they end in order, last started first.
    """

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._running: list[tuple[Program, subprocess.Popen[bytes]]] = []
        self._files = ExitStack()

    def __enter__(self) -> Self:
        self._logs.mkdir(parents=True, exist_ok=True)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, _interrupt)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        for _, process in reversed(self._running):
            _end(process)
        self._files.close()

    def start(self, program: Program) -> None:
        """Start one more process."""
        log = self._files.enter_context((self._logs / f"{program.name}.log").open("ab"))
        process = subprocess.Popen(
            program.argv,
            env={**os.environ, **program.env},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._running.append((program, process))

    def wait_until(self, ready: Callable[[], bool], what: str, *, seconds: float = 60.0) -> None:
        """Wait until ``ready()``; a process that ends meanwhile, or no answer in time, is the end of all."""
        deadline = time.monotonic() + seconds
        while not ready():
            self._raise_if_one_ended()
            if time.monotonic() > deadline:
                raise SystemExit(f"{what} did not come up within {seconds:.0f} s; see {self._logs}")
            time.sleep(0.1)

    def watch(self) -> None:
        """Return never; raises when a process ends by itself."""
        while True:
            self._raise_if_one_ended()
            time.sleep(0.5)

    def _raise_if_one_ended(self) -> None:
        for program, process in self._running:
            if process.poll() is not None:
                log = self._logs / f"{program.name}.log"
                raise SystemExit(
                    f"{program.name} ended with code {process.returncode}; its last words:\n{_tail(log)}"
                )


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise Interrupted


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a process and what it started (its own session), first politely."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _tail(log: Path, lines: int = 15) -> str:
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])


def web(port: int, *, host: str = "127.0.0.1", processes: int = 1) -> Program:
    """Pages, API and doors."""
    return Program(
        "web",
        [
            *(
                sys.executable,
                "-m",
                "uvicorn",
                "deschedui.asgi:application",
                "--host",
                host,
                "--port",
                str(port),
            ),
            *("--workers", str(processes), "--no-access-log", "--no-proxy-headers", "--lifespan", "off"),
            *("--timeout-graceful-shutdown", "5", "--http", "decisions.doors.protocol:DoorProtocol"),
            *("--loop", "decisions.doors.loop:DoorLoop"),
        ],
    )


def worker(concurrency: int) -> Program:
    """Worker and beat in one process: what one machine needs."""
    return Program(
        "worker",
        [
            *(sys.executable, "-m", "celery", "-A", "deschedui", "worker", "-B", "-P", "threads"),
            *("-c", str(concurrency), "--without-gossip", "--without-mingle"),
            *("--loglevel", "INFO", "--schedule", str(_schedule())),
        ],
    )


def _schedule() -> Path:
    from deschedui.settings import ENV  # noqa: PLC0415 - settings are read when something is started

    folder = (
        Path(ENV.broker_url.removeprefix("filesystem://"))
        if ENV.broker_url.startswith("filesystem")
        else Path("var")
    )
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "beat-schedule"
