"""Logging that never shows a door's token: a path token lets its bearer ask (design.md section 6)."""

import logging
import re
from collections.abc import MutableMapping
from typing import Any

# Doubled slashes are read like single ones, and whoever mistypes the address has sent the token all the same.
_DOOR_PATH = re.compile(r"(/doors/+)(?!evict\b)[^/\s?\"']+(/|\b)", re.IGNORECASE)


def mask_door_tokens(text: str) -> str:
    """Replace the token in every ``/doors/<token>/…`` of ``text``."""
    return _DOOR_PATH.sub(r"\1***\2", text)


def mask_event(_logger: Any, _name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A structlog processor: masks what is about to be written, tracebacks included."""
    for key, value in event.items():
        if isinstance(value, str):
            event[key] = mask_door_tokens(value)
    return event


class MaskDoorTokens(logging.Filter):
    """Masks path tokens in messages and their arguments before any handler writes them."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.msg, str):
            record.msg = mask_door_tokens(record.msg)
        if isinstance(record.args, tuple):
            record.args = tuple(_masked(arg) for arg in record.args)
        elif record.args:
            record.args = {key: _masked(arg) for key, arg in record.args.items()}
        return True


def _masked(value: Any) -> Any:
    """A number stays a number; what becomes text only when it is written (an exception, a path) is looked at too."""
    if value is None or isinstance(value, int | float):
        return value
    masked = mask_door_tokens(str(value))
    return value if masked == str(value) else masked
