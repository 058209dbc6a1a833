"""A database of its own for a benchmark; Unavailable where PostgreSQL is not installed."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from tests.bench.lines import Unavailable
from tests.real import services

DATABASES = ("sqlite", "postgresql")


@contextmanager
def database(name: str) -> Iterator[str]:
    """Gives its URL."""
    if name == "sqlite":
        with tempfile.TemporaryDirectory(prefix="deschedui-bench-") as folder:
            yield f"sqlite:///{folder}/bench.sqlite3"
        return
    try:
        with services.postgresql() as url:
            yield url
    except services.Missing as missing:
        raise Unavailable(str(missing)) from missing
