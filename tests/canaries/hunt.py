"""Canaries: random strings that are put where secrets live, and looked for in everything that is kept or shown.

A canary is looked for plainly, by its first half (a text that was cut), in base64 at each offset, and in what is
compressed.
"""

from __future__ import annotations

import base64
import logging
import secrets
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.db import connection

from deschedui.logs import MaskDoorTokens

Evidence = tuple[str, str]  # where, and the text that was found there


@dataclass
class Canaries:
    """The secrets of one hunt by what they are; ``new`` makes one, ``add`` takes one that the product made."""

    secrets: dict[str, str] = field(default_factory=dict)

    def new(self, name: str) -> str:
        """A random string that no form gives away: letters and digits."""
        return self.add(name, "Zq" + secrets.token_hex(12))

    def add(self, name: str, secret: str) -> str:
        """A token, a cookie, a key."""
        assert len(secret) >= 10
        self.secrets[name] = secret
        return secret

    def found(self, evidence: Iterable[Evidence]) -> list[str]:
        """``what in where`` for each that got out, with what stands around it."""
        return sorted({
            f"{name} in {where}: …{_around(text, form)}…"
            for where, text in evidence
            for name, secret in self.secrets.items()
            for form in _forms(secret)
            if form in text
        })  # fmt: skip


def _forms(secret: str) -> list[str]:
    encoded = [base64.b64encode(b"\0" * shift + secret.encode()).decode() for shift in range(3)]
    # The characters at both ends depend on what stands beside.
    inner = [text[(0, 2, 3)[shift] : -4].lstrip("=") for shift, text in enumerate(encoded)]
    return [secret, secret[: max(10, len(secret) // 2)], *inner]


def _around(text: str, form: str) -> str:
    at = text.index(form)
    return text[max(0, at - 80) : at + len(form) + 20].replace("\n", "⏎")


# --- where to look ----------------------------------------------------------------------------------------


def database() -> Iterator[Evidence]:
    """Every value of every table, compressed ones opened."""
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")  # noqa: S608 - our own tables
            names = [column[0] for column in cursor.description or ()]
            for row in cursor.fetchall():
                for name, value in zip(names, row, strict=True):
                    yield f"{table}.{name}", opened(value)


def opened(value: Any) -> str:
    """A value as text; bytes that are compressed are opened."""
    if not isinstance(value, bytes | memoryview):
        return str(value)
    data = bytes(value)
    try:
        return zlib.decompressobj(wbits=47).decompress(data).decode("utf-8", "replace")
    except zlib.error:
        return data.decode("utf-8", "replace")


@contextmanager
def logs() -> Iterator[list[str]]:
    """What the product's own handlers would write at level DEBUG: to the console, and the record."""
    lines: list[str] = []
    logging_settings: Any = settings.LOGGING
    made = dict(logging_settings["formatters"]["line"])
    console = logging.Handler(logging.DEBUG)
    console.setFormatter(made.pop("()")(**made))
    console.addFilter(MaskDoorTokens())
    console.emit = lambda record: lines.append(console.format(record))  # type: ignore[method-assign]
    root, record = logging.getLogger(), logging.getLogger("deschedui.record")
    level = root.level
    root.setLevel(logging.DEBUG)
    for logger in (root, record):
        logger.addHandler(console)
    try:
        yield lines
    finally:
        root.setLevel(level)
        for logger in (root, record):
            logger.removeHandler(console)
