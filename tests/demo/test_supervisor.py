"""The supervisor of `make demo` and `make run`: its processes live and end together."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deschedui.config import ROOT

SUPERVISED = """
import sys
from pathlib import Path
from deschedui.supervisor import Interrupted, Program, Supervisor

with Supervisor(Path(sys.argv[1])) as processes:
    try:
        for name, program in zip(("first", "second"), sys.argv[2:]):
            processes.start(Program(name, [sys.executable, "-c", program]))
        print(*(process.pid for _, process in processes._running), flush=True)
        processes.watch()
    except Interrupted:
        print("ending")
"""
SLEEP = "import time; time.sleep(600)"


def supervise(logs: Path, *programs: str) -> "subprocess.Popen[str]":
    """A supervisor in a process of its own, since it takes over the signals."""
    argv = [sys.executable, "-c", SUPERVISED, str(logs), *programs]
    return subprocess.Popen(argv, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def pids_of(supervisor: "subprocess.Popen[str]") -> list[int]:
    """The processes that it has started."""
    assert supervisor.stdout is not None
    return [int(pid) for pid in supervisor.stdout.readline().split()]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_whoever_ends_it_ends_them_all(tmp_path: Path, number: int) -> None:
    supervisor = supervise(tmp_path, SLEEP, SLEEP)
    pids = pids_of(supervisor)

    supervisor.send_signal(number)
    said, _ = supervisor.communicate(timeout=30)

    assert (supervisor.returncode, said) == (0, "ending\n")
    assert [is_alive(pid) for pid in pids] == [False, False]


def test_one_that_ends_ends_the_others_and_its_last_words_are_shown(tmp_path: Path) -> None:
    supervisor = supervise(tmp_path, SLEEP, "print('the disk is full'); raise SystemExit(3)")
    pids = pids_of(supervisor)

    _, complaint = supervisor.communicate(timeout=30)

    assert supervisor.returncode == 1
    assert "second ended with code 3; its last words:\nthe disk is full" in complaint
    assert not is_alive(pids[0])


def test_a_second_ctrl_c_does_not_leave_anything_behind(tmp_path: Path) -> None:
    slow_to_end = (
        f"import signal, time; signal.signal(signal.SIGTERM, lambda *_: time.sleep(1) or exit()); {SLEEP}"
    )
    supervisor = supervise(tmp_path, slow_to_end)
    (pid,) = pids_of(supervisor)
    time.sleep(0.3)

    supervisor.send_signal(signal.SIGINT)
    time.sleep(0.3)
    supervisor.send_signal(signal.SIGINT)
    supervisor.communicate(timeout=30)

    assert supervisor.returncode == 0
    assert not is_alive(pid)
