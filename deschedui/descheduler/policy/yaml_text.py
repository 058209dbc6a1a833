"""YAML to nodes, by the rules of the Go library that upstream uses, and with its error texts.

Built on PyYAML's events: no constructor runs, nothing is unfolded, and every value knows its line.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NoReturn, cast

import yaml

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
from deschedui.descheduler.policy.scalars import NOT_JSON, resolve

# libyaml's binding where there is one: its messages are those of Go's library, which is a port of it.
_LOADER: Final = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_YAML_TAG: Final = "tag:yaml.org,2002:"
_RESOLVED_TAGS: Final = frozenset(_YAML_TAG + name for name in ("int", "float", "bool", "null"))


def parse_yaml(text: str) -> Document:
    """Read the first document of a text; an empty one is null. Raises UnreadableError."""
    documents = _documents(text)
    root = next(documents, None)
    if root is None:
        return Document(_empty(), is_json=False)
    return Document(root, is_json=False, more=_has_more(documents))


def parse_all_yaml(text: str) -> list[Node]:
    """Read every document of a text. Raises UnreadableError."""
    return list(_documents(text))


def _empty() -> Node:
    return Node(Kind.NULL, Span(0, 0, 1, 1, 1), "null")


def _has_more(documents: Iterator[Node]) -> bool:
    """Whether anything follows; whatever is wrong with it is nobody's business, as it is ignored."""
    try:
        return next(documents, None) is not None
    except UnreadableError:
        return True


def _documents(text: str) -> Iterator[Node]:
    composer = _Composer(_events(text))
    while (root := composer.next_document()) is not None:
        yield root


def _events(text: str) -> Iterator[yaml.Event]:
    try:
        yield from yaml.parse(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error) from None
    except (yaml.YAMLError, UnicodeEncodeError):
        message = "the text holds a character that YAML does not allow (a control character)"
        raise UnreadableError(message, upstream="yaml: control characters are not allowed") from None


def _syntax_error(error: yaml.MarkedYAMLError) -> UnreadableError:
    problem = error.problem or "unknown problem parsing YAML content"
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line, mark.column) if mark else (0, 0)
    said = _go_line(error)
    where = f"line {said}: " if said else ""
    context = f" {error.context}" if error.context else ""
    return UnreadableError(
        f"the text is not YAML: {problem}{context}",
        line=line + 1,
        column=column + 1,
        upstream=f"yaml: {where}{problem}",
    )


def _go_line(error: yaml.MarkedYAMLError) -> int:
    """The line that Go's library names: it counts from 0, and adds 1 in its scanner only."""
    scanner = 1 if isinstance(error, yaml.scanner.ScannerError) else 0
    if error.problem_mark and error.problem_mark.line:
        return error.problem_mark.line + scanner
    return error.context_mark.line if error.context_mark else 0


@dataclass(slots=True)
class _Composer:
    """Builds nodes from events. Aliases share the node of their anchor; sizes count each use."""

    events: Iterator[yaml.Event]
    anchors: dict[str, Node] = field(default_factory=dict)
    open_anchors: set[str] = field(default_factory=set)
    values: Counter = field(default_factory=Counter)

    def next_document(self) -> Node | None:
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                self.anchors.clear()
                self.values = Counter()
                return self._compose(next(self.events), 1)
        return None

    def _compose(self, event: yaml.Event, depth: int) -> Node:
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, depth)
        self.values.add(1, depth, _span(event, event))
        anchor = getattr(event, "anchor", None)
        self.open_anchors.update([anchor] if anchor else [])
        node = self._value(event, depth)
        if anchor:
            self.open_anchors.discard(anchor)
            self.anchors[anchor] = node
        return node

    def _value(self, event: yaml.Event, depth: int) -> Node:
        if isinstance(event, yaml.ScalarEvent):
            return _scalar(event)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(event, depth)
        return self._mapping(event, depth)

    def _alias(self, event: yaml.AliasEvent, depth: int) -> Node:
        name = event.anchor
        if name in self.open_anchors:
            _refuse(
                event, f"the anchor {name} contains itself", f"yaml: anchor '{name}' value contains itself"
            )
        if name not in self.anchors:
            _refuse(event, f"there is no anchor {name}", f"yaml: unknown anchor '{name}' referenced")
        node = self.anchors[name]
        self.values.add(node.size, node.depth + depth - 1, _span(event, event))
        return node

    def _sequence(self, start: yaml.Event, depth: int) -> Node:
        items: list[Node] = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            items.append(self._compose(event, depth + 1))
        return array(_span(start, event, items), items)

    def _mapping(self, start: yaml.Event, depth: int) -> Node:
        pairs: list[Pair] = []
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            key = self._compose(event, depth + 1)
            pairs.append(_pair(key, self._compose(next(self.events), depth + 1)))
        span = _span(start, event, [pair.value for pair in pairs])
        return mapping(span, pairs, _members(pairs))


def _pair(key: Node, value: Node) -> Pair:
    if key.kind in {Kind.OBJECT, Kind.ARRAY, Kind.NULL}:
        message = f"a key must be text, not {'nothing' if key.kind is Kind.NULL else 'a list or a mapping'}"
        raise UnreadableError(
            message,
            line=key.span.line,
            column=key.span.column,
            upstream="unsupported map key of type",
        )
    merge = key.kind is Kind.STRING and key.source == "<<"
    return Pair(key.text, key.span, value, merge=merge)


def _members(pairs: Iterable[Pair]) -> Iterable[Pair]:
    """The pairs that count. Go's library takes them as they come: a merge overrides what stands before it."""
    found: dict[str, Pair] = {}
    for pair in pairs:
        merged = _merged(pair) if pair.merge else (pair,)
        for member in merged:
            found.pop(member.key, None)
            found[member.key] = member
    return found.values()


def _merged(pair: Pair) -> Iterator[Pair]:
    sources = pair.value.items if pair.value.kind is Kind.ARRAY else (pair.value,)
    for source in reversed(sources):
        if source.kind is not Kind.OBJECT:
            raise UnreadableError(
                "a merge (<<) takes a mapping or a list of mappings",
                line=pair.key_span.line,
                column=pair.key_span.column,
                upstream="yaml: map merge requires map or sequence of maps as the value",
            )
        yield from source.members


def _scalar(event: yaml.ScalarEvent) -> Node:
    span, plain = _span(event, event), event.style in {None, ""} and event.tag in {None, ""}
    if not plain and event.tag not in _RESOLVED_TAGS:
        return Node(Kind.STRING, span, event.value)
    kind, text = resolve(event.value)
    if text in NOT_JSON and kind is Kind.NUMBER:
        _refuse(event, f"{event.value} is not a number that can be used", f"json: unsupported value: {text}")
    return Node(kind, span, text, source=event.value)


def _span(start: yaml.Event, end: yaml.Event, children: Iterable[Node] = ()) -> Span:
    first, last = cast("yaml.Mark", start.start_mark), cast("yaml.Mark", end.end_mark)
    below = max((child.span.end_line for child in children), default=0)
    end_line = below or (last.line if last.column == 0 and last.line > first.line else last.line + 1)
    return Span(first.index, last.index, first.line + 1, first.column + 1, max(end_line, first.line + 1))


def _refuse(event: yaml.Event, message: str, upstream: str) -> NoReturn:
    mark = cast("yaml.Mark", event.start_mark)
    raise UnreadableError(message, line=mark.line + 1, column=mark.column + 1, upstream=upstream)
