"""The policy: its text with what is wrong beside the lines, which version runs, and trying a text."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from decisions.models import Cluster, Permission, PolicyVersion
from decisions.services import policies
from decisions.services.clock import db_now
from decisions.services.errors import Refused
from decisions.web.context import shell_of
from decisions.web.pages import access_of, actor_of, page

MOST_VERSIONS = 30
MOST_LINES = 5000


@dataclass
class Line:
    """A line of a policy with what is to be said about it."""

    number: int
    text: str
    errors: list[Mapping[str, Any]] = field(default_factory=list)
    warnings: list[Mapping[str, Any]] = field(default_factory=list)


def lines_of(
    text: str, errors: Iterable[Mapping[str, Any]], warnings: Iterable[Mapping[str, Any]]
) -> list[Line]:
    """The text by lines, each problem at its line; what lies behind the end stands at the last one."""
    found = [Line(number, line) for number, line in enumerate(text.splitlines()[:MOST_LINES] or [""], 1)]
    for kind, problems in (("errors", errors), ("warnings", warnings)):
        by_line: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
        for problem in problems:
            by_line[min(max(int(problem.get("line") or 1), 1), len(found))].append(problem)
        for number, here in by_line.items():
            getattr(found[number - 1], kind).extend(here)
    return found


def chosen_cluster(request: HttpRequest) -> Cluster | None:
    """The cluster of the address, else the first one that this person sees."""
    frame = shell_of(request)
    wanted = request.POST.get("cluster", "")
    if wanted:
        return next((cluster for cluster in frame.clusters if cluster.name == wanted), None)
    return frame.cluster or next(iter(frame.clusters), None)


@page()
def policy(request: HttpRequest) -> HttpResponse:
    """The version that runs, or the one of the address."""
    cluster = chosen_cluster(request)
    return render(request, "policy.html", _context(request, cluster))


def _context(request: HttpRequest, cluster: Cluster | None, **more: Any) -> dict[str, Any]:
    if cluster is None:
        return {"page": "policy", **more}
    running, latest = policies.last_good(cluster.pk), policies.latest(cluster.pk)
    shown = _shown(cluster, request.GET.get("version", "")) or latest
    versions = PolicyVersion.objects.filter(cluster=cluster).defer("text").select_related("created_by")
    return {
        "cluster": cluster,
        "running": running,
        "latest": latest,
        "shown": shown,
        "lines": lines_of(shown.text, shown.errors, shown.warnings) if shown else [],
        "versions": versions[:MOST_VERSIONS],
        "editable": access_of(request).may(Permission.CONFIGURE, cluster.pk),
        "from_source": cluster.policy_file
        or (f"ConfigMap {cluster.policy_configmap}" if cluster.policy_configmap else ""),
        "page": "policy",
        **more,
    }


def _shown(cluster: Cluster, number: str) -> PolicyVersion | None:
    if not (number.isascii() and number.isdigit() and len(number) < 10):
        return None
    found = PolicyVersion.objects.filter(cluster=cluster, number=int(number)).first()
    if found is None:
        raise Http404(f"{cluster.name} has no policy version {number}.")
    return found


@page("POST")
def check(request: HttpRequest) -> HttpResponse:
    """What is right and wrong with a text. Opens no file, resolves no name, calls nothing, stores nothing."""
    cluster = chosen_cluster(request)
    text = request.POST.get("text", "")[: policies.MAX_BYTES]
    checked = policies.validate(text)
    more = {
        "draft": text,
        "checked": checked,
        "draft_lines": lines_of(text, checked.errors, checked.warnings),
    }
    return render(request, "policy.html", _context(request, cluster, **more))


@page("POST")
def store(request: HttpRequest) -> HttpResponse:
    """Store a text as a new version; a bad one is stored and shown, and the last good one runs on."""
    cluster = chosen_cluster(request)
    if cluster is None:
        raise Http404("There is no such cluster, or none that you may see.")
    if not access_of(request).may(Permission.CONFIGURE, cluster.pk):
        raise PermissionDenied(f"Only an admin of all of {cluster.name} may change its policy.")
    text = request.POST.get("text", "")
    try:
        version = policies.save_text(cluster=cluster, text=text, by=actor_of(request), now=db_now())
    except Refused as refusal:
        checked = policies.validate(text[: policies.MAX_BYTES])
        more = {
            "draft": text,
            "checked": checked,
            "refused": str(refusal),
            "draft_lines": lines_of(text, checked.errors, checked.warnings),
        }
        return render(request, "policy.html", _context(request, cluster, **more), status=422)
    word = "runs from the next cycle on" if version.valid else "has errors; the last good one runs on"
    messages.add_message(
        request,
        messages.SUCCESS if version.valid else messages.WARNING,
        f"Version {version.number} is stored and {word}.",
    )
    return redirect(f"{reverse('policy')}?cluster={cluster.name}&version={version.number}")
