"""Pages at the root, the API under /api/. The doors stand in front of all this: ``decisions.doors.asgi``."""

from django.urls import include, path

from decisions.web import health

urlpatterns = [
    path("healthz", health.ready, name="healthz"),
    path("livez", health.live, name="livez"),
    path("api/", include("decisions.api.urls")),
    path("", include("decisions.web.urls")),
]
