"""Reading what an extender answered, as strictly as a gate must: nothing malformed is ever a yes.

Field names match without regard to case and `null` leaves a field unset, as in Go's decoder. Stricter than
Go: invalid UTF-8, NaN, and two values of `allow` or `error` that differ are refused. Pure.
"""

import json
from dataclasses import dataclass
from typing import Any, Final

from deschedui.extender.texts import clean

ANSWER_LIMIT: Final = 1024 * 1024  # bytes of an answer's body that are read
_BOM: Final = b"\xef\xbb\xbf"
_SPACE: Final = " \t\r\n"


@dataclass(frozen=True, slots=True)
class Answer:
    """A well-formed answer. `error` is empty unless the extender reported one."""

    allow: bool
    reason: str
    error: str


class InvalidAnswer(ValueError):  # noqa: N818 - what it is, not that it went wrong
    """The body is not one JSON object of the extender protocol; says why, in words for its author."""


class _Object(list[tuple[str, Any]]):
    """A JSON object as its pairs, duplicates included."""


class _Number(str):
    """A JSON number as written: it is never counted with, and an endless one costs nothing."""

    __slots__ = ()


def read_answer(body: bytes) -> Answer:
    """Parse one answer. Raises `InvalidAnswer`."""
    fields = _fields(_document(_text(body)))
    error = _string(fields, "error")
    return Answer(allow=_allow(fields, error), reason=_string(fields, "reason"), error=error)


def _text(body: bytes) -> str:
    if len(body) > ANSWER_LIMIT:
        raise InvalidAnswer("the body is larger than 1 MiB")
    if body.startswith(_BOM):
        raise InvalidAnswer("the body starts with a byte order mark (BOM), which JSON forbids")
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidAnswer(f"the body is not UTF-8: byte {error.start} is wrong") from None
    if not text.strip(_SPACE):
        raise InvalidAnswer("the body is empty (EOF), allow is missing")
    return text


def _no_constant(name: str) -> None:
    raise InvalidAnswer(f"the body is not JSON: {name} is no JSON value")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_Object, parse_int=_Number, parse_float=_Number, parse_constant=_no_constant
)


def _document(text: str) -> _Object:
    start = len(text) - len(text.lstrip(_SPACE))
    try:
        value, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise InvalidAnswer(f"the body is not JSON: {error.msg} at {where}{_looks_like(text)}") from None
    except RecursionError:
        raise InvalidAnswer("the body is nested too deeply") from None
    if text[end:].strip(_SPACE):
        raise InvalidAnswer(f"trailing data after the first JSON value, at character {end}")
    if not isinstance(value, _Object):
        raise InvalidAnswer(f"allow is missing: the body is {_kind(value)}, not one JSON object")
    return value


def _looks_like(text: str) -> str:
    return " (it looks like HTML)" if text.lstrip(_SPACE).startswith("<") else ""


def _fields(document: _Object) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {"allow": [], "reason": [], "error": []}
    for key, value in document:
        if (name := key.casefold()) in found:
            found[name].append(value)
    return found


def _allow(fields: dict[str, list[Any]], error: str) -> bool:
    values = fields["allow"]
    said = f"; the extender's error: {clean(error, 300)}" if error else ""
    for value in values:
        if value is not None and not isinstance(value, bool):
            raise InvalidAnswer(f"allow must be a boolean, got {_kind(value)}{said}")
    if len(set(values)) > 1:
        raise InvalidAnswer(f"allow is there more than once with different values{said}")
    if not values or values[0] is None:
        raise InvalidAnswer(f"allow is {'null' if values else 'missing'}, it must be a boolean{said}")
    return bool(values[0])


def _string(fields: dict[str, list[Any]], name: str) -> str:
    values = [value for value in fields[name] if value is not None]
    for value in values:
        if not isinstance(value, str) or isinstance(value, _Number):
            raise InvalidAnswer(f"{name} must be text, got {_kind(value)}")
    if name == "error" and len(set(values)) > 1:
        raise InvalidAnswer("error is there more than once with different values")
    return values[-1] if values else ""


def _kind(value: object) -> str:
    if value is None:
        return "null"
    kinds: tuple[tuple[type, str], ...] = (
        (bool, "boolean"),
        (_Number, "number"),
        (str, "string"),
        (_Object, "object"),
        (list, "array"),
    )
    return next(name for kind, name in kinds if isinstance(value, kind))
