"""Takes each defence out of a copy of the checkout and runs the test that has to notice.

``python -m tests.threats [ID …]`` prints one line for each defence and closes with ``N passed, N failed``: passed
means that the test passes with the defence and fails without it.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.threats.defences import DEFENCES, Defence, Edit
from tests.threats.model import ROOT

SECONDS = 300
# pytest's exit codes: 0 all passed, 1 some failed. Anything else is a mistake of ours, not a proof.
PASSED, FAILED = 0, 1


def main(wanted: Sequence[str]) -> int:
    """Returns 0 where every defence was missed."""
    chosen = [defence for defence in DEFENCES if not wanted or defence.threat in wanted]
    with tempfile.TemporaryDirectory(prefix="deschedui-threats-") as folder:
        copy = copy_of_checkout(Path(folder))
        unproven = [defence for defence in chosen if not _shown(defence, copy)]
    print(f"{len(chosen) - len(unproven)} passed, {len(unproven)} failed")
    return 1 if unproven or not chosen else 0


def copy_of_checkout(folder: Path) -> Path:
    """The files that git knows, as they are now."""
    target = folder / "deschedui"
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    for name in filter(None, listing.stdout.split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    return target


def _shown(defence: Defence, copy: Path) -> bool:
    started = time.monotonic()
    with_it = run(defence.test, copy)
    texts = take_out(defence.edits, copy)
    try:
        without = run(defence.test, copy)
    finally:
        put_back(texts)
    good = (with_it, without) == (PASSED, FAILED)
    verdict = (
        "fails without it" if good else f"NOT SHOWN: pytest's exit code {with_it} with it, {without} without"
    )
    print(f"| {defence.threat} | {defence.what} | {defence.test} | {verdict} |", flush=True)
    if not good:
        print(f"  after {time.monotonic() - started:.0f} s", flush=True)
    return good


def take_out(edits: Iterable[Edit], root: Path) -> dict[Path, str]:
    """Make the edits below ``root``. Returns the files' texts as they were."""
    texts: dict[Path, str] = {}
    for edit in edits:
        path = root / edit.path
        text = path.read_text()
        texts.setdefault(path, text)
        if text.count(edit.old) != 1:
            put_back(texts)
            raise ValueError(f"{edit.path}: {edit.old!r} occurs {text.count(edit.old)} times, not once")
        path.write_text(text.replace(edit.old, edit.new))
    return texts


def put_back(texts: dict[Path, str]) -> None:
    """Undo :func:`take_out`."""
    for path, text in texts.items():
        path.write_text(text)


def run(test: str, root: Path) -> int:
    """Run one test below ``root``. Returns pytest's exit code."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:randomly",
        "-p",
        "no:cacheprovider",
        test,
    ]
    done = subprocess.run(command, cwd=root, capture_output=True, timeout=SECONDS, check=False)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
