"""extenders."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from decisions.web.pages import page


@page()
def extenders(request: HttpRequest) -> HttpResponse:
    return render(request, "soon.html", {"page": "extenders"})
