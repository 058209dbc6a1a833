"""The tree of a policy text: what stands where. Both YAML and JSON are read into it.

Kinds carry Go's names for JSON values, because upstream's error texts use them.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

MAX_CHARACTERS: Final = 1024 * 1024
"""Longest policy text that is read."""
MAX_DEPTH: Final = 64
"""Deepest nesting, aliases resolved."""
MAX_NODES: Final = 100_000
"""Most values in a document, each use of an alias counted in full: an alias bomb is refused, not unfolded."""

_PART: Final = re.compile(r"([^.\[\]]+)|\[([0-9]+)\]")

Path = tuple[str | int, ...]
"""Keys and indexes from the root of the document."""


class Kind(StrEnum):
    """What kind of value a node is, in Go's words."""

    OBJECT = "object"
    ARRAY = "array"
    STRING = "string"
    NUMBER = "number"
    BOOL = "bool"
    NULL = "null"


@dataclass(frozen=True, slots=True)
class Span:
    """Where a node stands: offsets into the text (end excluded), and lines and columns from 1."""

    start: int
    end: int
    line: int
    column: int
    end_line: int


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A value of the document. ``text`` is a string's value, or a number or boolean as JSON writes it."""

    kind: Kind
    span: Span
    text: str = ""
    source: str = ""
    """A plain YAML scalar as it stands in the text: ``on`` where ``text`` is ``true``."""
    items: tuple["Node", ...] = ()
    pairs: tuple["Pair", ...] = ()
    """All pairs as written, with repeated keys and merges."""
    members: tuple["Pair", ...] = ()
    """The pairs that count: merges resolved, of a repeated key the last."""
    size: int = 1
    depth: int = 1

    def get(self, key: str) -> "Node | None":
        """The value of a key, or None."""
        return next((pair.value for pair in self.members if pair.key == key), None)

    def repeated(self) -> Iterator["Pair"]:
        """Pairs of which a later one has the same key, so that they do not count."""
        last = {pair.key: pair for pair in self.pairs}
        return (pair for pair in self.pairs if last[pair.key] is not pair and not pair.merge)


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """One key of an object with its value; ``merge`` marks YAML's ``<<``."""

    key: str
    key_span: Span
    value: Node
    merge: bool = False


@dataclass(frozen=True, slots=True)
class Document:
    """A text that was read. ``is_json`` decides some of Go's rules; ``more`` says that other documents follow."""

    root: Node
    is_json: bool
    more: bool = False


class UnreadableError(ValueError):
    """A text that is no document. The message is ours; ``upstream`` is what upstream prints, or ''."""

    def __init__(self, message: str, *, line: int = 1, column: int = 1, upstream: str = "") -> None:
        super().__init__(message)
        self.line = line
        self.column = column
        self.upstream = upstream


@dataclass(slots=True)
class Counter:
    """Counts the values of a document while it is read. One that is too large: UnreadableError."""

    count: int = 0

    def add(self, size: int, depth: int, span: Span) -> None:
        """Count values that come at once (an alias stands for all of its anchor's) or raise."""
        self.count += size
        if depth > MAX_DEPTH:
            message = f"the document is nested more than {MAX_DEPTH} levels deep: a policy needs a dozen"
            raise UnreadableError(message, line=span.line, column=span.column)
        if self.count > MAX_NODES:
            message = (
                f"the document has more than {MAX_NODES} values (each use of an alias counts): shorten it"
            )
            raise UnreadableError(message, line=span.line, column=span.column)


def array(span: Span, items: Sequence[Node]) -> Node:
    """A list of values."""
    return Node(Kind.ARRAY, span, items=tuple(items), size=_size(items), depth=_depth(items))


def mapping(span: Span, pairs: Sequence[Pair], members: Iterable[Pair]) -> Node:
    """An object: the pairs as written, and those of them that count."""
    values = [pair.value for pair in pairs]
    return Node(
        Kind.OBJECT,
        span,
        pairs=tuple(pairs),
        members=tuple(members),
        size=_size(values),
        depth=_depth(values),
    )


def locate(root: Node, path: Path) -> Span:
    """Where a path stands in the text: the key of its last part, or else the nearest thing above it."""
    node, span = root, root.span
    for part in path:
        found = _step(node, part)
        if found is None:
            break
        node, span = found
    return span


def find(root: Node, path: Path) -> Node | None:
    """The node at a path, or None."""
    node = root
    for part in path:
        found = _step(node, part)
        if found is None:
            return None
        node = found[0]
    return node


def path_text(path: Path) -> str:
    """A path as a person writes it: ``profiles[0].pluginConfig[1].args``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def path_parts(text: str) -> Path:
    """The opposite of ``path_text``."""
    return tuple(int(index) if index else key for key, index in _PART.findall(text))


def object_for_null(node: Node) -> Node:
    """Upstream reads an empty text as an object without keys."""
    return Node(Kind.OBJECT, node.span) if node.kind is Kind.NULL else node


def leaves(node: Node) -> Iterator[Node]:
    """Every scalar below a node as written, whatever counts of it."""
    if node.kind is Kind.OBJECT:
        for pair in node.pairs:
            yield from leaves(pair.value)
    elif node.kind is Kind.ARRAY:
        for item in node.items:
            yield from leaves(item)
    else:
        yield node


def _size(children: Iterable[Node]) -> int:
    return 1 + sum(child.size for child in children)


def _depth(children: Iterable[Node]) -> int:
    return 1 + max((child.depth for child in children), default=0)


def _step(node: Node, part: str | int) -> tuple[Node, Span] | None:
    if isinstance(part, int):
        return (node.items[part], node.items[part].span) if part < len(node.items) else None
    pair = next((pair for pair in node.members if pair.key == part), None)
    return (pair.value, pair.key_span) if pair else None
