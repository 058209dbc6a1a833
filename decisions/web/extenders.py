"""Extenders: who is asked, how, and how they answered lately."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from decisions.queries import extenders as query
from decisions.web.context import shell_of
from decisions.web.pages import access_of, page


@page()
def extenders(request: HttpRequest) -> HttpResponse:
    """Every extender of the policies that run, and those that recent decisions asked."""
    frame = shell_of(request)
    clusters = [frame.cluster] if frame.cluster else list(frame.clusters)
    found = query.extenders(access_of(request), clusters)
    return render(request, "extenders.html", {"extenders": found, "page": "extenders"})
