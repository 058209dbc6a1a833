"""What every page's request goes through: its session, a login that does not end up inside a table row, a zone."""

from collections.abc import Callable
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.auth.views import redirect_to_login
from django.contrib.sessions.exceptions import SessionInterrupted
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import resolve_url
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme, urlencode

from decisions.models import Preference
from decisions.web.pages import came_from, is_fragment

Next = Callable[[HttpRequest], HttpResponseBase]
# Asked by scripts, not by a person. Known by their address: a header could be left out, or sent by anybody.
POLLS = frozenset({"live", "healthz", "livez"})


class Sessions(SessionMiddleware):
    """Django's sessions, with two differences.

    What a person does prolongs the session, what polls does not, nor does the API. One that was ended while its last
    request ran (by that very request, where people take a role from themselves) leads to the login, not to an error.
    """

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """Note that somebody was there; write the session and its cookie."""
        if _is_a_persons(request) and request.session.accessed and SESSION_KEY in request.session:
            request.session.touch(timezone.now())  # type: ignore[attr-defined]  # ours: settings.SESSION_ENGINE
        try:
            return super().process_response(request, response)
        except SessionInterrupted:
            answer = redirect_to_login(came_from(request), f"{resolve_url(settings.LOGIN_URL)}?because=ended")
            answer.delete_cookie(settings.SESSION_COOKIE_NAME, samesite="Lax")
            return answer


def _is_a_persons(request: HttpRequest) -> bool:
    match = request.resolver_match
    return match is not None and match.url_name not in POLLS and not request.path.startswith("/api/")


class LoginForFragments:
    """A fragment's request whose session has expired is told where to sign in; never a 302 into the fragment.

    The browser would follow a redirect inside its fetch and htmx would put the login page into the table row
    (django-htmx issues 91 and 398). A poll gets a bare 401: leaving the page would lose what is being typed.
    The POST is not repeated after the login; the person looks again and clicks again.
    """

    def __init__(self, get_response: Next) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        login = resolve_url(settings.LOGIN_URL)
        to_login = response.status_code == 302 and urlsplit(response.get("Location", "")).path == login
        if not (to_login and is_fragment(request)):
            return response
        answer = HttpResponse("Your session has ended: sign in again.", status=401, content_type="text/plain")
        if not request.path.startswith("/live/"):
            answer["HX-Redirect"] = f"{login}?{urlencode({'next': shown_page(request)})}"
        return answer


class PlainAddresses:
    """No text of ours has a NUL in it, and PostgreSQL refuses to look for one. The API says so in its own form."""

    def __init__(self, get_response: Next) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        where = "" if request.path.startswith("/api/") else self._with_nul(request)
        if where:
            sentence = f"The {where} contains a NUL character (%00); take it out."
            return HttpResponse(sentence, status=400, content_type="text/plain")
        return self.get_response(request)

    def _with_nul(self, request: HttpRequest) -> str:
        if "%00" in request.META.get("QUERY_STRING", ""):
            return "address"
        written = (text for name, values in request.POST.lists() for text in (name, *values))
        return "form" if any("\0" in text for text in written) else ""


def shown_page(request: HttpRequest) -> str:
    """Path and query of the page that the browser shows, as htmx says it; the inbox where it says none of ours."""
    current = request.headers.get("HX-Current-URL", "")
    if not url_has_allowed_host_and_scheme(current, {request.get_host()}, require_https=request.is_secure()):
        return resolve_url("inbox")
    parts = urlsplit(current)
    return f"{parts.path}?{parts.query}" if parts.query else parts.path or "/"


class PersonsTimeZone:
    """Times are shown in the person's zone; the installation's where they chose none."""

    def __init__(self, get_response: Next) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path.startswith(("/api/", "/doors/", f"/{settings.STATIC_URL.strip('/')}/")):
            return self.get_response(request)
        with timezone.override(zone_of(preference_of(request).time_zone)):
            return self.get_response(request)


def preference_of(request: HttpRequest) -> Preference:
    """What this person prefers, read once a request; the defaults for who is not signed in or chose nothing."""
    known = getattr(request, "preference", None)
    if isinstance(known, Preference):
        return known
    found = (
        Preference.objects.filter(user_id=request.user.pk).first() if request.user.is_authenticated else None
    )
    preference = found or Preference()
    request.preference = preference  # type: ignore[attr-defined]
    return preference


def zone_of(name: str) -> ZoneInfo:
    """The named zone; the installation's for an empty name or one that this machine does not know."""
    try:
        return ZoneInfo(name or settings.TIME_ZONE)
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo("UTC")
