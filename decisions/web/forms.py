"""Reading what a form posts: the settings of a cluster, generated from their model, and lists written in a field."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, get_args, get_origin

from decisions.models import Cluster, ClusterSettings
from decisions.queries.sentences import duration
from decisions.services.errors import Invalid


@dataclass(frozen=True)
class Field:
    """One setting, as its row of the form shows it."""

    name: str
    title: str
    description: str
    kind: str
    value: str
    default: str
    choices: tuple[str, ...] = ()
    unit: str = ""
    set: bool = False
    wrong: str = ""


def setting_fields(
    cluster: Cluster, typed: Mapping[str, str] | None = None, wrong: Invalid | None = None
) -> list[Field]:
    """Every setting of a cluster, in the model's order; what was typed stays where it was refused."""
    current = cluster.settings
    return [
        Field(
            name=name,
            title=info.title or name,
            description=info.description or "",
            kind=_kind(info.annotation),
            value=typed.get(name, "") if typed is not None else _written(getattr(current, name)),
            default=_shown(info.default, seconds=name.endswith("_seconds")),
            choices=get_args(info.annotation) if get_origin(info.annotation) is Literal else (),
            unit="seconds" if name.endswith("_seconds") else "",
            set=name in cluster.overrides,
            wrong=str(wrong) if wrong is not None and wrong.field == name else "",
        )
        for name, info in ClusterSettings.model_fields.items()
    ]


def _kind(annotation: Any) -> str:
    if annotation is bool:
        return "bool"
    if get_origin(annotation) is Literal:
        return "choice"
    if annotation is str:
        return "text"
    return "list" if get_origin(annotation) is tuple else "number"


def _written(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else ""
    if isinstance(value, tuple):
        return ", ".join(str(each) for each in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _shown(value: object, *, seconds: bool) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return ", ".join(duration(each) for each in value)
    return duration(value) if seconds and isinstance(value, int | float) else _written(value)


def read_settings(post: Mapping[str, str]) -> dict[str, Any]:
    """The settings of a posted form. A field that is left empty goes back to its default.

    Raises:
        Invalid: a number is none; names the field. Bounds are the model's business.
    """
    return {
        name: _read(name, info.annotation, post.get(name, ""))
        for name, info in ClusterSettings.model_fields.items()
    }


def _read(name: str, annotation: Any, text: str) -> Any:
    kind, text = _kind(annotation), text.strip()
    if kind == "bool":
        return text == "on"
    if not text:
        return None
    if kind in {"choice", "text"}:
        return text
    if kind == "list":
        return tuple(_number(name, part, whole=True) for part in re.split(r"[,\s]+", text) if part)
    return _number(name, text, whole=annotation is int)


def _number(name: str, text: str, *, whole: bool) -> float | int:
    title = ClusterSettings.model_fields[name].title or name
    if not re.fullmatch(r"\d{1,9}(\.\d{1,3})?", text) or (whole and "." in text):
        raise Invalid(f"{title}: “{text[:30]}” is not a {'whole ' if whole else ''}number.", name)
    return int(text) if whole else float(text)


def words(text: str) -> list[str]:
    """Words of a field, separated by commas or spaces."""
    return [word for word in re.split(r"[,\s]+", text.strip()) if word][:100]


def a_number(post: Mapping[str, str], name: str, default: int) -> int:
    """A whole number; the default for an empty field.

    Raises:
        Invalid: it is none.
    """
    text = post.get(name, "").strip()
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise Invalid(f"“{text[:30]}” is not a whole number.", name)
    return int(text)


def a_day(text: str) -> datetime | None:
    """The end of a day (UTC) that a date field says; None for an empty one.

    Raises:
        Invalid: it is no day.
    """
    if not text.strip():
        return None
    try:
        return datetime.strptime(text.strip(), "%Y-%m-%d").replace(hour=23, minute=59, second=59, tzinfo=UTC)
    except ValueError as error:
        raise Invalid(f"“{text[:30]}” is not a day such as 2027-01-31.", "expires") from error
