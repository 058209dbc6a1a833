"""What a plain YAML scalar means to the Go library that upstream reads its policy with: YAML 1.1, nearly."""

import math
import re
from decimal import Decimal
from typing import Final

from deschedui.descheduler.policy.nodes import Kind

_WORDS: Final = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), (Kind.NULL, "null")),
    **dict.fromkeys(
        ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), (Kind.BOOL, "true")
    ),
    **dict.fromkeys(
        ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), (Kind.BOOL, "false")
    ),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), (Kind.NUMBER, "NaN")),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), (Kind.NUMBER, "+Inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), (Kind.NUMBER, "-Inf")),
}
NOT_JSON: Final = frozenset({"NaN", "+Inf", "-Inf"})
"""Numbers that YAML can write and JSON cannot."""

_INTEGER: Final = re.compile(
    r"(?P<sign>[-+]?)(?:0[xX](?P<hex>[0-9a-fA-F]+)|0[bB](?P<bin>[01]+)|0[oO]?(?P<oct>[0-7]+)|(?P<dec>0|[1-9][0-9]*))"
)
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_BASES: Final = {"hex": 16, "bin": 2, "oct": 8, "dec": 10}
_LONGEST_NUMBER: Final = 400
"""Longer digits are text: Go cannot hold such a number either."""


def resolve(text: str) -> tuple[Kind, str]:
    """The kind of a plain scalar, and its value as JSON writes it."""
    if text in _WORDS:
        return _WORDS[text]
    if len(text) <= _LONGEST_NUMBER and text[0] in "+-.0123456789":
        number = _number(text)
        if number is not None:
            return Kind.NUMBER, number
    return Kind.STRING, text


def _number(text: str) -> str | None:
    plain = text if text.startswith(".") else text.replace("_", "")
    match = _INTEGER.fullmatch(plain)
    value = _integer(match) if match else None
    if value is not None:
        return str(value)
    return _float_text(float(plain)) if _FLOAT.fullmatch(plain) else None


def _integer(match: re.Match[str]) -> int | None:
    """An integer if Go's int64 or (without a sign) uint64 holds it."""
    base = next(name for name in _BASES if match[name])
    value = int(match["sign"] + match[base], _BASES[base])
    return value if -(2**63) <= value < (2**63 if match["sign"] else 2**64) else None


def _float_text(value: float) -> str | None:
    if math.isinf(value):
        return None
    if 1e-6 <= abs(value) < 1e21 or value == 0:
        return str(int(value)) if value.is_integer() else format(Decimal(repr(value)), "f")
    return re.sub(r"e-0(\d)$", r"e-\1", repr(value).replace(".0e", "e"))
