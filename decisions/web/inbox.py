"""The inbox: what waits for this person."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from decisions.models import Permission
from decisions.queries import inbox as query
from decisions.queries.inbox import GROUPINGS, Filter, Grouping
from decisions.web.context import shell_of
from decisions.web.pages import access_of, page


def filter_of(request: HttpRequest) -> Filter:
    """The filter that the address says."""
    get = request.GET.get
    group: Grouping = next((each for each in GROUPINGS if each == get("group")), "workload")
    return Filter(
        group=group,
        q=get("q", "").strip()[:100],
        namespace=get("namespace", "")[:63],
        node=get("node", "")[:253],
        plugin=get("plugin", "")[:253],
        cluster=shell_of(request).cluster,
    )


@page()
def inbox(request: HttpRequest) -> HttpResponse:
    """All that waits, in groups; with nothing waiting, what the last cycle found and when the next one runs."""
    return render(request, "inbox.html", inbox_context(request))


def inbox_context(request: HttpRequest) -> dict[str, Any]:
    """Everything the inbox shows; also the whole list of a live update that found it empty."""
    access, now = access_of(request), timezone.now()
    found = query.inbox(access, filter_of(request), now)
    return {
        "inbox": found,
        "group_by": found.filter.group,
        "groupings": GROUPINGS,
        "selected": set(request.GET.getlist("select")),
        "may_decide": access.may_somewhere(Permission.DECIDE),
        "last_cycle": None if found.groups else query.last_cycle(access, found.filter.cluster),
        "page": "inbox",
    }
