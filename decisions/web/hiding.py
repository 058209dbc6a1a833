"""While a request is served, what is logged or reported hides the credentials that came with it, by their value."""

import re
from collections.abc import Callable, Iterator
from typing import Final

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.http.request import RawPostDataException

from deschedui import logs

Next = Callable[[HttpRequest], HttpResponseBase]

_TELLING: Final = re.compile(r"AUTH|COOKIE|CSRF|KEY|PASS|SECRET|SESSION|TOKEN", re.IGNORECASE)


class HideCredentials:
    """The first middleware: an error's message may quote a cookie or a password, which no pattern would recognise."""

    def __init__(self, get_response: Next) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        with logs.hiding(lambda: credentials_of(request)):
            return self.get_response(request)


def credentials_of(request: HttpRequest) -> Iterator[str]:
    """Values of headers, cookies and fields that are named like secrets; all cookies of ours, whatever their names."""
    for name, value in request.META.items():
        if isinstance(value, str) and _TELLING.search(name):
            yield value
    ours = {settings.SESSION_COOKIE_NAME, settings.CSRF_COOKIE_NAME}
    yield from (value for name, value in request.COOKIES.items() if name in ours or _TELLING.search(name))
    yield from (value for name, value in _fields(request) if _TELLING.search(name))


def _fields(request: HttpRequest) -> Iterator[tuple[str, str]]:
    """Of the query, and of a form that a view has read already; reading it here would read it for nothing."""
    for name, values in request.GET.lists():
        yield from ((name, value) for value in values)
    if hasattr(request, "_post"):
        try:
            posted = list(request.POST.lists())
        except RawPostDataException:
            return
        for name, values in posted:
            yield from ((name, value) for value in values)
