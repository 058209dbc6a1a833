"""cycles."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from decisions.web.pages import page


@page()
def cycles(request: HttpRequest) -> HttpResponse:
    return render(request, "soon.html", {"page": "cycles"})


@page()
def cycle(request: HttpRequest, pk: int) -> HttpResponse:
    return render(request, "soon.html", {"page": "cycles"})


@page("POST")
def start(request: HttpRequest) -> HttpResponse:
    return render(request, "soon.html", {"page": "cycles"})
