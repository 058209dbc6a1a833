"""Cycles: what ran, one of them in detail, and starting one by hand."""

from dataclasses import dataclass, field
from typing import Any, Final

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from decisions.models import Cluster, Cycle, CycleKind, CycleState, Decision, Eviction, Permission, Verdict
from decisions.models.documents import Nominated
from decisions.queries import cycles as query
from decisions.queries import sentences
from decisions.queries.history import parse_time
from decisions.services import cycles as service
from decisions.services.clock import db_now
from decisions.services.errors import Refused
from decisions.web.context import shell_of
from decisions.web.pages import access_of, actor_of, back, page

PAGE: Final = 50
MOST_LISTED: Final = 500
SHOWS: Final = ("filtered", "nominated", "allowed", "evicted")
# What a step opens: a list, and the list that its losses are in.
OPENS: Final = {
    "pods": ("filtered", "filtered"),
    "eligible": ("nominated", ""),
    "nominated": ("nominated", "nominated"),
    "asked": ("nominated", ""),
    "allowed": ("allowed", ""),
    "evicted": ("evicted", ""),
}
STATES: Final = {
    "waiting": "waits for a human",
    "blocked": "allowed, blocked",
    "held_back": "not recorded, too many wait",
    "unasked": "not asked in time",
    "would_ask": "would be asked about",
    "disarmed": "the cluster was disarmed",
}


@page()
def cycles(request: HttpRequest) -> HttpResponse:
    """The cycles, newest first."""
    access, chosen = access_of(request), shell_of(request).cluster
    rows = query.listing(access, cluster=chosen).defer("document", "policy__text")
    before = parse_time(request.GET.get("before", ""))
    found = list(
        (rows.filter(started_at__lt=before) if before else rows).order_by("-started_at", "-pk")[: PAGE + 1]
    )
    context = {
        "cycles": [(cycle, sentences.CYCLES[cycle.state], took(cycle)) for cycle in found[:PAGE]],
        "older": found[PAGE - 1].started_at.strftime("%Y-%m-%dT%H:%M:%S.%fZ") if len(found) > PAGE else "",
        "startable": startable(request),
        "page": "cycles",
    }
    return render(request, "cycles.html", context)


def took(cycle: Cycle) -> str:
    """How long it ran, or runs."""
    if cycle.state == CycleState.SKIPPED:
        return ""
    seconds = ((cycle.finished_at or db_now()) - cycle.started_at).total_seconds()
    return sentences.ms(seconds * 1000) if seconds < 60 else sentences.duration(seconds)


def startable(request: HttpRequest) -> list[Cluster]:
    """Clusters on which this person may start a cycle: of the chosen one, or all."""
    access, chosen = access_of(request), shell_of(request).cluster
    found = access.clusters(Permission.DECIDE, whole=True)
    return list(found.filter(pk=chosen.pk) if chosen else found)


def find(request: HttpRequest, pk: int) -> query.Detail:
    """The cycle; 404 where it is not this person's to see."""
    detail = query.detail(access_of(request), pk)
    if detail is None:
        raise Http404(f"There is no cycle {pk}, or none that you may see.")
    return detail


def cycle_context(request: HttpRequest, detail: query.Detail) -> dict[str, Any]:
    """Everything about one cycle that this person may see."""
    cycle, access = detail.cycle, access_of(request)
    show, check = request.GET.get("show", ""), request.GET.get("check", "")[:60]
    if show not in SHOWS:
        show = "nominated" if detail.nominations else ""
    q = request.GET.get("q", "").strip()[:100]
    most = max([step.count for step in detail.funnel] + [1])
    return {
        "cycle": cycle,
        "detail": detail,
        "look": sentences.CYCLES[cycle.state],
        "took": took(cycle),
        "funnel": [
            (step, f"{step.count / most * 100:.1f}", *OPENS.get(step.key, ("", ""))) for step in detail.funnel
        ],
        "advice": sentences.FAILURES["config_error"]({}) if cycle.failure_mode == "config_error" else None,
        "show": show,
        "check": check,
        "q": q,
        "listed": listed(request, detail, show=show, check=check, q=q),
        "states": STATES,
        "partly": not access.may(Permission.VIEW, cycle.cluster_id),
        "token": token(cycle),
        "page": "cycles",
    }


@dataclass(frozen=True)
class Listed:
    """What one step of the funnel opens; at most so many of it."""

    filtered: list[query.FilteredPod] = field(default_factory=list)
    nominated: list[Nominated] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    total: int = 0


def listed(request: HttpRequest, detail: query.Detail, *, show: str, check: str, q: str) -> Listed:
    """The list of a step, narrowed to one reason and to a text."""
    if show == "filtered":
        pods = [pod for pod in detail.filtered(check) if _matches(pod, q)]
        return Listed(filtered=pods[:MOST_LISTED], total=len(pods))
    if show in {"allowed", "evicted"} and not detail.cycle.dry:
        rows = query.decisions_of(access_of(request), detail.cycle, detail.document)
        rows = rows.filter(verdict=Verdict.ALLOWED)
        rows = rows.filter(eviction=Eviction.EVICTED) if show == "evicted" else rows
        found = rows.select_related("cluster").order_by("namespace", "pod_name", "pk")
        found = found.filter(pod_name__icontains=q) if q else found
        return Listed(decisions=list(found[:MOST_LISTED]), total=found.count())
    wanted = "allowed" if show == "allowed" else check
    lines = detail.nominated(wanted) if wanted else detail.nominations
    lines = [line for line in lines if _matches(line, q)]
    return Listed(nominated=lines[:MOST_LISTED], total=len(lines))


def _matches(pod: query.FilteredPod | Nominated, q: str) -> bool:
    return not q or q.lower() in f"{pod.namespace}/{pod.name} {pod.node}".lower()


def token(cycle: Cycle) -> str:
    """Changes when a running cycle has something new to say."""
    return f"{cycle.pk}-{cycle.state}-{cycle.heartbeat_at:%H%M%S%f}"


@page()
def cycle(request: HttpRequest, pk: int) -> HttpResponse:
    """One cycle."""
    return render(request, "cycle.html", cycle_context(request, find(request, pk)))


@page("POST")
def start(request: HttpRequest) -> HttpResponse:
    """Start a cycle, or a dry run, by hand."""
    access = access_of(request)
    cluster = access.clusters(Permission.VIEW).filter(name=request.POST.get("cluster", "")).first()
    if cluster is None:
        raise Http404("There is no such cluster, or none that you may see.")
    if not access.may(Permission.DECIDE, cluster.pk):
        messages.error(
            request, f"You may not start cycles of {cluster.name}: that takes a role for all of it."
        )
        return back(request)
    kind = CycleKind.DRY_RUN if request.POST.get("kind") == "dry" else CycleKind.MANUAL
    try:
        started = service.start(cluster_id=cluster.pk, kind=kind, by=actor_of(request), now=db_now())
    except Refused as refusal:
        messages.warning(request, str(refusal))
        return redirect(f"{reverse('cycles')}?cluster={cluster.name}")
    return redirect("cycle", started.pk)
