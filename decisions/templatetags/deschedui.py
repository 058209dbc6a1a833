"""Template tags and filters of deschedui's pages."""

from django import template

register = template.Library()
