"""Label selectors: as objects (``matchLabels``, ``matchExpressions``) and as text (``a=b, c in (d, e)``).

Both kinds answer ``matches(labels)``. What is wrong with one is said in the words that the Kubernetes
libraries use, because an SRE searches the web for exactly those words.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)

_ALPHANUMERIC = (
    "consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)
_NAME_RULE = (
    f"must {_ALPHANUMERIC} (e.g. 'MyName',  or 'my.name',  or '123-abc', "
    f"regex used for validation is '{_NAME.pattern}')"
)
_VALUE_RULE = (
    f"a valid label must be an empty string or {_ALPHANUMERIC} (e.g. 'MyValue',  or 'my_value',  or '12345', "
    f"regex used for validation is '{_VALUE.pattern}')"
)
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', "
    f"regex used for validation is '{_SUBDOMAIN.pattern}')"
)
MAX_SELECTOR_LENGTH = 64 * 1024
"""Longest selector text in characters; longer ones are refused before they are read."""


class SelectorError(ValueError):
    """A selector that means nothing. Its text is the one that Kubernetes' own parser prints."""


class Requirement(msgspec.Struct, frozen=True, rename="camel"):
    """A condition on a label. ``operator`` is the API's word (``In`` …), or ``Gt``, ``Lt``, ``=``, ``!=``."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Say whether these labels fulfil the condition. One with a ``problem()`` is not fulfilled."""
        value, wanted = labels.get(self.key), self.values or ()
        match self.operator:
            case "In" | "=":
                return value is not None and value in wanted
            case "NotIn" | "!=":
                return bool(wanted) and value not in wanted
            case "Exists":
                return value is not None and not wanted
            case "DoesNotExist":
                return value is None and not wanted
            case "Gt" | "Lt":
                return _compares(self.operator, value, wanted)
        return False

    def problem(self) -> str | None:
        """What Kubernetes would say against this condition, or None."""
        return _aggregate([*_key_problems("key", self.key), *self._value_problems()])

    def _value_problems(self) -> Iterator[str]:
        values = self.values or ()
        if self.operator in {"In", "NotIn"} and not values:
            yield "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"
        if self.operator in {"Exists", "DoesNotExist"} and values:
            shown = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
            yield f"values: Invalid value: {shown}: values set must be empty for exists and does not exist"
        if self.operator in {"Gt", "Lt"}:
            yield from _integer_problems(values)
        for index, value in enumerate(values):
            yield from _value_problems(f"values[{index}][{self.key}]", value)


class LabelSelector(msgspec.Struct, frozen=True, rename="camel"):
    """A selector object of the API. Empty matches everything; where one is absent is the caller's matter."""

    match_labels: Mapping[str, str] | None = None
    match_expressions: tuple[Requirement, ...] | None = None

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Say whether all conditions hold. Ask ``problem()`` first: an invalid one has no true answer."""
        wanted = self.match_labels or {}
        return all(labels.get(key) == value for key, value in wanted.items()) and all(
            requirement.matches(labels) for requirement in self.match_expressions or ()
        )

    def problem(self) -> str | None:
        """The first thing wrong, in Kubernetes' words (labels before expressions), or None."""
        for key, value in sorted((self.match_labels or {}).items()):
            if problem := Requirement(key, "=", (value,)).problem():
                return problem
        for requirement in self.match_expressions or ():
            if problem := _expression_problem(requirement):
                return problem
        return None


