"""This installation's id: a random value that is not in the database, or a copy of the database would have it too."""

import os
import secrets
from pathlib import Path
from typing import Final

PATTERN: Final = r"^[A-Za-z0-9._-]{16,128}$"


def new_id() -> str:
    """A new one."""
    return secrets.token_hex(16)


def kept_in(path: Path) -> str:
    """The id in a file that only its owner reads; made at the first call, and once, whoever calls.

    Raises:
        OSError: it can be neither read nor made.
    """
    if not path.exists():
        _make(path)
    return path.read_text(encoding="utf-8").strip()


def _make(path: Path) -> None:
    """Written whole before it has its name: nobody reads half an id."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(new_id() + "\n")
        os.link(draft, path)
    except FileExistsError:
        pass  # Another process was first; its id is the one.
    finally:
        draft.unlink()
