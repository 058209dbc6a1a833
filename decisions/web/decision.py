"""One decision: its page, and every answer a person can give. Each answer is a form; with htmx a fragment of it."""

import json
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render

from decisions.models import Decision, Permission, TeamReason, Verdict
from decisions.queries import decision as query
from decisions.queries import sentences
from decisions.queries.inbox import Row, row_of
from decisions.queries.people import who_may
from decisions.services import evictions, verdicts
from decisions.services.clock import db_now
from decisions.services.errors import Conflict, Invalid, Refused
from decisions.web.pages import access_of, actor_of, came_from, is_fragment, page, person_of

HOUR = 3600

Answering = Callable[[HttpRequest, Decision], HttpResponse]
View = Callable[[HttpRequest, int], HttpResponseBase]


def answers(permission: str, *methods: str) -> Callable[[Answering], View]:
    """A view in which somebody with ``permission`` answers one decision; who may only see it hears who may."""

    def with_decision(view: Answering) -> View:
        @page(*methods)
        @wraps(view)
        def answered(request: HttpRequest, pk: int) -> HttpResponse:
            each = found(request, pk)
            refused = _may_not(request, each, permission)
            return view(request, each) if refused is None else refused

        return answered

    return with_decision


@page()
def decision(request: HttpRequest, pk: int) -> HttpResponse:
    """The whole page of one decision."""
    return render(request, "decision.html", page_context(request, found(request, pk)))


@page()
def row(request: HttpRequest, pk: int) -> HttpResponse:
    """The row as it is: what a cancelled form turns back into."""
    return redraw(request, found(request, pk))


@page()
def why(request: HttpRequest, pk: int) -> HttpResponse:
    """What unfolds under a row."""
    each = found(request, pk)
    if not is_fragment(request):
        return redirect(each)
    access = access_of(request)
    return render(request, "_why.html", {"story": query.story(each, access, db_now())})


@answers(Permission.DECIDE, "POST")
def approve(request: HttpRequest, each: Decision) -> HttpResponse:
    """A yes. Where the forecast is bad it asks once more, in words, before it lets you."""
    objections = sentences.objections(each)
    version = _version(request)
    if (
        objections
        and not request.POST.get("confirmed")
        and each.verdict == Verdict.PENDING
        and each.version == version
    ):
        return redraw(request, each, mode="ask")
    return _answer(
        request,
        each,
        lambda: verdicts.approve(
            decision_id=each.pk,
            version=version,
            by=actor_of(request),
            undo_seconds=each.cluster.settings.undo_seconds,
            now=db_now(),
        ),
        done=f"Approved: {each.pod} in {each.cluster.name} will be evicted.",
    )


@answers(Permission.DECIDE, "GET", "POST")
def deny(request: HttpRequest, each: Decision) -> HttpResponse:
    """A no, with a reason."""
    if request.method != "POST":
        return redraw(request, each, mode="deny" if each.verdict == Verdict.PENDING else "")
    return _answer(
        request,
        each,
        lambda: verdicts.deny(
            decision_id=each.pk,
            version=_version(request),
            by=actor_of(request),
            reason=request.POST.get("reason", ""),
            cooldown_seconds=_cooldown(request),
            now=db_now(),
        ),
        mode="deny",
        done=f"Denied: {each.pod} in {each.cluster.name} stays.",
    )


@answers(Permission.DECIDE, "POST")
def undo(request: HttpRequest, each: Decision) -> HttpResponse:
    """Back to pending within the undo time, without a reason."""
    return _answer(
        request,
        each,
        lambda: verdicts.undo(decision_id=each.pk, by=actor_of(request), now=db_now()),
        done=f"Undone: {each.pod} waits again.",
    )


@answers(Permission.DECIDE, "GET", "POST")
def take_back(request: HttpRequest, each: Decision) -> HttpResponse:
    """An approval becomes a denial, with a reason, while nothing irrevocable has begun."""
    if request.method != "POST":
        return redraw(
            request,
            each,
            mode="take-back" if row_of(each, access_of(request), db_now()).recallable else "",
        )
    return _answer(
        request,
        each,
        lambda: verdicts.take_back(
            decision_id=each.pk,
            by=actor_of(request),
            reason=request.POST.get("reason", ""),
            cooldown_seconds=_cooldown(request),
            now=db_now(),
        ),
        mode="take-back",
        done=f"Taken back: {each.pod} in {each.cluster.name} stays.",
    )


@answers(Permission.OVERRIDE, "GET", "POST")
def override(request: HttpRequest, each: Decision) -> HttpResponse:
    """Allow what was denied, with a reason. Looks whether the pod still exists; the only page that asks a cluster."""
    if request.method != "POST":
        return redraw(request, each, mode="override" if each.verdict == Verdict.DENIED else "")
    return _answer(
        request,
        each,
        lambda: _override(request, each),
        mode="override",
        done=f"Overridden: {each.pod} in {each.cluster.name} will be evicted.",
    )


def _override(request: HttpRequest, each: Decision) -> Decision:
    # The cluster's client is loaded here only: no other page needs it.
    from decisions.services import lookups  # noqa: PLC0415
    from deschedui.kube.errors import KubeError  # noqa: PLC0415

    reason = request.POST.get("reason", "")
    try:
        exists = bool(reason.strip()) and lookups.pod_exists(each)
    except KubeError as error:
        sentence = (
            f"Whether {each.pod} still exists cannot be told ({error}). Nothing was changed; try again."
        )
        raise Conflict(each, sentence) from error
    return verdicts.override(
        decision_id=each.pk, by=actor_of(request), reason=reason, pod_exists=exists, now=db_now()
    )


