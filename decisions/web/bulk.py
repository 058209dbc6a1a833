"""Many at once: what was picked is listed before anything happens, and for each it is said what did."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from decisions.models import Decision, Permission, TeamReason, Verdict
from decisions.queries import decision as decision_query
from decisions.queries import sentences
from decisions.queries.inbox import Row, as_rows, related
from decisions.queries.sentences import listed, plural
from decisions.services import verdicts
from decisions.services.clock import db_now
from decisions.services.errors import Invalid, Refused
from decisions.web.decision import cooldowns, found, row_context
from decisions.web.pages import access_of, actor_of, came_from, is_fragment, page, person_of

MOST_PICKED = 500


@dataclass(frozen=True)
class Picked:
    """A decision in the version that was on the screen when it was picked."""

    row: Row
    version: int

    @property
    def problem(self) -> str:
        """Why it is left out; empty where it can be answered."""
        if not self.row.pending:
            return self.row.outcome
        if self.row.decision.version != self.version:
            return "It changed since it was shown: look again."
        return "" if self.row.may_decide else "You may not decide in this namespace."


@dataclass(frozen=True)
class Result:
    """What happened to one of them."""

    row: Row
    done: bool
    sentence: str


def _pairs(values: Iterable[str]) -> dict[int, int]:
    """``12:3`` is decision 12 in version 3; what is not understood is left out."""
    found = {}
    for value in list(values)[:MOST_PICKED]:
        pk, _, version = value.partition(":")
        if pk.isascii() and pk.isdigit() and version.isascii() and version.isdigit() and len(value) < 24:
            found[int(pk)] = int(version)
    return found


def _picked(request: HttpRequest, values: Iterable[str]) -> list[Picked]:
    pairs, access = _pairs(values), access_of(request)
    rows = (
        access.decisions(Permission.VIEW)
        .filter(pk__in=pairs)
        .order_by("namespace", "workload", "pod_name", "pk")
    )
    return [Picked(row, pairs[row.decision.pk]) for row in as_rows(list(related(rows)), access, db_now())]


def summary_of(decisions: Sequence[Decision]) -> str:
    """ "7 pods of 3 workloads on 2 nodes; 2 would be blocked by PDB web"."""
    pods = {(each.cluster_id, each.pod_uid): each for each in decisions}.values()
    workloads = {(each.cluster_id, each.namespace, each.workload or each.pod_name) for each in pods}
    nodes = {(each.cluster_id, each.node) for each in pods if each.node}
    words = (
        f"{plural(len(pods), 'pod')} of {plural(len(workloads), 'workload')} on {plural(len(nodes), 'node')}"
    )
    return "; ".join([words, *_blocked(pods)])


def _blocked(pods: Iterable[Decision]) -> list[str]:
    wanted: Counter[tuple[int, str, str]] = Counter()
    allowed: dict[tuple[int, str, str], int] = {}
    for each in pods:
        forecast = each.forecast or {}
        for pdb in forecast.get("pdbs", ()) if forecast.get("pdb_applies", True) else ():
            key = (each.cluster_id, each.namespace, str(pdb.get("name")))
            wanted[key] += 1
            allowed[key] = int(pdb.get("disruptions_allowed") or 0)
    over = {key[2]: count - allowed[key] for key, count in sorted(wanted.items()) if count > allowed[key]}
    return [f"{count} would be blocked by PDB {name}" for name, count in over.items()]


@page("GET")
def summary(request: HttpRequest) -> HttpResponse:
    """The bar's sentence for what is picked at the moment."""
    picked = _picked(request, request.GET.getlist("row"))
    text = (
        summary_of([each.row.decision for each in picked])
        if picked
        else "Select rows to answer many at once."
    )
    return render(request, "_summary.html", {"text": text})


@page("POST")
def bulk(request: HttpRequest) -> HttpResponse:
    """What was picked, listed; to be confirmed. A pod that joined or changed since is not in it."""
    pod, _, all_of_it = request.POST.get("pod", "").partition(":")
    picked = _who_ask_for(request, pod) if pod else _picked(request, request.POST.getlist("row"))
    answer = "deny" if "deny" in {request.POST.get("answer"), all_of_it} else "approve"
    return _confirm(request, picked, answer)


