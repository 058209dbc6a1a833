"""What all views share: who may open a page, and whether a page or a fragment goes back."""

from collections.abc import Callable, Mapping
from functools import wraps
from http import HTTPStatus
from typing import Any, Concatenate, ParamSpec, cast
from urllib.parse import urlsplit

from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render, resolve_url
from django.utils.cache import patch_vary_headers
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods

from decisions.queries.access import Access
from decisions.services.actors import Actor

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponseBase]


def is_fragment(request: HttpRequest) -> bool:
    """Whether htmx wants a fragment; a boosted or history-restoring request wants the whole page."""
    headers = request.headers
    return (
        headers.get("HX-Request") == "true"
        and headers.get("HX-Boosted") != "true"
        and headers.get("HX-History-Restore-Request") != "true"
    )


def access_of(request: HttpRequest) -> Access:
    """What the person behind this request may, read once a request."""
    known = getattr(request, "access", None)
    if not isinstance(known, Access):
        known = Access.of(request.user)
        request.access = known  # type: ignore[attr-defined]
    return known


def person_of(request: HttpRequest) -> User:
    """The signed-in user."""
    if not isinstance(request.user, User):
        raise PermissionDenied("Sign in first.")
    return request.user


def actor_of(request: HttpRequest) -> Actor:
    """The signed-in person, as the timeline names them."""
    return Actor.person(person_of(request))


def page(*methods: str) -> Callable[[View[P]], View[P]]:
    """A view for people who are signed in, with these methods. What goes back depends on ``HX-Request``."""

    def decorate(view: View[P]) -> View[P]:
        @wraps(view)
        def guarded(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            if not request.user.is_authenticated:
                return redirect_to_login(
                    request.get_full_path() if request.method == "GET" else came_from(request)
                )
            response = view(request, *args, **kwargs)
            patch_vary_headers(response, ("HX-Request",))
            if not response.has_header("Cache-Control"):
                response["Cache-Control"] = "no-store"
            return response

        allowed = list(methods or ("GET",))
        guard = require_http_methods([*allowed, "HEAD"] if "GET" in allowed else allowed)
        return _with_a_page_for_readers(cast("View[P]", guard(guarded)))

    return decorate


def _with_a_page_for_readers(view: View[P]) -> View[P]:
    """Who opens an address that only takes forms gets a page: for a bare 405 browsers show one about a broken site."""

    @wraps(view)
    def explained(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        response = view(request, *args, **kwargs)
        if (
            response.status_code != HTTPStatus.METHOD_NOT_ALLOWED
            or request.method != "GET"
            or is_fragment(request)
        ):
            return response
        shown = render(request, "405.html", status=HTTPStatus.METHOD_NOT_ALLOWED)
        shown["Allow"], shown["Cache-Control"] = response["Allow"], "no-store"
        return shown

    return cast("View[P]", explained)


def show(
    request: HttpRequest, template: str, context: Mapping[str, Any], *, fragment: str = "", status: int = 200
) -> HttpResponse:
    """The page, or, for htmx and where there is one, the fragment of it."""
    chosen = fragment if fragment and is_fragment(request) else template
    return render(request, chosen, dict(context), status=status)


def came_from(request: HttpRequest) -> str:
    """Where to go after a form: its ``next``, else the page it was on, else the inbox. Only addresses of ours."""
    for wanted in (request.POST.get("next", ""), request.headers.get("Referer", "")):
        if wanted and url_has_allowed_host_and_scheme(
            wanted, {request.get_host()}, require_https=request.is_secure()
        ):
            parts = urlsplit(wanted)
            return f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
    return resolve_url("inbox")


def back(request: HttpRequest) -> HttpResponse:
    """After a form without JavaScript: to where it came from."""
    return redirect(came_from(request))
