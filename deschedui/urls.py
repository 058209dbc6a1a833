"""Pages at the root, the API under /api/, what callers POST to under /doors/."""

from django.urls import include, path

urlpatterns = [
    path("doors/", include("decisions.doors.urls")),
    path("api/", include("decisions.api.urls")),
    path("", include("decisions.web.urls")),
]
