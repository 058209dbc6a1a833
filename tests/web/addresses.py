"""Every address that the product answers, made from its own table: a new page is in it without being added."""

import re
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver
from django.urls.resolvers import RoutePattern

VALUES: Mapping[str, tuple[str, ...]] = {
    "what": ("inbox", "decision", "cycle", "shell"),
    "kind": ("csv", "json"),
    "name": ("prod",),
    "rest": ("nope",),
}


def routes(resolver: URLResolver | None = None, before: str = "/") -> Iterator[str]:
    """Routes as they are written in the tables: ``/d/<int:pk>/deny``."""
    for each in (resolver or get_resolver()).url_patterns:
        route = before + _route_of(each.pattern)
        if isinstance(each, URLPattern):
            yield route
        else:
            yield from routes(each, route)


def _route_of(pattern: Any) -> str:
    assert isinstance(pattern, RoutePattern), f"{pattern} is no path(): say here how to make an address of it"
    return str(pattern)


def addresses(**values: object) -> list[str]:
    """Each route with the values of its parts: ``addresses(pk=3)``; those of :data:`VALUES` by themselves."""
    return [address for route in routes() for address in _filled(route, values)]


def _filled(route: str, values: Mapping[str, object]) -> Iterator[str]:
    parts = re.findall(r"<(?:\w+:)?(\w+)>", route)
    choices = [(str(values[part]),) if part in values else VALUES[part] for part in parts]
    for chosen in product(*choices):
        address = route
        for value in chosen:
            address = re.sub(r"<[^>]+>", value, address, count=1)
        yield address
