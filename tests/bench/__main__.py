"""Run the benchmarks of this folder: `python -m tests.bench`, one of them with `ONLY=<name>`.

ONLY is the name of a module (`extender`, `bench_extender`) or a part of a line's name. Exits with 1 when a bound is
not met, with 2 when ONLY matches nothing.
"""

import importlib
import os
import sys
from pathlib import Path
from types import ModuleType

from tests.bench.lines import BenchLine, Unavailable, short_name, wanted


def _modules() -> list[str]:
    return sorted(path.stem for path in Path(__file__).parent.glob("bench_*.py"))


def _chosen() -> list[str]:
    only = os.environ.get("ONLY", "").strip().lower()
    named = [name for name in _modules() if only in {name, short_name(name)}]
    if named:
        os.environ["ONLY"] = short_name(named[0])
    return named or _modules()


def _lines(module: ModuleType) -> list[BenchLine]:
    try:
        return [line for line in module.main() if wanted(line.name, module.__name__)]
    except Unavailable as missing:
        print(f"{short_name(module.__name__)}: skipped, {missing}", flush=True)
        return []


def run() -> int:
    """Print a line for each; the exit code."""
    lines: list[BenchLine] = []
    for name in _chosen():
        for line in _lines(importlib.import_module(f"tests.bench.{name}")):
            print(line, flush=True)
            lines.append(line)
    if not lines:
        print("no benchmark has run: ONLY is a module of tests/bench or a part of a line's name", flush=True)
        return 2
    return 0 if all(line.met for line in lines) else 1


if __name__ == "__main__":
    sys.exit(run())
