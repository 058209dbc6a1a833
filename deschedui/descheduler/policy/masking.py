"""Hides what a policy text holds of secrets, before it is stored or shown. Lines keep their numbers.

Secrets are the values of ``httpHeaders`` (whatever its case, and of what is misspelt like it, so that a slip does not
uncover one), the ``user:password@`` of a URL, and the query that an ``urlPrefix`` must not have. References such as
``${env:TOKEN}`` hold none and stay.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Final

from deschedui.descheduler.policy.json_text import parse_json
from deschedui.descheduler.policy.nodes import MAX_CHARACTERS, Kind, Node, Pair, Span, UnreadableError, leaves
from deschedui.descheduler.policy.text import is_json
from deschedui.descheduler.policy.yaml_text import parse_all_yaml
from deschedui.extender.config import mask_header_value

_BYTE_ORDER_MARK: Final = "\ufeff"
MASK: Final = '"***"'
_HEADERS: Final = "httpheaders"
_USER: Final = re.compile(r"(?<=://)[^/\s\"'@]*(?:@[^/\s\"'@]*)*@")
_QUERY: Final = re.compile(
    r"((?:urlprefix|decisionverb)[\"']?\s{0,9}:\s{0,9}[\"']?[^\s?#\"']{0,2000}[?#])[^\s\"'},]+", re.IGNORECASE
)
_COMMENT: Final = re.compile(r"(?:^|(?<=\s))#[^\r\n]*")
_TELLING: Final = re.compile(
    r"((?:authorization|cookie|token|api-?key|secret|passw|credential|bearer|basic)"
    r"[\w-]{0,40}[\"']?\s{0,9}[:= ]\s{0,9})\S[^\r\n]*",
    re.IGNORECASE,
)
_HEADERS_LINE: Final = re.compile(r"^(?P<before>.*?httpheaders[\"']?)(?P<rest>.*)$", re.IGNORECASE)
_LONG_LINE: Final = 2_000
_KEY: Final = re.compile(r"^(?P<key>[\s#\-?]*(?:\"[^\"]*\"|'[^']*'|[^\s:]+)\s*:)(?P<value>\s.*|)$")


def masked_text(text: str) -> str:
    """The same text with its secrets replaced. A text that cannot be read is masked line by line, generously."""
    text = text[:MAX_CHARACTERS]
    if text.startswith(_BYTE_ORDER_MARK):
        return _BYTE_ORDER_MARK + masked_text(text[1:])
    try:
        roots = [parse_json(text).root] if is_json(text) else parse_all_yaml(text)
    except UnreadableError:
        return _masked_lines(text)
    replacements = [(span, _mask(text, span)) for root in roots for span in _header_spans(root)]
    if not is_json(text):
        replacements += _masked_comments(text, roots)
    return _without_users_and_queries(_replaced(text, replacements))


def _without_users_and_queries(text: str) -> str:
    return _QUERY.sub(r"\g<1>***", _USER.sub("***@", text))


def _mask(text: str, span: Span) -> str:
    """The mask, with as many line breaks as it replaces."""
    return MASK + "\n" * text.count("\n", span.start, span.end)


def _replaced(text: str, replacements: Iterable[tuple[Span, str]]) -> str:
    by_start = {span.start: (span, new) for span, new in replacements}
    parts, at = [], 0
    for start in sorted(by_start):
        span, new = by_start[start]
        parts += [text[at:start], new]
        at = span.end
    return "".join([*parts, text[at:]])


def _header_spans(node: Node) -> Iterator[Span]:
    for pair in node.pairs:
        if _names_headers(pair):
            yield from (leaf.span for leaf in leaves(pair.value) if _is_secret(leaf))
        else:
            yield from _header_spans(pair.value)
    for item in node.items:
        yield from _header_spans(item)


def _names_headers(pair: Pair) -> bool:
    """Also ``headers`` or ``httpHeader`` with a mapping or a list below; a label's value is neither."""
    key = pair.key.lower()
    return key == _HEADERS or ("header" in key and pair.value.kind in {Kind.OBJECT, Kind.ARRAY})


def _is_secret(leaf: Node) -> bool:
    return leaf.kind is not Kind.NULL and bool(leaf.text) and mask_header_value(leaf.text) != leaf.text


def _masked_comments(text: str, roots: Iterable[Node]) -> Iterator[tuple[Span, str]]:
    """Comments are not parsed; what looks like a credential in one is cut off."""
    scalars = sorted((span.start, span.end) for root in roots for span in _scalar_spans(root))
    for comment in _COMMENT.finditer(text):
        before = bisect_right(scalars, (comment.start(), len(text))) - 1
        if before < 0 or scalars[before][1] <= comment.start():
            masked = _TELLING.sub(r"\g<1>***", comment[0])
            yield Span(comment.start(), comment.end(), 0, 0, 0), masked


def _scalar_spans(node: Node) -> Iterator[Span]:
    for pair in node.pairs:
        yield pair.key_span
        yield from _scalar_spans(pair.value)
    for item in node.items:
        yield from _scalar_spans(item)
    if node.kind not in {Kind.OBJECT, Kind.ARRAY}:
        yield node.span


def _masked_lines(text: str) -> str:
    """Without a parser's help: all below a line that names the headers; in JSON to the end, else while indented."""
    lines, inside, to_the_end = [], -1, is_json(text)
    for line in text.split("\n"):
        head, indent = _HEADERS_LINE.match(line), _indent(line)
        if head and inside < 0:
            inside = indent
            lines.append(_masked_head(head))
        elif inside >= 0 and (to_the_end or not line.strip() or indent > inside):
            lines.append(_masked_line(line))
        else:
            inside = -1
            lines.append(_TELLING.sub(r"\g<1>***", line))
    return _without_users_and_queries("\n".join(lines))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t#-"))


def _masked_head(head: re.Match[str]) -> str:
    """The line that names the headers, without what follows on it."""
    holds_more = head["rest"].strip("\"': \t\r|>&-{[")
    return f"{head['before']}: ***" if holds_more else head[0]


def _masked_line(line: str) -> str:
    """Keep the key of a line and hide the rest; a line without a key is hidden whole."""
    if not line.strip():
        return line
    match = _KEY.match(line) if len(line) < _LONG_LINE else None
    if match:
        return match["key"] + (" ***" if match["value"].strip() else "")
    return line[: len(line) - len(line.lstrip())] + "***"
