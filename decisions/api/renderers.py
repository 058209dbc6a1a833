"""How the API's answers are written: the stored text, with what would be invisible in JSON's own escapes."""

from typing import Any

from rest_framework.renderers import JSONRenderer
from rest_framework.utils.encoders import JSONEncoder

from deschedui.text import visible_json


class VisibleEncoder(JSONEncoder):
    """Encodes as DRF does. A program reads the stored text; a terminal that prints the answer is not fooled by it."""

    def encode(self, o: Any) -> str:
        """The document, made visible before it becomes bytes (a half of a surrogate pair has none)."""
        return visible_json(super().encode(o))


class VisibleJSONRenderer(JSONRenderer):
    """JSON by :class:`VisibleEncoder`."""

    encoder_class = VisibleEncoder
