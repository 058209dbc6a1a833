"""Logging that never shows a door's token: a path token lets its bearer ask (design.md section 6)."""

import logging
import re
from typing import Any

_DOOR_PATH = re.compile(r"(/doors/)(?!evict\b)[^/\s?\"']+(/|\b)")


def mask_door_tokens(text: str) -> str:
    """Replace the token in every ``/doors/<token>/…`` of ``text``."""
    return _DOOR_PATH.sub(r"\1***\2", text)


class MaskDoorTokens(logging.Filter):
    """Masks path tokens in messages and their arguments before any handler writes them."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.msg, str):
            record.msg = mask_door_tokens(record.msg)
        if isinstance(record.args, tuple):
            record.args = tuple(_masked(arg) for arg in record.args)
        return True


def _masked(value: Any) -> Any:
    return mask_door_tokens(value) if isinstance(value, str) else value
