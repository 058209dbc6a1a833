"""The template engine of this product: whatever a template puts out goes through :mod:`deschedui.text`.

Django escapes each variable by itself; this does the same for characters that hide or turn text around, once for the
whole output, so that there is no filter that a template could forget.
"""

from typing import Any

from django.http import HttpRequest
from django.template.backends.django import DjangoTemplates
from django.template.backends.django import Template as DjangoTemplate
from django.utils.safestring import SafeString, mark_safe

from deschedui.text import visible_html


class Template(DjangoTemplate):
    """A template whose output shows what would be invisible."""

    def render(self, context: dict[str, Any] | None = None, request: HttpRequest | None = None) -> SafeString:
        """As Django renders it, made visible."""
        return mark_safe(visible_html(super().render(context, request)))  # noqa: S308 - rendered and escaped


class VisibleTemplates(DjangoTemplates):
    """Django's engine with these templates."""

    def from_string(self, template_code: str) -> Template:
        """A template of this text."""
        return Template(self.engine.from_string(template_code), self)

    def get_template(self, template_name: str) -> Template:
        """A template by its name."""
        return Template(super().get_template(template_name).template, self)
