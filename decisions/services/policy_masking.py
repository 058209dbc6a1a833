"""Masking of a policy's text before it is stored or shown: values of headers, passwords in URLs. Pure.

The text keeps its lines, because pages and errors point at them. Where it is not YAML, what looks like a header
is masked by its indentation.
"""

import re
from collections.abc import Iterator

import yaml

from deschedui.extender.config import MASK, mask_header_value

_HEADERS_KEY = "httpheaders"
_USER_IN_URL = re.compile(r"(://)[^/\s\"'@]*@")
_PROPERTIES = re.compile(r"(?:[&!]\S*[ \t]+)+")
_COMMENT = re.compile(r"(^|\s)#.*$")
_AFTER_COLON = re.compile(r"(:\s*|-\s+)\S.*$")


def mask(text: str) -> str:
    """The text with every literal header value as ``"***"``; references such as ``${env:NAME}`` stay."""
    try:
        spans = list(_secret_spans(text))
        masked = _replaced(text, spans)
    except yaml.YAMLError:
        masked = _masked_by_indentation(text)
    return _USER_IN_URL.sub(rf"\1{MASK}@", masked)


def secrets_of(text: str) -> frozenset[str]:
    """The literal header values of a policy, so that messages about it can be checked for them."""
    try:
        found = [node.value for headers in _header_mappings(text) for node in _values(headers)]
    except yaml.YAMLError:
        found = list(_secrets_by_indentation(text))
    return frozenset(value for value in found if len(value) > 3 and mask_header_value(value) == MASK)


def without(secrets: frozenset[str], text: str) -> str:
    """The message without these values."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text


Span = tuple[int, int, str]


def _secret_spans(text: str) -> Iterator[Span]:
    for headers in _header_mappings(text):
        for node in _values(headers):
            if mask_header_value(node.value) == MASK:
                yield node.start_mark.index, node.end_mark.index, _in_place_of(node, text)
        yield from _comments_within(headers, text)


def _in_place_of(node: yaml.ScalarNode, text: str) -> str:
    """Quoted (a bare ``*`` would be an alias), with its anchor, and with as many line breaks as there were."""
    written = text[node.start_mark.index : node.end_mark.index]
    properties = _PROPERTIES.match(written)
    return (properties[0] if properties else "") + f'"{MASK}"' + "\n" * written.count("\n")


def _comments_within(headers: yaml.Node, text: str) -> Iterator[Span]:
    values = {node.start_mark.line for node in _values(headers)}
    start = text.rfind("\n", 0, headers.start_mark.index) + 1
    for line in text[start : headers.end_mark.index].splitlines(keepends=True):
        bare = line.strip()
        if bare.startswith("#"):
            begin = start + line.index("#")
            yield begin, begin + len(bare), f"# {MASK}"
        start += len(line)
    yield from _comments_behind(values, text)


def _comments_behind(lines: set[int], text: str) -> Iterator[Span]:
    start = 0
    for number, line in enumerate(text.splitlines(keepends=True)):
        found = re.search(r"\s#[^\"'}\]]*$", line.rstrip("\n")) if number in lines else None
        if found:
            yield start + found.start(), start + found.end(), f" # {MASK}"
        start += len(line)


def _header_mappings(text: str) -> Iterator[yaml.Node]:
    seen: set[int] = set()
    for document in yaml.compose_all(text, Loader=yaml.SafeLoader):
        yield from _headers_below(document, seen)


def _headers_below(node: yaml.Node, seen: set[int]) -> Iterator[yaml.Node]:
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value.strip().lower() == _HEADERS_KEY:
                yield value
            yield from _headers_below(value, seen)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _headers_below(item, seen)


def _values(node: yaml.Node, seen: set[int] | None = None) -> Iterator[yaml.ScalarNode]:
    seen = set() if seen is None else seen
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.ScalarNode):
        yield node
    elif isinstance(node, yaml.MappingNode):
        for _, value in node.value:
            yield from _values(value, seen)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _values(item, seen)


def _replaced(text: str, spans: list[Span]) -> str:
    """Back to front, so that the places in front stay right; of spans that overlap the first one counts."""
    end_of_rest = len(text)
    for start, end, instead in sorted(set(spans), reverse=True):
        if end <= end_of_rest:
            text = text[:start] + instead + text[end:]
            end_of_rest = start
    return text


def _masked_by_indentation(text: str) -> str:
    return "".join(masked for _, masked in _by_indentation(text))


def _secrets_by_indentation(text: str) -> Iterator[str]:
    for line, masked in _by_indentation(text):
        if line != masked:
            found = _AFTER_COLON.search(line)
            yield line[found.end(1) :].strip("\"' \t\n") if found else line.strip()


def _by_indentation(text: str) -> Iterator[tuple[str, str]]:
    """Each line beside what may be shown of it."""
    below: int | None = None
    for line in text.splitlines(keepends=True):
        indent = len(line) - len(line.lstrip())
        if below is not None and line.strip() and indent <= below:
            below = None
        if _HEADERS_KEY in line.lower():
            below = indent
            key = line.lower().index(_HEADERS_KEY) + len(_HEADERS_KEY)
            yield line, line[:key] + _AFTER_COLON.sub(rf"\g<1>{MASK}", line[key:])
        elif below is not None and line.strip():
            yield line, _without_value(line)
        else:
            yield line, line


def _without_value(line: str) -> str:
    bare = _COMMENT.sub(f" # {MASK}", line)
    return _AFTER_COLON.sub(rf"\g<1>{MASK}", bare) if ":" in bare else f"{MASK}\n"
