"""Label and field selectors: the text form of a query, and the object form inside a spec."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .errors import ApiError, bad_request
from .resources import Resource

Labels = Mapping[str, str]
Test = Callable[[Labels], bool]

_TOKEN = re.compile(r"\s*(==|!=|=|!|\(|\)|,|<|>|[^\s=!(),<>]+)")
_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_OPERATORS = ("=", "==", "!=", "in", "notin", "<", ">")
_SYMBOLS = {"=", "==", "!=", "!", "(", ")", ",", "<", ">"}


@dataclass(frozen=True, slots=True)
class Requirement:
    """One term of a selector. Values are compared as text; `<` and `>` as whole numbers."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Labels) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "in" | "=" | "==":
                return value in self.values
            case "notin" | "!=":
                return value not in self.values
            case "exists":
                return value is not None
            case "!":
                return value is None
        if value is None or not value.lstrip("-").isdigit():
            return False
        return int(value) > int(self.values[0]) if self.operator == ">" else int(value) < int(self.values[0])


class _Parser:
    """Reads a label selector as apimachinery's labels.Parse does; its complaints are the server's texts."""

    def __init__(self, text: str) -> None:
        self._tokens = _TOKEN.findall(text)
        self._at = 0

    def parse(self) -> list[Requirement]:
        found: list[Requirement] = []
        while self._peek():
            found.append(self._requirement())
            if not self._peek():
                break
            if self._next() != ",":
                raise bad_request(f"found '{self._tokens[self._at - 1]}', expected: ',' or 'end of string'")
            if self._peek() in {"", *_SYMBOLS} - {"!"}:
                raise bad_request(f"found '{self._peek()}', expected: identifier after ','")
        return found

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self._at += 1
        return token

    def _requirement(self) -> Requirement:
        absent = self._peek() == "!"
        if absent:
            self._next()
        key = self._next()
        if key in _SYMBOLS or not key:
            expected = "identifier" if absent else "!, identifier, or 'end of string'"
            raise bad_request(f"found '{key}', expected: {expected}")
        self._check_key(key)
        if absent:
            return Requirement(key, "!")
        if self._peek() in {"", ","}:
            return Requirement(key, "exists")
        return self._comparison(key)

    def _comparison(self, key: str) -> Requirement:
        operator = self._next()
        if operator not in _OPERATORS:
            listed = "in, notin, =, ==, !=, gt, lt"
            raise bad_request(f"unable to parse requirement: found '{operator}', expected: {listed}")
        if operator in {"in", "notin"}:
            return Requirement(key, operator, self._value_set())
        if self._peek() in {"", ","}:
            return Requirement(key, operator, ("",))
        value = self._next()
        if value in _SYMBOLS:
            raise bad_request(f"unable to parse requirement: found '{value}', expected: identifier")
        return Requirement(key, operator, (_checked(key, value),))

    def _value_set(self) -> tuple[str, ...]:
        opening = self._next()
        if opening != "(":
            raise bad_request(f"unable to parse requirement: found '{opening}' expected: '('")
        values = []
        while (found := self._next()) != ")":
            if found == ",":
                continue
            if not found or found in _SYMBOLS:
                text = f"found '{found}', expected: ',', ')' or identifier"
                raise bad_request(f"unable to parse requirement: {text}")
            values.append(found)
        return tuple(values) or ("",)

    def _check_key(self, key: str) -> None:
        if not _KEY.fullmatch(key):
            raise bad_request(
                f'unable to parse requirement: <nil>: Invalid value: "{key}": name part must be valid'
            )


def _checked(key: str, value: str) -> str:
    if _VALUE.fullmatch(value):
        return value
    rule = (
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
        "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
        "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
    )
    raise bad_request(f'unable to parse requirement: values[0][{key}]: Invalid value: "{value}": {rule}')


def parse_labels(text: str) -> Test:
    """`app=shop,tier in (web, api),!canary` as a test of labels. Raises the server's 400."""
    requirements = _Parser(text).parse()
    return lambda labels: all(r.matches(labels) for r in requirements)


_OBJECT_OPERATORS = {
    "In": "in",
    "NotIn": "notin",
    "Exists": "exists",
    "DoesNotExist": "!",
    "Gt": ">",
    "Lt": "<",
}


def object_selector(selector: Mapping[str, Any] | None) -> Test:
    """A `LabelSelector` of a spec as a test. None matches nothing, the empty one everything."""
    if selector is None:
        return lambda _labels: False
    requirements = [Requirement(k, "in", (v,)) for k, v in (selector.get("matchLabels") or {}).items()]
    requirements += expressions(selector.get("matchExpressions") or ())
    return lambda labels: all(r.matches(labels) for r in requirements)


def expressions(terms: Any) -> list[Requirement]:
    """`matchExpressions` of labels or of nodes."""
    return [
        Requirement(t["key"], _OBJECT_OPERATORS[t["operator"]], tuple(t.get("values") or ())) for t in terms
    ]


def parse_fields(text: str, resource: Resource) -> Callable[[Mapping[str, Any]], bool]:
    """`spec.nodeName=n1,status.phase!=Running` as a test of objects. Raises the server's 400."""
    terms = [_field_term(t, text, resource) for t in text.split(",") if t]
    return lambda obj: all((_field(obj, path) == value) is equal for path, value, equal in terms)


def _field_term(term: str, whole: str, resource: Resource) -> tuple[tuple[str, ...], str, bool]:
    match = re.fullmatch(r"([^=!]*)(==|!=|=)(.*)", term)
    if match is None:
        raise bad_request(f"invalid selector: '{whole}'; can't understand '{term}'")
    label, operator, value = match.groups()
    if label not in resource.fields:
        raise _unknown_field(label, resource)
    return tuple(label.split(".")), value, operator != "!="


def _unknown_field(label: str, resource: Resource) -> ApiError:
    if resource.group or resource.plural == "persistentvolumeclaims":
        known = '"metadata.name", "metadata.namespace"'
        return bad_request(f'"{label}" is not a known field selector: only {known}')
    return bad_request(f"field label not supported: {label}")


def _field(obj: Mapping[str, Any], path: tuple[str, ...]) -> str:
    value: Any = obj
    for step in path:
        value = value.get(step) if isinstance(value, Mapping) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return str(value.get("component", ""))
    if value is None:
        return "false" if path[-1] in {"unschedulable", "hostNetwork"} else ""
    return str(value)
