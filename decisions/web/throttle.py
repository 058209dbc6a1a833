"""How often somebody may fail to sign in. django-axes counts; who was locked out hears when to try again.

So many failures for a name from one address within the time lock that name there; four times as many from anywhere
lock it everywhere: one address cannot keep somebody out of theirs, and a thousand addresses cannot guess for long.
Tried while locked, nothing is counted. ``manage.py axes_reset_username`` opens it at once.

API tokens are not counted: 256 random bits cannot be guessed; what does not look like one costs no query.
"""

from datetime import datetime, timedelta
from typing import Any, Final

from axes.handlers.database import AxesDatabaseHandler
from axes.handlers.proxy import AxesProxyHandler
from axes.signals import user_locked_out
from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Max, QuerySet, Sum
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from decisions.services import timeline
from decisions.services.actors import Actor
from deschedui.forwarded import caller_address

FROM_ANYWHERE: Final = 4
Credentials = dict[str, Any]


class Handler(AxesDatabaseHandler):  # type: ignore[misc]  # axes has no types
    """Counts by name and address, and by name alone with a higher limit."""

    def get_failures(self, request: HttpRequest, credentials: Credentials | None = None) -> int:
        """The failures that count against ``AXES_FAILURE_LIMIT``."""
        anywhere, here = (_failures(attempts) for attempts in self.get_user_attempts(request, credentials))
        return max(here, anywhere // FROM_ANYWHERE)


def _failures(attempts: "QuerySet[Any]") -> int:
    return attempts.aggregate(sum=Sum("failures_since_start"))["sum"] or 0


def address_of(request: HttpRequest) -> str | None:
    """Who calls. ``X-Forwarded-For`` counts as far as ``DESCHEDUI_TRUSTED_PROXIES`` of ours have written it."""
    written = request.META.get("HTTP_X_FORWARDED_FOR", "")
    return caller_address(request.META.get("REMOTE_ADDR", ""), written, trusted=settings.ENV.trusted_proxies)


def locked_until(request: HttpRequest, credentials: Credentials | None) -> datetime:
    """When this name may be tried again from here, at the latest."""
    attempts = AxesProxyHandler.get_implementation().get_user_attempts(request, credentials)[0]
    last = attempts.aggregate(last=Max("attempt_time"))["last"] or timezone.now()
    cool_off: timedelta = settings.AXES_COOLOFF_TIME
    return last + cool_off


def refused(request: HttpRequest, _response: HttpResponse, credentials: Credentials | None) -> HttpResponse:
    """What whoever is locked out sees."""
    until = locked_until(request, credentials)
    response = render(request, "locked_out.html", {"until": until}, status=429)
    response["Retry-After"] = str(max(1, round((until - timezone.now()).total_seconds())))
    response["Cache-Control"] = "no-store"
    return response


@receiver(user_locked_out, dispatch_uid="record-lock-out")
def _record(request: HttpRequest, username: str | None, ip_address: str | None, **_: Any) -> None:
    """Put the first failure too many on record; what is tried while locked says nothing new.

    A name that nobody has is locked like any other and not recorded: it may be a password in the wrong field.
    """
    tried_while_locked = getattr(request, "axes_failures_since_start", None) is None
    if tried_while_locked or not User.objects.filter(username=username or "").exists():
        return
    with timeline.transaction():
        timeline.audit(
            "sign-in locked",
            at=timezone.now(),
            by=Actor(name="deschedui"),
            subject=f"user {username}",
            detail={"address": ip_address or "", "minutes": settings.AXES_COOLOFF_TIME.total_seconds() / 60},
        )
