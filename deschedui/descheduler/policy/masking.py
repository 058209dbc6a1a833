"""Hides what a policy text holds of secrets, before it is stored or shown. Lines keep their numbers.

Secrets are the values of ``httpHeaders`` (whatever its case, so that a slip does not uncover one) and the
``user:password@`` of a URL. References such as ``${env:TOKEN}`` hold none and stay.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from deschedui.descheduler.policy.json_text import parse_json
from deschedui.descheduler.policy.nodes import MAX_CHARACTERS, Kind, Node, Span, UnreadableError, leaves
from deschedui.descheduler.policy.text import is_json
from deschedui.descheduler.policy.yaml_text import parse_all_yaml
from deschedui.extender.config import mask_header_value

MASK: Final = '"***"'
_HEADERS: Final = "httpheaders"
_USER: Final = re.compile(r"(?<=://)[^/\s\"'@]*(?:@[^/\s\"'@]*)*@")
_COMMENT: Final = re.compile(r"(?:^|(?<=\s))#.*$", re.MULTILINE)
_TELLING: Final = re.compile(
    r"(?P<name>[\w-]*(?:authorization|cookie|token|api-?key|secret|passw|credential|bearer|basic)[\w-]*)"
    r"(?P<between>[\"']?\s*[:= ]\s*)\S.*$",
    re.IGNORECASE,
)
_HEADERS_LINE: Final = re.compile(r"^(?P<indent>[\s#\-{,\"']*)httpheaders\b(?P<rest>.*)$", re.IGNORECASE)
_KEY: Final = re.compile(r"^(?P<key>[\s#\-?]*(?:\"[^\"]*\"|'[^']*'|[^\s:]+)\s*:)(?P<value>\s.*|)$")


def masked_text(text: str) -> str:
    """The same text with its secrets replaced. A text that cannot be read is masked line by line, generously."""
    text = text[:MAX_CHARACTERS]
    try:
        roots = [parse_json(text).root] if is_json(text) else parse_all_yaml(text)
    except UnreadableError:
        return _masked_lines(text)
    masked = _without_spans(text, _secret_spans(roots))
    return _USER.sub("***@", _masked_comments(masked))


def _secret_spans(roots: Iterable[Node]) -> list[Span]:
    spans = {span.start: span for root in roots for span in _header_spans(root)}
    return [spans[start] for start in sorted(spans)]


def _header_spans(node: Node) -> Iterator[Span]:
    for pair in node.pairs:
        if pair.key.lower() == _HEADERS:
            yield from (leaf.span for leaf in leaves(pair.value) if _is_secret(leaf))
        else:
            yield from _header_spans(pair.value)
    for item in node.items:
        yield from _header_spans(item)


def _is_secret(leaf: Node) -> bool:
    return leaf.kind is not Kind.NULL and bool(leaf.text) and mask_header_value(leaf.text) != leaf.text


def _without_spans(text: str, spans: Sequence[Span]) -> str:
    """Replace each span by the mask and as many line breaks as it had."""
    parts, at = [], 0
    for span in spans:
        parts += [text[at : span.start], MASK, "\n" * text.count("\n", span.start, span.end)]
        at = span.end
    return "".join([*parts, text[at:]])


def _masked_comments(text: str) -> str:
    """Comments are not parsed; what looks like a credential in one is cut off."""
    return _COMMENT.sub(lambda comment: _TELLING.sub(r"\g<name>\g<between>***", comment[0]), text)


def _masked_lines(text: str) -> str:
    """Without a parser's help: everything below a line that names the headers, while it is indented deeper."""
    lines, inside = [], -1
    for line in text.split("\n"):
        head = _HEADERS_LINE.match(line)
        indent = len(line) - len(line.lstrip(" \t#"))
        if head:
            inside = len(head["indent"])
            rest = " ***" if head["rest"].strip("\"': \t|>&-") else head["rest"]
            lines.append(line[: head.start("rest")] + (":" if rest == " ***" else "") + rest)
        elif inside >= 0 and (not line.strip() or indent > inside):
            lines.append(_masked_line(line))
        else:
            inside = -1
            lines.append(_TELLING.sub(r"\g<name>\g<between>***", line))
    return _USER.sub("***@", "\n".join(lines))


def _masked_line(line: str) -> str:
    """Keep the key of a line and hide the rest; a line without a key is hidden whole."""
    if not line.strip():
        return line
    match = _KEY.match(line)
    if match:
        return match["key"] + (" ***" if match["value"].strip() else "")
    return line[: len(line) - len(line.lstrip())] + "***"
