"""history."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from decisions.web.pages import page


@page()
def history(request: HttpRequest) -> HttpResponse:
    return render(request, "soon.html", {"page": "history"})


@page()
def export(request: HttpRequest, kind: str) -> HttpResponse:
    return render(request, "soon.html", {"page": "history"})
