"""``python -m tests.real.on_postgresql tests/domain …``: run tests with PostgreSQL as their database.

``DESCHEDUI_TEST_DATABASE_URL`` names a server that runs already; otherwise one is started for this run.
"""

import os
import subprocess
import sys
from collections.abc import Sequence

from tests.real.services import IN_CI, Missing, postgresql

VARIABLE = "DESCHEDUI_TEST_DATABASE_URL"


def main(arguments: Sequence[str]) -> int:
    """The exit code of pytest; 0 with a word where PostgreSQL is missing outside CI."""
    if os.environ.get(VARIABLE):
        return _pytest(arguments, os.environ[VARIABLE])
    try:
        with postgresql() as url:
            return _pytest(arguments, url)
    except Missing as missing:
        sys.stderr.write(f"skipped: {missing}\n")
        return int(IN_CI)


def _pytest(arguments: Sequence[str], url: str) -> int:
    return subprocess.run(
        [sys.executable, "-m", "pytest", *arguments], env={**os.environ, VARIABLE: url}, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
