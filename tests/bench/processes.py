"""Processes of a benchmark: each ends with its block, by its own id."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
READY_SECONDS = 60.0


@contextmanager
def process(
    *argv: str, log: Path, env: Mapping[str, str], ready: Callable[[], bool]
) -> Iterator["subprocess.Popen[bytes]"]:
    """`python -m <argv>`, from when it is ready on. What it prints goes to ``log``."""
    with log.open("ab") as output:
        started = subprocess.Popen(
            [sys.executable, "-m", *argv],
            env=_environ(env),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        _wait(ready, started, f"{argv[0]} did not come up", log)
        yield started
    finally:
        _end(started)


def run(*argv: str, env: Mapping[str, str], text: str = "") -> str:
    """`python -m <argv>` to its end, with ``text`` as its input; the last line of what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", *argv],
        env=_environ(env),
        cwd=ROOT,
        input=text,
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"{argv[0]} failed: {done.stderr[-2_000:]}")
    return done.stdout.splitlines()[-1] if done.stdout else ""


def listens(port: int) -> Callable[[], bool]:
    """Whether something answers on this port of 127.0.0.1."""

    def answers() -> bool:
        with socket.socket() as client:
            client.settimeout(0.5)
            return client.connect_ex(("127.0.0.1", port)) == 0

    return answers


def _environ(env: Mapping[str, str]) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **env}


def _wait(ready: Callable[[], bool], started: "subprocess.Popen[bytes]", what: str, log: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not ready():
        if started.poll() is not None or time.monotonic() > deadline:
            words = log.read_text(encoding="utf-8", errors="replace")[-2_000:]
            raise RuntimeError(f"{what}: {words}")
        time.sleep(0.05)


def _end(started: "subprocess.Popen[bytes]") -> None:
    started.terminate()
    try:
        started.wait(15)
    except subprocess.TimeoutExpired:
        started.kill()
        started.wait()
