"""What changed since the page was drawn, for its poll: 204 where nothing did, else fragments swapped by their ids.

The page says what it shows, as ``id.token`` for every row, group and bar. The answer holds only what differs,
so a poll that finds nothing costs three small queries, and a row that the page would not let go of (somebody
types in it) is offered again with the next poll.
"""

from collections.abc import Iterable
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone

from decisions.models import CycleState, Decision, Permission
from decisions.queries import inbox as query
from decisions.queries.inbox import MOST_ROWS, Group, Row
from decisions.templatetags.deschedui import OF_A_POLL
from decisions.web.context import shell_of
from decisions.web.cycles import cycle_context
from decisions.web.cycles import find as find_cycle
from decisions.web.cycles import token as cycle_token
from decisions.web.decision import page_context, row_context
from decisions.web.inbox import filter_of, inbox_context
from decisions.web.pages import access_of, page

MOST_SHOWN = 600


@page()
def live(request: HttpRequest, what: str) -> HttpResponse:
    """The poll of a page."""
    parts = {"inbox": _inbox, "decision": _decision, "cycle": _cycle}.get(what, _nothing)(request)
    fragments = [*_shell(request), *parts]
    if not fragments:
        return HttpResponse(status=204)
    return HttpResponse("\n".join(fragments))


def _shown(request: HttpRequest, name: str) -> dict[str, str]:
    """``12.ab34,13.cd56`` as a mapping. What is not understood is left out: it will simply be drawn anew."""
    pairs = (pair.partition(".") for pair in request.GET.get(name, "").split(",")[:MOST_SHOWN])
    return {key: token for key, dot, token in pairs if dot}


def _numbers(request: HttpRequest, name: str) -> dict[int, str]:
    return {
        int(key): token
        for key, token in _shown(request, name).items()
        if key.isascii() and key.isdigit() and len(key) < 16
    }


def _shell(request: HttpRequest) -> list[str]:
    """Bars, count and the document's title, where they differ."""
    frame = shell_of(request)
    if request.GET.get("bars") == frame.token:
        return []
    title = request.GET.get("title", "deschedui")[:200]
    context = {"oob": True, "title": title}
    return [
        render_to_string("_title.html", context, request),
        render_to_string("_bars.html", context, request),
        render_to_string("_count.html", context, request),
    ]


def _nothing(_request: HttpRequest) -> list[str]:
    return []


def _inbox(request: HttpRequest) -> list[str]:
    access, chosen, now = access_of(request), filter_of(request), timezone.now()
    shown = _numbers(request, "rows")
    waiting = list(query.waiting(access, chosen, now)[:MOST_ROWS])
    after = _numbers(request, "after")
    if waiting and not shown.keys() - after.keys():
        return [_whole_list(request)]
    gone = set(shown) - {decision.pk for decision in waiting}
    others = query.related(access.decisions(Permission.VIEW).filter(pk__in=gone)) if gone else ()
    rows = query.as_rows([*(each for each in waiting if each.pk in shown), *others], access, now)
    new = [each.pk for each in waiting if each.pk not in shown]
    return [
        *_changed_rows(request, rows, shown),
        *_changed_groups(request, query.grouped([row for row in rows if row.pending], chosen.group)),
        *_new_ones(request, new),
        *_newly_approved(request, chosen, shown, after),
    ]


def _newly_approved(
    request: HttpRequest, chosen: query.Filter, shown: dict[int, str], after: dict[int, str]
) -> list[str]:
    """What was approved and is not gone yet, where the page does not show all of it already, there or in its list."""
    access, now = access_of(request), timezone.now()
    on_their_way, failed = query.after_approval(access, chosen, now)
    in_list = shown.keys() - after.keys()
    if not {each.pk for each in (*on_their_way, *failed)} - after.keys() - in_list:
        return []
    rows = query.as_rows([each for each in (*on_their_way, *failed) if each.pk not in in_list], access, now)
    ended = {each.pk for each in failed}
    context = {
        "oob": True,
        "inbox": {
            "failed": [row for row in rows if row.decision.pk in ended],
            "on_their_way": [row for row in rows if row.decision.pk not in ended],
        },
    }
    return [render_to_string("_after_list.html", context, request)]


