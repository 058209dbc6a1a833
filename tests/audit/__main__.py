"""``make audit``: are there known weaknesses of what the lock file pins? By pip-audit, with the network or without.

With the network pip-audit asks OSV about each pinned version. Without: ``make audit OSV=<folder or zip>``, with the
advisories that somebody carried over. Exit code 0: none is known; 1: some are, they are printed; 2: nobody could be
asked, which is no "none".
"""

import argparse
import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from tests.audit.advisories import Advisories, NoAdvisories, served

EXPORT = "https://osv-vulnerabilities.storage.googleapis.com/PyPI/all.zip"
OLD_DAYS = 30


def main(arguments: list[str]) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="make audit", description=__doc__)
    parser.add_argument("--lock", type=Path, default=Path("requirements.lock"))
    parser.add_argument("--osv", type=Path, help="Advisories in OSV form: a folder, or OSV's all.zip.")
    options = parser.parse_args(arguments)
    return _offline(options.lock, options.osv) if options.osv else _online(options.lock)


def _online(lock: Path) -> int:
    done = _pip_audit(lock)
    if done.returncode and "Traceback" in done.stderr + done.stdout:
        _say(
            f"OSV cannot be asked from here. Copy {EXPORT} from where there is a network: make audit OSV=all.zip"
        )
        return 2
    return _told(done)


def _offline(lock: Path, place: Path) -> int:
    try:
        advisories = Advisories.read(place)
    except (NoAdvisories, OSError, ValueError) as problem:
        _say(f"no audit: {problem}")
        return 2
    _say(
        f"{advisories.count} advisories of {place}, the newest of {advisories.newest or 'no date'}{_age(advisories)}"
    )
    with served(advisories) as url:
        return _told(_pip_audit(lock, "--osv-url", url))


def _age(advisories: Advisories) -> str:
    try:
        age = datetime.now(UTC) - datetime.fromisoformat(advisories.newest)
    except ValueError:
        return ""
    return f": {age.days} days old, so newer weaknesses are not in it" if age.days > OLD_DAYS else ""


def _pip_audit(lock: Path, *more: str) -> "subprocess.CompletedProcess[str]":
    """The hashes are the lock's own, so nothing is resolved, downloaded or built."""
    with tempfile.TemporaryDirectory() as cache:
        argv = [
            sys.executable,
            "-m",
            "pip_audit",
            "--requirement",
            str(lock),
            "--require-hashes",
            "--disable-pip",
        ]
        argv += ["--vulnerability-service", "osv", "--progress-spinner", "off", "--cache-dir", cache, *more]
        return subprocess.run(
            argv, env={**os.environ, "NO_PROXY": "127.0.0.1"}, capture_output=True, text=True, check=False
        )


def _told(done: "subprocess.CompletedProcess[str]") -> int:
    _say(done.stdout.strip())
    _say(done.stderr.strip())
    return done.returncode


def _say(text: str) -> None:
    if text:
        sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
