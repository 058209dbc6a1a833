"""policy."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from decisions.web.pages import page


@page()
def policy(request: HttpRequest) -> HttpResponse:
    return render(request, "soon.html", {"page": "policy"})


@page("POST")
def check(request: HttpRequest) -> HttpResponse:
    return render(request, "soon.html", {"page": "policy"})


@page("POST")
def store(request: HttpRequest) -> HttpResponse:
    return render(request, "soon.html", {"page": "policy"})
