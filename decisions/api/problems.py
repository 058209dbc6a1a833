"""Errors as ``application/problem+json`` (RFC 9457): what failed, on what, what to do."""

from collections.abc import Mapping
from typing import Any

from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import exception_handler

from decisions.services.errors import AlreadyRuns, Changed, Closed, Conflict, Invalid, NotAllowed
from deschedui.kube.errors import KubeError

CONTENT_TYPE = "application/problem+json"


def problem(status: int, title: str, detail: str, **more: Any) -> Response:
    """A problem document; ``more`` are its extension members."""
    body = {
        "type": f"urn:deschedui:problem:{title.lower().replace(' ', '-')}",
        "title": title,
        "status": status,
    }
    return Response({**body, "detail": detail, **more}, status=status, content_type=CONTENT_TYPE)


def handler(error: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's exception handler: refusals of the domain, and everything that DRF itself raises."""
    if isinstance(error, Changed):
        changes = {name: {"shown": pair[0], "now": pair[1]} for name, pair in error.changes.items()}
        return problem(409, "Changed", str(error), **_state(error), changes=changes)
    if isinstance(error, Conflict):
        return problem(409, "Conflict", str(error), **_state(error))
    if isinstance(error, AlreadyRuns):
        return problem(409, "Conflict", str(error), cycle=error.cycle_id)
    if isinstance(error, Closed):
        return problem(409, "Conflict", str(error))
    if isinstance(error, KubeError):
        return problem(503, "Cluster not reachable", f"The API server cannot be asked: {error}. Try again.")
    if isinstance(error, NotAllowed):
        return problem(403, "Not allowed", str(error), **_state(error))
    if isinstance(error, Invalid):
        return problem(400, "Invalid", str(error), errors={error.field: [str(error)]} if error.field else {})
    response = exception_handler(error, context)
    return _as_problem(error, response) if response is not None else None


def _state(error: Changed | Conflict | NotAllowed) -> dict[str, Any]:
    decision = error.decision
    return {
        "decision": decision.pk,
        "version": decision.version,
        "verdict": decision.verdict,
        "eviction": decision.eviction,
        "decided_by": decision.decided_by_name,
        "decided_at": decision.decided_at,
    }


def _as_problem(error: Exception, response: Response) -> Response:
    detail = getattr(error, "detail", None)
    if isinstance(error, exceptions.ValidationError):
        fields = detail if isinstance(detail, Mapping) else {"": detail}
        answer = problem(400, "Invalid", "The request is not valid; errors says which fields.", errors=fields)
    else:
        title = getattr(error, "default_code", "error").replace("_", " ").capitalize()
        answer = problem(response.status_code, title, str(detail or "Not found."))
    for name, value in response.items():
        if name.lower() in {"www-authenticate", "allow", "retry-after"}:
            answer[name] = value
    return answer