@answers(Permission.DECIDE, "POST")
def retry(request: HttpRequest, each: Decision) -> HttpResponse:
    """Try a failed eviction again."""
    return _answer(
        request,
        each,
        lambda: evictions.retry_failed(decision_id=each.pk, by=actor_of(request), now=db_now()),
        done=f"{each.pod} is queued again.",
    )


@answers(Permission.DECIDE, "POST")
def go_on(request: HttpRequest, each: Decision) -> HttpResponse:
    """Release what the pace holds."""
    return _answer(
        request,
        each,
        lambda: evictions.go_on(decision_id=each.pk, by=actor_of(request), now=db_now()),
        done=f"{each.pod} goes on.",
    )


# --- shared ------------------------------------------------------------------------------------------------


def found(request: HttpRequest, pk: int) -> Decision:
    """The decision; 404 where it is not this person's to see."""
    each = query.find(access_of(request), pk)
    if each is None:
        raise Http404(f"There is no decision {pk}, or none that you may see.")
    return each


def _version(request: HttpRequest) -> int:
    text = request.POST.get("version", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def _cooldown(request: HttpRequest) -> int | None:
    text = request.POST.get("cooldown", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _may_not(request: HttpRequest, each: Decision, permission: str) -> HttpResponse | None:
    """Who may see but not act hears who may; with the state as it is."""
    if access_of(request).may_decision(permission, each):
        return None
    names = sentences.listed(who_may(permission, each.cluster_id, each.namespace), last="or")
    who = f"{names} may." if names else "Nobody has that role yet."
    sentence = f"You may not {permission} in namespace {each.namespace} of {each.cluster.name}. {who}"
    if is_fragment(request):
        # 409, not 403: the row goes back and says why nothing happened.
        return redraw(request, each, notice=sentence, status=409)
    return render(request, "decision.html", page_context(request, each, notice=sentence), status=403)


def _answer(
    request: HttpRequest, each: Decision, change: Callable[[], object], *, done: str, mode: str = ""
) -> HttpResponse:
    """Make a change and draw what came of it; a refusal is a sentence and the fresh state."""
    try:
        change()
    except Invalid as refusal:
        return redraw(request, found(request, each.pk), mode=mode, notice=str(refusal), status=422)
    except Refused as refusal:
        return redraw(request, found(request, each.pk), notice=str(refusal), status=409)
    if not is_fragment(request):
        messages.success(request, done)
        return redirect(came_from(request))
    answer = redraw(request, found(request, each.pk))
    answer["HX-Trigger"] = _said(done)
    return answer


def _said(sentence: str) -> str:
    """The header that makes the page say something to whoever listens; ASCII, as headers must be."""
    return json.dumps({"say": sentence})


def redraw(
    request: HttpRequest, each: Decision, *, mode: str = "", notice: str = "", status: int = 200
) -> HttpResponse:
    """The decision where it stands: its row in a list, the head of its page, or the whole page."""
    context = page_context(request, each, mode=mode, notice=notice)
    if not is_fragment(request):
        if not mode and not notice and request.method != "POST":
            return redirect(each)
        return render(request, "decision.html", context, status=status)
    target = request.headers.get("HX-Target", "")
    if not target.startswith("d-"):
        return render(
            request,
            "_decision_answered.html" if request.method == "POST" else "_decision.html",
            context,
            status=status,
        )
    params = request.POST if request.method == "POST" else request.GET
    template = "_after.html" if params.get("table") == "after" else "_row.html"
    return render(
        request, template, row_context(request, context["row"], mode=mode, notice=notice), status=status
    )


def row_context(request: HttpRequest, row: Row, *, mode: str = "", notice: str = "") -> dict[str, Any]:
    """What a row needs beside itself."""
    return {
        "row": row,
        "d": row.decision,
        "mode": mode,
        "notice": notice,
        "group_by": (request.POST if request.method == "POST" else request.GET).get("group") or "workload",
        **answer_context(request, row.decision, mode),
    }


def answer_context(request: HttpRequest, each: Decision, mode: str) -> dict[str, Any]:
    """What the form of an answer needs; nothing is read where there is no form."""
    context: dict[str, Any] = {"objections": sentences.objections(each), "next": came_from(request)}
    if mode in {"deny", "take-back"}:
        team = TeamReason.objects.values_list("text", flat=True)
        context["reasons"] = query.recent_reasons(person_of(request).pk, team)
        context["cooldowns"] = cooldowns(each.cluster.settings.denial_cooldown_seconds)
    context["typed"] = request.POST.get("reason", "")[:4096]
    return context


def cooldowns(default: int) -> list[tuple[str, str]]:
    """Choices of how long a denial holds; the cluster's own first."""
    fixed = [(HOUR, "1h"), (4 * HOUR, "4h"), (24 * HOUR, "24h"), (7 * 24 * HOUR, "7d"), (0, "not at all")]
    mine = ("", sentences.duration(default))
    return [mine, *((str(seconds), label) for seconds, label in fixed if seconds != default)]


def page_context(request: HttpRequest, each: Decision, *, mode: str = "", notice: str = "") -> dict[str, Any]:
    """The decision's whole page."""
    story = query.story(each, access_of(request), db_now())
    return {
        "story": story,
        "row": story.row,
        "d": each,
        "page": "decision",
        "mode": mode,
        "notice": notice,
        **answer_context(request, each, mode),
    }
