"""Text from outside, made safe to store, show and send: bounded, on one line, without secrets in URLs."""

from __future__ import annotations

import re
from typing import Final

from deschedui import masking
from deschedui.text import visible

_BREAKS: Final = re.compile(r"[ \t\r\n]+")
_URL: Final = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]{0,20}://)(?P<user>[^\s/@\"']*@)?(?P<host>[^\s/?#\"']+)"
    r"(?P<rest>[^\s\"']*)"
)


def one_line(value: str, limit: int) -> str:
    """The text on one line of at most ``limit`` characters, hidden ones as escapes; a cut shows as ``…``."""
    # Far longer texts are cut before the patterns run, so that their length costs nothing.
    short = visible(_BREAKS.sub(" ", value[: limit * 4 + 64])).strip()
    return short if len(short) <= limit else f"{short[: limit - 1].rstrip()}…"


def cut_bytes(value: str, limit: int) -> str:
    """The longest beginning of the text that fits ``limit`` bytes of UTF-8; a cut shows as ``…``."""
    data = value.encode("utf-8", "replace")
    if len(data) <= limit:
        return data.decode("utf-8")
    mark = "…".encode()
    return (data[: limit - len(mark)].decode("utf-8", "ignore").rstrip()) + "…"


def mask_urls(value: str) -> str:
    """Keep scheme and host of every URL; user, path and query may hold a token."""
    return _URL.sub(lambda found: f"{found['scheme']}{found['host']}{'/…' if found['rest'] else ''}", value)


def mask_secrets(value: str) -> str:
    """Mask what carries a secret by its form: door tokens, ``user:password@``, ``Bearer …`` and their like."""
    return masking.masked(value)


def sentence(value: str, limit: int = 1000) -> str:
    """Text of an API server, a webhook or a library as a message for people."""
    return one_line(mask_secrets(value[: limit * 8]), limit)
