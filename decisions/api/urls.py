"""The API's addresses. The browsable page is its own documentation."""

from csp.constants import SELF
from csp.decorators import csp_update
from django.urls import URLPattern, URLResolver, include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.permissions import IsAuthenticated
from rest_framework.routers import SimpleRouter

from decisions.api import views

router = SimpleRouter(use_regex_path=False)
router.register("decisions", views.DecisionViewSet, basename="api-decision")
router.register("cycles", views.CycleViewSet, basename="api-cycle")
router.register("policies", views.PolicyViewSet, basename="api-policy")
router.register("freezes", views.FreezeViewSet, basename="api-freeze")
router.register("clusters", views.ClusterViewSet, basename="api-cluster")

# Swagger's styles have pictures in them, as data: addresses; no other page may show such. Its start script has an
# address of its own (?script), so that none stands in the page.
docs = csp_update({"img-src": [SELF, "data:"]})(
    SpectacularSwaggerSplitView.as_view(url_name="api-schema", permission_classes=[IsAuthenticated])
)

urlpatterns: list[URLPattern | URLResolver] = [
    path("v1/", include(router.urls)),
    path("v1/openapi/", SpectacularAPIView.as_view(permission_classes=[IsAuthenticated]), name="api-schema"),
    path("docs/", docs, name="api-docs"),
    path("v1/<path:rest>/", views.NotHere.as_view(), name="api-not-here"),
]