def _who_ask_for(request: HttpRequest, pk: str) -> list[Picked]:
    """All who wait for the pod of a decision, as they are now: the confirmation shows them."""
    if not (pk.isascii() and pk.isdigit() and len(pk) < 16):
        return []
    one = found(request, int(pk))
    access = access_of(request)
    rows = access.decisions(Permission.VIEW).filter(
        cluster_id=one.cluster_id, pod_uid=one.pod_uid, verdict=Verdict.PENDING
    )
    return [Picked(row, row.decision.version) for row in as_rows(list(related(rows)), access, db_now())]


def _confirm(
    request: HttpRequest, picked: Sequence[Picked], answer: str, *, problem: str = "", status: int = 200
) -> HttpResponse:
    ready = [each for each in picked if not each.problem]
    team = TeamReason.objects.values_list("text", flat=True)
    settings = ready[0].row.decision.cluster.settings if ready else None
    context: dict[str, Any] = {
        "answer": answer,
        "ready": ready,
        "left_out": [each for each in picked if each.problem],
        "summary": summary_of([each.row.decision for each in ready]),
        "objections": [
            (each, listed(sentences.objections(each.row.decision)))
            for each in ready
            if sentences.objections(each.row.decision)
        ],
        "reasons": decision_query.recent_reasons(person_of(request).pk, team) if answer == "deny" else [],
        "cooldowns": cooldowns(settings.denial_cooldown_seconds) if settings else [],
        "problem": problem,
        "next": came_from(request),
        "page": "inbox",
    }
    return render(request, "_bulk.html" if is_fragment(request) else "bulk.html", context, status=status)


@page("POST")
def apply(request: HttpRequest) -> HttpResponse:
    """Answer what was listed, each on its own; what somebody else decided meanwhile is said, not an error."""
    picked = _picked(request, request.POST.getlist("row"))
    denying = request.POST.get("answer") == "deny"
    reason = request.POST.get("reason", "").strip()
    if denying and not reason:
        return _confirm(
            request, picked, "deny", problem="Say why: whoever asked will want to know.", status=422
        )
    results = [_apply(request, each, denying=denying, reason=reason) for each in picked]
    done = sum(each.done for each in results)
    context = {
        "results": results,
        "done": done,
        "verb": "denied" if denying else "approved",
        "fragments": [row_context(request, each.row) for each in results],
        "next": came_from(request),
        "page": "inbox",
    }
    return render(request, "_bulk_result.html" if is_fragment(request) else "bulk_result.html", context)


def _apply(request: HttpRequest, picked: Picked, *, denying: bool, reason: str) -> Result:
    if picked.problem:
        return Result(picked.row, done=False, sentence=picked.problem)
    pk, now = picked.row.decision.pk, db_now()
    by = actor_of(request)
    try:
        if denying:
            cooldown = request.POST.get("cooldown", "")
            seconds = (
                int(cooldown) if cooldown.isascii() and cooldown.isdigit() and len(cooldown) < 10 else None
            )
            verdicts.deny(
                decision_id=pk,
                version=picked.version,
                by=by,
                reason=reason,
                cooldown_seconds=seconds,
                now=now,
            )
        else:
            undo = picked.row.decision.cluster.settings.undo_seconds
            verdicts.approve(decision_id=pk, version=picked.version, by=by, undo_seconds=undo, now=now)
    except (Refused, Invalid) as refusal:
        return Result(_again(request, pk), done=False, sentence=str(refusal))
    fresh = _again(request, pk)
    return Result(fresh, done=True, sentence=fresh.outcome)


def _again(request: HttpRequest, pk: int) -> Row:
    rows = related(access_of(request).decisions(Permission.VIEW).filter(pk=pk))
    return as_rows(list(rows), access_of(request), db_now())[0]
