"""What is logged shows no secret: each finished line, its traceback included, goes through :mod:`deschedui.masking`."""

import logging
import sys
import textwrap
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any

from deschedui import masking
from deschedui.masking import door_tokens as mask_door_tokens
from deschedui.text import visible

__all__ = [
    "MaskDoorTokens",
    "hide",
    "hiding",
    "indent_traceback",
    "mask",
    "mask_door_tokens",
    "mask_event",
    "mask_line",
    "mask_uncaught",
    "show_event",
]

# Secrets of this process that nothing else would recognise, such as the database's password; see hide().
_known = masking.Known(())
_of_this_context: ContextVar[Callable[[], Iterable[str]] | None] = ContextVar("hidden", default=None)


def hide(values: Iterable[str]) -> None:
    """From now on these values are hidden in whatever is logged or reported, whatever they look like."""
    global _known  # noqa: PLW0603 - the settings say it once, for the whole process
    _known = masking.Known(value for value in values if value)


@contextmanager
def hiding(values: Callable[[], Iterable[str]]) -> Iterator[None]:
    """Within the block, in this context alone, these values are hidden too; asked for when something is logged."""
    token = _of_this_context.set(values)
    try:
        yield
    finally:
        _of_this_context.reset(token)


def mask(text: str) -> str:
    """A text as it may be logged, printed or mailed."""
    values = _of_this_context.get()
    hidden = _known.hide(masking.masked(text))
    return hidden if values is None else masking.Known(values()).hide(hidden)


def mask_event(_logger: Any, _name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A structlog processor: masks the fields of an event, nested ones too, before they are rendered."""
    for key, value in event.items():
        event[key] = _masked_field(value)
    return event


def _masked_field(value: Any) -> Any:
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        return {_masked_field(key): _masked_field(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_masked_field(item) for item in value]
    return value


_OF_LINES = ("exception", "stack")


def show_event(_logger: Any, _name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A structlog processor: hidden characters of every field as escapes, so that none begins a line of its own.

    Only tracebacks keep their lines.
    """
    for key, value in event.items():
        event[key] = _shown_field(value, multiline=key in _OF_LINES)
    return event


def _shown_field(value: Any, *, multiline: bool = False) -> Any:
    if isinstance(value, str):
        return visible(value, multiline=multiline)
    if isinstance(value, dict):
        return {_shown_field(key): _shown_field(item) for key, item in value.items()}
    return [_shown_field(item) for item in value] if isinstance(value, list | tuple) else value


def indent_traceback(_logger: Any, _name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A structlog processor for the console: a line that an error quotes cannot pass for an event of its own."""
    for key in _OF_LINES:
        if isinstance(event.get(key), str):
            event[key] = textwrap.indent(event[key], "  | ", predicate=lambda _line: True)
    return event


def mask_line(_logger: Any, _name: str, line: str) -> str:
    """The last structlog processor: masks the finished line, so that nothing in it was overlooked."""
    return mask(line)


class MaskDoorTokens(logging.Filter):
    """Masks messages and their arguments for handlers whose formatter is not ours, such as one that sends mail."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.msg, str):
            record.msg = mask(record.msg)
        if isinstance(record.args, tuple):
            record.args = tuple(_masked(arg) for arg in record.args)
        elif record.args:
            record.args = {key: _masked(arg) for key, arg in record.args.items()}
        return True


def _masked(value: Any) -> Any:
    """A number stays a number; what becomes text only when it is written (an exception, a path) is looked at too."""
    if value is None or isinstance(value, int | float):
        return value
    masked = mask(str(value))
    return value if masked == str(value) else masked


# --- what nobody catches ----------------------------------------------------------------------------------


def mask_uncaught() -> None:
    """Also mask the traceback that Python itself writes when an exception ends a process or a thread."""
    sys.excepthook = _write_masked
    threading.excepthook = _write_thread
    sys.unraisablehook = _write_unraisable


def _write_masked(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    sys.stderr.write(visible(mask("".join(traceback.format_exception(kind, error, trace))), multiline=True))


def _write_thread(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is not None and not isinstance(args.exc_value, SystemExit):
        name = args.thread.name if args.thread else "?"
        sys.stderr.write(f"Exception in thread {name}:\n")
        _write_masked(args.exc_type, args.exc_value, args.exc_traceback)


def _write_unraisable(args: "sys.UnraisableHookArgs") -> None:
    if args.exc_value is not None:
        sys.stderr.write(f"{args.err_msg or 'Exception ignored in'}: ")
        _write_masked(args.exc_type, args.exc_value, args.exc_traceback)
