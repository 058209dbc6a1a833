"""``manage.py environment``: every environment variable that is read, with its default; the documentation's source."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from deschedui.config import PREFIX, ROOT, Environment


def rows() -> list[tuple[str, str, str]]:
    """(variable, default, what it does) of every setting, in the order of :mod:`deschedui.config`."""
    return [
        (PREFIX + name.upper(), _written(field.default), field.description or "")
        for name, field in Environment.model_fields.items()
    ]


def _written(default: object) -> str:
    """A default as it would stand in the environment; paths without the place of this installation."""
    if isinstance(default, bool):
        return "true" if default else "false"
    text = ",".join(default) if isinstance(default, tuple) else str(default)
    return text.replace(str(ROOT), "<here>")


class Command(BaseCommand):
    """Prints no value of this installation, only names, defaults and meanings."""

    help = "List the environment variables that deschedui reads."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        """``--format``."""
        parser.add_argument("--format", choices=("text", "markdown", "json"), default="text")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Print them."""
        self.stdout.write(_FORMATS[options["format"]](rows()))


def _text(lines: list[tuple[str, str, str]]) -> str:
    return "\n\n".join(f"{name}={default}\n    {meaning}" for name, default, meaning in lines)


def _markdown(lines: list[tuple[str, str, str]]) -> str:
    head = ["| variable | default | meaning |", "| --- | --- | --- |"]
    return "\n".join(
        head + [f"| `{name}` | {_code(default)} | {meaning} |" for name, default, meaning in lines]
    )


def _code(default: str) -> str:
    return f"`{default}`" if default else "(empty)"


def _json(lines: list[tuple[str, str, str]]) -> str:
    return json.dumps(
        [dict(zip(("name", "default", "meaning"), line, strict=True)) for line in lines], indent=2
    )


_FORMATS = {"text": _text, "markdown": _markdown, "json": _json}