def _whole_list(request: HttpRequest) -> str:
    """The list was empty: nothing the eye is on can be pushed away."""
    return render_to_string("_list.html", {**inbox_context(request), "oob": True}, request)


def _changed_rows(request: HttpRequest, rows: Iterable[Row], shown: dict[int, str]) -> Iterable[str]:
    unfolded = set(_numbers(request, "open"))
    after = set(_numbers(request, "after"))
    for row in rows:
        if shown.get(row.decision.pk) == row.token:
            continue
        template = "_after.html" if row.decision.pk in after else "_row.html"
        context: dict[str, Any] = {**row_context(request, row), "oob": True, "may_decide": row.may_decide}
        if row.decision.pk in unfolded and row.pending:
            from decisions.queries.decision import story  # noqa: PLC0415

            context |= {"mode": "why", "story": story(_full(row.decision), access_of(request), row.now)}
        yield _template(render_to_string(template, context, request))


def _full(decision: Decision) -> Decision:
    return (
        Decision.objects.select_related("cluster", "caller", "cycle", "policy")
        .defer("cycle__document")
        .get(pk=decision.pk)
    )


def _changed_groups(request: HttpRequest, groups: Iterable[Group]) -> Iterable[str]:
    heads = _shown(request, "groups")
    may_decide = access_of(request).may_somewhere(Permission.DECIDE)
    for group in groups:
        if heads.get(group.id, group.token) != group.token:
            context = {"group": group, "oob": True, "may_decide": may_decide}
            yield _template(render_to_string("_group.html", context, request))


def _new_ones(request: HttpRequest, new: list[int]) -> list[str]:
    token = query.token_of(new) if new else ""
    if request.GET.get("new", "") == token:
        return []
    keep = request.GET.copy()
    for name in OF_A_POLL:
        keep.pop(name, None)
    here = f"{reverse('inbox')}?{keep.urlencode()}"
    context = {"oob": True, "new": len(new), "new_token": token, "here": here}
    return [render_to_string("_new.html", context, request)]


def _template(rows: str) -> str:
    """A table's part can stand alone in a template element only."""
    return f"<template>{rows}</template>"


def _decision(request: HttpRequest) -> list[str]:
    """The head and the timeline of one decision's page; its poll slows down, and ends with the last change."""
    pk = next(iter(_numbers(request, "rows")), 0)
    each = (
        access_of(request)
        .decisions(Permission.VIEW)
        .select_related("cluster", "caller", "cycle", "policy")
        .defer("cycle__document")
        .filter(pk=pk)
        .first()
    )
    if each is None:
        return []
    row = query.row_of(each, access_of(request), timezone.now())
    if _numbers(request, "rows").get(pk) == row.token:
        return []
    context = {**page_context(request, each), "oob": True}
    return [
        render_to_string(name, context, request)
        for name in ("_decision.html", "_timeline.html", "_poll.html")
    ]


def _cycle(request: HttpRequest) -> list[str]:
    """A running cycle's page; once it has ended the page is drawn a last time and its poll goes back to the frame."""
    pk, _, state = request.GET.get("cycle", "").partition("-")
    if not (pk.isascii() and pk.isdigit() and len(pk) < 16):
        return []
    found = access_of(request).cycles().defer("document").filter(pk=int(pk)).first()
    if found is None or cycle_token(found) == f"{pk}-{state}":
        return []
    context = {**cycle_context(request, find_cycle(request, found.pk)), "oob": True}
    names = ["_cycle.html"] if found.state == CycleState.RUNNING else ["_cycle.html", "_poll_frame.html"]
    return [render_to_string(name, context, request) for name in names]
