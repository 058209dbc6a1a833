"""Probes. Web is ready when it can serve and record; a dead worker never makes it unready (design.md section 8)."""

from django.db import DatabaseError, InterfaceError, transaction
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from decisions.models import Heartbeat


@require_safe
def live(_request: HttpRequest) -> HttpResponse:
    """The process answers."""
    return HttpResponse("ok\n", content_type="text/plain")


@require_safe
def ready(_request: HttpRequest) -> HttpResponse:
    """The database takes writes: a write of no row fails where it is read-only, locked or away."""
    try:
        with transaction.atomic():
            Heartbeat.objects.filter(pk=0).update(name="")
    except (DatabaseError, InterfaceError):
        return HttpResponse("the database takes no writes\n", content_type="text/plain", status=503)
    return HttpResponse("ok\n", content_type="text/plain")
