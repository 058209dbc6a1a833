"""What every page's shell shows."""

from django.conf import settings
from django.http import HttpRequest
from django.utils import timezone
from django.utils.functional import SimpleLazyObject

from decisions.queries.shell import Shell
from decisions.queries.shell import shell as read_shell
from decisions.web.middleware import preference_of
from decisions.web.pages import access_of

PAGES = (
    ("inbox", "Inbox", "inbox"),
    ("history", "History", "clock"),
    ("cycles", "Cycles", "arrow-path"),
    ("policy", "Policy", "document-text"),
    ("extenders", "Extenders", "chat-bubble-left-right"),
    ("settings", "Settings", "cog-6-tooth"),
)


def shell_of(request: HttpRequest) -> Shell:
    """The frame for this request, read once."""
    known = getattr(request, "shell", None)
    if not isinstance(known, Shell):
        known = read_shell(access_of(request), request.GET.get("cluster", ""), timezone.now())
        request.shell = known  # type: ignore[attr-defined]
    return known


def shell(request: HttpRequest) -> dict[str, object]:
    """Context of every template; nothing is read before a template asks for it."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {"zone_name": settings.TIME_ZONE}
    return {
        "shell": SimpleLazyObject(lambda: shell_of(request)),
        "access": SimpleLazyObject(lambda: access_of(request)),
        "preference": SimpleLazyObject(lambda: preference_of(request)),
        "nav": PAGES,
        "now": SimpleLazyObject(timezone.now),
        "zone_name": timezone.get_current_timezone_name(),
    }
