"""What the door is measured against: an async Django view that takes the body and answers as many bytes of JSON."""

from django.http import HttpRequest, JsonResponse
from django.urls import include, path

_ANSWER = {"allow": False, "reason": "x" * 60, "decision": 1, "state": "pending", "url": "x" * 40}


async def bare(request: HttpRequest) -> JsonResponse:
    """Nothing but the framework."""
    answer = JsonResponse({**_ANSWER, "decision": len(request.body)})
    answer["Content-Length"] = len(answer.content)
    return answer


# Below /api/: elsewhere a POST of JSON is taken for a question at a wrong address, and a door answers it.
urlpatterns = [path("api/bare", bare), path("", include("deschedui.urls"))]
