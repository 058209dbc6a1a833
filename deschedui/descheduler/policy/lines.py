"""The policy's own lines about one plugin, for a page to quote."""

from collections.abc import Iterator
from dataclasses import dataclass

from deschedui.descheduler.policy.nodes import Kind, Node, UnreadableError, find
from deschedui.descheduler.policy.outer import READ_POINTS
from deschedui.descheduler.policy.text import parse_text


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of a text, counted from 1, both included."""

    start: int
    end: int


def policy_lines(text: str, profile: int, plugin: str) -> tuple[Lines, ...]:
    """Where a policy configures a plugin of a profile (by index) and where it enables it, in the text's order.

    Empty where the text cannot be read or says nothing about the plugin, as of a DefaultEvictor that is implied.
    """
    try:
        root = parse_text(text).root
    except UnreadableError:
        return ()
    node = find(root, ("profiles", profile))
    found = {*_entries(node, plugin), *_enabled(node, plugin)} if node else set()
    return tuple(sorted(found, key=lambda lines: (lines.start, lines.end)))


def _entries(profile: Node, plugin: str) -> Iterator[Lines]:
    entries = profile.get("pluginConfig")
    for entry in entries.items if entries else ():
        name = entry.get("name")
        if name and name.text == plugin:
            yield Lines(entry.span.line, entry.span.end_line)


def _enabled(profile: Node, plugin: str) -> Iterator[Lines]:
    for point in READ_POINTS:
        enabled = find(profile, ("plugins", point, "enabled"))
        for item in enabled.items if enabled else ():
            if item.kind is Kind.STRING and item.text == plugin:
                yield Lines(item.span.line, item.span.end_line)
