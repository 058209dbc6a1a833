"""Columns for text from outside: whatever an API server, an extender, a caller or a person sends can be stored.

PostgreSQL refuses NUL characters, halves of surrogate pairs, and text that is longer than its column; SQLite takes
all of it. A write that fails because of somebody's text would lose a decision, so the column itself makes it fit.
"""

import math
import re
from typing import TYPE_CHECKING, Any, Final

from django.db import models

from deschedui.text import escape

if TYPE_CHECKING:
    _Char = models.CharField[Any, str]
    _Text = models.TextField[Any, str]
    _JsonField = models.JSONField[Any, Any]
else:
    _Char, _Text, _JsonField = models.CharField, models.TextField, models.JSONField

_UNFIT: Final = re.compile("[\x00\ud800-\udfff]")  # NUL, and halves of surrogate pairs
_CUT: Final = "…"

Deconstructed = tuple[str, str, list[Any], dict[str, Any]]


def fit(text: str, limit: int | None = None) -> str:
    """At most ``limit`` characters, a cut shows as ``…``; what no database takes is stored as its escape."""
    return _cut(_UNFIT.sub(lambda found: escape(found[0]), _cut(text, limit)), limit)


def _cut(text: str, limit: int | None) -> str:
    return text if limit is None or len(text) <= limit else text[: limit - len(_CUT)] + _CUT


def fit_json(value: Any) -> Any:
    """The same for every text of a JSON document; numbers that JSON does not have become text."""
    if isinstance(value, str):
        return fit(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {fit(str(key)): fit_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [fit_json(item) for item in value]
    return value


class BoundedText(_Char):
    """A ``CharField`` that cuts what is longer than the column. To migrations it is a ``CharField``."""

    def get_prep_value(self, value: Any) -> Any:
        prepared = super().get_prep_value(value)
        return fit(prepared, self.max_length) if isinstance(prepared, str) else prepared

    def deconstruct(self) -> Deconstructed:
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.CharField", list(args), dict(kwargs)


class FreeText(_Text):
    """A ``TextField`` that takes any text. To migrations it is a ``TextField``."""

    def get_prep_value(self, value: Any) -> Any:
        prepared = super().get_prep_value(value)
        return fit(prepared) if isinstance(prepared, str) else prepared

    def deconstruct(self) -> Deconstructed:
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.TextField", list(args), dict(kwargs)


class Json(_JsonField):
    """A ``JSONField`` that takes any text. To migrations it is a ``JSONField``."""

    def get_prep_value(self, value: Any) -> Any:
        return fit_json(super().get_prep_value(value))

    def deconstruct(self) -> Deconstructed:
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.JSONField", list(args), dict(kwargs)
