"""A policy text to nodes: JSON if it starts like JSON, else YAML, as upstream tells them apart."""

from deschedui.descheduler.policy.json_text import parse_json
from deschedui.descheduler.policy.nodes import MAX_CHARACTERS, Document, UnreadableError
from deschedui.descheduler.policy.yaml_text import parse_yaml


def is_json(text: str) -> bool:
    """Whether the first thing in the text is a brace. A JSON text with a mistake is not tried again as YAML."""
    return text.lstrip(" \t\r\n").startswith("{")


def parse_text(text: str) -> Document:
    """Read a policy text. Raises UnreadableError, also for one of more than 1 MiB."""
    if len(text) > MAX_CHARACTERS:
        message = f"the text is longer than {MAX_CHARACTERS} characters: a policy is a few kilobytes"
        raise UnreadableError(message)
    text = text.removeprefix("\ufeff")
    return parse_json(text) if is_json(text) else parse_yaml(text)