class StringSelector(msgspec.Struct, frozen=True):
    """A selector that was written as text. Without requirements it matches everything."""

    text: str = ""
    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Say whether these labels fulfil every requirement."""
        return all(requirement.matches(labels) for requirement in self.requirements)


def parse_string_selector(text: str) -> StringSelector:
    """Read ``k=v``, ``k!=v``, ``k in (a,b)``, ``k notin (a,b)``, ``k``, ``!k``, ``k>5``, ``k<5`` and commas.

    Raises SelectorError with the text that Kubernetes prints for the same selector.
    """
    if len(text) > MAX_SELECTOR_LENGTH:
        raise SelectorError(f"selector is longer than {MAX_SELECTOR_LENGTH} characters")
    return StringSelector(text, tuple(_Parser(text).requirements()))


def _expression_problem(requirement: Requirement) -> str | None:
    if requirement.operator not in {"In", "NotIn", "Exists", "DoesNotExist"}:
        return f"{_quoted(requirement.operator)} is not a valid label selector operator"
    return requirement.problem()


def _compares(operator: str, value: str | None, wanted: Sequence[str]) -> bool:
    if value is None or len(wanted) != 1:
        return False
    have, bound = _int64(value), _int64(wanted[0])
    if have is None or bound is None:
        return False
    return have > bound if operator == "Gt" else have < bound


def _int64(text: str) -> int | None:
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def _integer_problems(values: Sequence[str]) -> Iterator[str]:
    for index, value in enumerate(values):
        if _int64(value) is None:
            yield (
                f"values[{index}]: Invalid value: {_quoted(value)}: "
                "for 'Gt', 'Lt' operators, the value must be an integer"
            )


def _key_problems(path: str, key: str) -> Iterator[str]:
    if found := "; ".join(_qualified_name_problems(key)):
        yield f"{path}: Invalid value: {_quoted(key)}: {found}"


def _qualified_name_problems(key: str) -> Iterator[str]:
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        example = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        yield f"a qualified name {_NAME_RULE}{example}"
        return
    if slash:
        yield from (f"prefix part {problem}" for problem in _prefix_problems(prefix))
    yield from (f"name part {problem}" for problem in _name_problems(name))


def _prefix_problems(prefix: str) -> Iterator[str]:
    if not prefix:
        yield "must be non-empty"
        return
    if len(prefix) > 253:
        yield "must be no more than 253 characters"
    if not _SUBDOMAIN.fullmatch(prefix):
        yield _SUBDOMAIN_RULE


def _name_problems(name: str) -> Iterator[str]:
    if not name:
        yield "must be non-empty"
    elif len(name) > 63:
        yield "must be no more than 63 characters"
    if not _NAME.fullmatch(name):
        yield _NAME_RULE


def _value_problems(path: str, value: str) -> Iterator[str]:
    found = []
    if len(value) > 63:
        found.append("must be no more than 63 characters")
    if not _VALUE.fullmatch(value):
        found.append(_VALUE_RULE)
    if found:
        yield f"{path}: Invalid value: {_quoted(value)}: {'; '.join(found)}"


def _aggregate(problems: Sequence[str]) -> str | None:
    distinct = list(dict.fromkeys(problems))
    return f"[{', '.join(distinct)}]" if len(distinct) > 1 else next(iter(distinct), None)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


_LEXEMES = re.compile(r"([^=!(),<> \t\r\n]+)|(==|!=|[=!(),<>])")
_OPERATORS = {"in": "In", "notin": "NotIn", "=": "=", "==": "=", "!=": "!=", ">": "Gt", "<": "Lt"}


class _Token(msgspec.Struct, frozen=True):
    kind: str
    """``word``, ``end`` or the symbol itself."""
    text: str


def _tokens(text: str) -> list[_Token]:
    found = []
    for match in _LEXEMES.finditer(text):
        word, symbol = match.groups()
        found.append(_Token("word", word) if word else _Token(symbol, symbol))
    return [*found, _Token("end", "")]


class _Parser:
    """Reads tokens one after the other; each refusal names what was found and what would have been right."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._at = 0

    def requirements(self) -> Iterator[Requirement]:
        while (token := self._peek()).kind != "end":
            if token.kind not in {"word", "!"}:
                raise SelectorError(f"found '{token.text}', expected: !, identifier, or 'end of string'")
            yield self._requirement()
            self._separator()

    def _requirement(self) -> Requirement:
        try:
            return self._read_requirement()
        except SelectorError as error:
            raise SelectorError(f"unable to parse requirement: {error}") from None

    def _separator(self) -> None:
        token = self._next()
        if token.kind == "end":
            return
        if token.kind != ",":
            raise SelectorError(f"found '{token.text}', expected: ',' or 'end of string'")
        if (after := self._peek()).kind not in {"word", "!"}:
            raise SelectorError(f"found '{after.text}', expected: identifier after ','")

    def _read_requirement(self) -> Requirement:
        requirement = self._read_condition()
        if problem := requirement.problem():
            raise SelectorError(problem)
        return requirement

    def _read_condition(self) -> Requirement:
        negated = self._peek().kind == "!"
        if negated:
            self._next()
        key = self._key()
        if negated:
            return Requirement(key, "DoesNotExist")
        if self._peek().kind in {"end", ","}:
            return Requirement(key, "Exists")
        operator = self._operator()
        values = self._value_list() if operator in {"In", "NotIn"} else [self._value()]
        return Requirement(key, operator, tuple(sorted(set(values))))

    def _key(self) -> str:
        token = self._next()
        if token.kind != "word":
            raise SelectorError(f"found '{token.text}', expected: identifier")
        if problem := _aggregate(list(_key_problems("<nil>", token.text))):
            raise SelectorError(problem)
        return token.text

    def _operator(self) -> str:
        token = self._next()
        if token.text not in _OPERATORS:
            raise SelectorError(f"found '{token.text}', expected: in, notin, =, ==, !=, gt, lt")
        return _OPERATORS[token.text]

    def _value(self) -> str:
        if self._peek().kind in {"end", ","}:
            return ""
        token = self._next()
        if token.kind != "word":
            raise SelectorError(f"found '{token.text}', expected: identifier")
        return token.text

    def _value_list(self) -> list[str]:
        opening = self._next()
        if opening.kind != "(":
            raise SelectorError(f"found '{opening.text}' expected: '('")
        values: list[str] = []
        if (token := self._peek()).kind not in {"word", ",", ")"}:
            raise SelectorError(f"found '{token.text}', expected: ',', ')' or identifier")
        goes_on = token.kind != ")"
        while goes_on:
            goes_on = self._take_listed(values)
        self._next()
        return values

    def _take_listed(self, values: list[str]) -> bool:
        """Take a word or a comma; say whether more follows. Nothing beside a comma is the empty value."""
        token = self._next()
        if token.kind == "word":
            values.append(token.text)
            return self._list_goes_on()
        if token.kind != ",":
            raise SelectorError(f"found '{token.text}', expected: ',', or identifier")
        after = self._peek().kind
        values.extend([""] if not values or after in {",", ")"} else [])
        if after == ",":
            self._next()
        return after != ")"

    def _list_goes_on(self) -> bool:
        after = self._peek()
        if after.kind not in {",", ")"}:
            raise SelectorError(f"found '{after.text}', expected: ',' or ')'")
        return after.kind == ","

    def _peek(self) -> _Token:
        return self._tokens[self._at]

    def _next(self) -> _Token:
        token = self._tokens[self._at]
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token
