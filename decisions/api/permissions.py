"""The gates of every API view: signed in, with some right at all. Rows are limited by ``Access``.

What is not yours is looked for first and not found (404); only then it is said what you may not do with it (403).
"""

from typing import TYPE_CHECKING

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from decisions.api.authentication import access_of
from decisions.models import Permission

if TYPE_CHECKING:  # DRF's settings import this module while its views are being imported
    from rest_framework.views import APIView


class ScopedPermission(BasePermission):
    """Reading needs ``view`` somewhere; what a view changes names its permission in ``needs``."""

    message = "You may not do this; ask an admin for a role, or use a token with the scope."

    def has_permission(self, request: Request, view: "APIView") -> bool:
        return request.user.is_authenticated and access_of(request).may_somewhere(Permission.VIEW)

    def has_object_permission(self, request: Request, view: "APIView", obj: object) -> bool:
        needs: dict[str, str] = getattr(view, "needs", {})
        permission = needs.get(getattr(view, "action", "") or "", Permission.VIEW)
        return access_of(request).may_somewhere(permission)
