"""JSON to nodes, with lines, repeated keys and numbers as written, and refusals in the words of Go."""

import json
import re
from dataclasses import dataclass, field
from typing import Final

from deschedui.descheduler.policy.nodes import (
    Counter,
    Document,
    Kind,
    Node,
    Pair,
    Span,
    UnreadableError,
    array,
    mapping,
)

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_STRING: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*')
_WORDS: Final = {"true": Kind.BOOL, "false": Kind.BOOL, "null": Kind.NULL}
_WORD: Final = re.compile(r"true|false|null")
_UPSTREAM: Final = "couldn't get version/kind; json parse error: "


def parse_json(text: str) -> Document:
    """Read a text that is one JSON value and nothing else. Raises UnreadableError."""
    reader = _Reader(text)
    root = reader.value(1)
    reader.expect_end()
    return Document(root, is_json=True)


@dataclass(slots=True)
class _Reader:
    text: str
    at: int = 0
    line: int = 1
    line_start: int = 0
    values: Counter = field(default_factory=Counter)

    def value(self, depth: int) -> Node:
        start = self._mark()
        self.values.add(1, depth, self._span(start))
        match self.text[self.at : self.at + 1]:
            case "{":
                return self._object(start, depth)
            case "[":
                return self._array(start, depth)
            case '"':
                text = self._string()
                return Node(Kind.STRING, self._span(start), text)
        return self._scalar(start)

    def expect_end(self) -> None:
        self._skip()
        if self.at < len(self.text):
            raise self._refusal("after top-level value")

    def _object(self, start: tuple[int, int, int], depth: int) -> Node:
        pairs: list[Pair] = []
        self.at += 1
        if not self._takes("}"):
            pairs.append(self._pair(depth))
            while self._takes(","):
                pairs.append(self._pair(depth))
            self._demand("}", "after object key:value pair")
        members = {pair.key: pair for pair in pairs}
        return mapping(self._span(start), pairs, members.values())

    def _pair(self, depth: int) -> Pair:
        start = self._mark()
        if self.text[self.at : self.at + 1] != '"':
            raise self._refusal("looking for beginning of object key string")
        key = self._string()
        span = self._span(start)
        self._demand(":", "after object key")
        return Pair(key, span, self.value(depth + 1))

    def _array(self, start: tuple[int, int, int], depth: int) -> Node:
        items: list[Node] = []
        self.at += 1
        if not self._takes("]"):
            items.append(self.value(depth + 1))
            while self._takes(","):
                items.append(self.value(depth + 1))
            self._demand("]", "after array element")
        return array(self._span(start), items)

    def _string(self) -> str:
        """Read up to the closing quote. Half a surrogate pair becomes U+FFFD, as it does in Go."""
        match = _STRING.match(self.text, self.at)
        literal = match[0] if match else ""
        self.at += len(literal)
        if self.text[self.at : self.at + 1] != '"':
            raise self._string_refusal()
        self.at += 1
        value = str(json.loads(literal + '"'))
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    def _scalar(self, start: tuple[int, int, int]) -> Node:
        word, number = _WORD.match(self.text, self.at), _NUMBER.match(self.text, self.at)
        match = word or number
        if match is None:
            raise self._refusal("looking for beginning of value")
        self.at = match.end()
        kind = _WORDS[match[0]] if word else Kind.NUMBER
        return Node(kind, self._span(start), match[0], source=match[0])

    def _takes(self, symbol: str) -> bool:
        self._skip()
        found = self.text.startswith(symbol, self.at)
        self.at += found
        return found

    def _demand(self, symbol: str, place: str) -> None:
        if not self._takes(symbol):
            raise self._refusal(place)

    def _mark(self) -> tuple[int, int, int]:
        self._skip()
        return self.at, self.line, self.at - self.line_start + 1

    def _skip(self) -> None:
        space = _SPACE.match(self.text, self.at)
        for newline in re.finditer("\n", space[0]) if space else ():
            self.line += 1
            self.line_start = self.at + newline.end()
        self.at = space.end() if space else self.at

    def _span(self, start: tuple[int, int, int]) -> Span:
        return Span(start[0], self.at, start[1], start[2], self.line)

    def _string_refusal(self) -> UnreadableError:
        if self.text[self.at : self.at + 1] != "\\":
            return self._refusal("in string literal")
        self.at += 1
        return self._refusal("in string escape code")

    def _refusal(self, place: str) -> UnreadableError:
        column = self.at - self.line_start + 1
        if self.at >= len(self.text):
            text = "the JSON text ends too early"
            upstream = f"{_UPSTREAM}unexpected end of JSON input"
            return UnreadableError(text, line=self.line, column=column, upstream=upstream)
        said = f"invalid character {_shown(self.text[self.at])} {place}"
        message = f"the text starts with {{ and is read as JSON, which it is not: {said}"
        return UnreadableError(message, line=self.line, column=column, upstream=_UPSTREAM + said)


def _shown(character: str) -> str:
    """A character between single quotes, as Go shows it."""
    if character == "'":
        return r"'\''"
    return f"'{json.dumps(character, ensure_ascii=False)[1:-1]}'" if character != '"' else "'\"'"
