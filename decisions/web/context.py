"""What every page's shell shows."""

from django.http import HttpRequest


def shell(request: HttpRequest) -> dict[str, object]:
    return {}
