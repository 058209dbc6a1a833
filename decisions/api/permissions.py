"""The first gate of every API view: signed in, and with some right at all. Rows are limited by ``Access``."""

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
        if not request.user.is_authenticated:
            return False
        needs: dict[str, str] = getattr(view, "needs", {})
        permission = needs.get(getattr(view, "action", "") or "", Permission.VIEW)
        return access_of(request).may_somewhere(permission)
