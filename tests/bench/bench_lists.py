"""Reading a cluster's pods: the engine's structs against the official client's models, each in its own process."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TypedDict

from tests.bench.lines import BenchLine, wanted
from tests.bench.list_server import running

PODS = 5_000
ROOT = Path(__file__).resolve().parents[2]
TIME = f"lists-time: {PODS} pods of 10 kB over HTTP, by pages of 500; reference typed models"
MEMORY = f"lists-memory: {PODS} pods of 10 kB, peak of the process; reference typed models"
RAW_TIME = f"lists-raw-time: {PODS} pods of 10 kB with the bytes of each kept; reference typed models"
RAW_MEMORY = f"lists-raw-memory: {PODS} pods of 10 kB with the bytes of each kept; reference typed models"


class Measured(TypedDict):
    """What the reading process prints."""

    count: int
    seconds: float
    peak_mb: float


def main() -> list[BenchLine]:
    """The lines of this module."""
    if not any(wanted(name, __name__) for name in (TIME, MEMORY, RAW_TIME, RAW_MEMORY)):
        return []
    with running(PODS) as url:
        ours, raw, typed = (_read(way, url) for way in ("ours", "ours_raw", "typed"))
    return [
        BenchLine(TIME, ours["seconds"], typed["seconds"], bound=0.1),
        BenchLine(MEMORY, ours["peak_mb"], typed["peak_mb"], bound=0.25, unit="MB"),
        BenchLine(RAW_TIME, raw["seconds"], typed["seconds"], bound=0.15),
        BenchLine(RAW_MEMORY, raw["peak_mb"], typed["peak_mb"], bound=0.35, unit="MB"),
    ]


def _read(way: str, url: str) -> Measured:
    command = [sys.executable, "-m", "tests.bench.list_reader", way, url]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environ, check=True, capture_output=True, text=True)
    measured: Measured = json.loads(done.stdout.splitlines()[-1])
    assert measured["count"] == PODS
    return measured


if __name__ == "__main__":
    for line in main():
        print(line)
