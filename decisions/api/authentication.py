"""Who calls the API: a session, or a token that acts for its owner within its scopes."""

from datetime import UTC, datetime

from django.contrib.auth.models import User
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from decisions.models import ApiToken
from decisions.queries.access import Access
from decisions.services import access
from decisions.services.actors import Actor


class TokenAuthentication(BaseAuthentication):
    """``Authorization: Bearer dui_…``. A token that is unknown, revoked or expired is a 401 that says so."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        scheme, _, value = get_authorization_header(request).decode("latin-1").partition(" ")
        if scheme.lower() != "bearer":
            return None
        token = access.find_api_token(value.strip(), now=datetime.now(UTC))
        if token is None:
            raise AuthenticationFailed(
                "This token is not known, was revoked, has expired, or its owner left."
            )
        return token.owner, token

    def authenticate_header(self, request: Request) -> str:
        """What makes DRF answer 401 instead of 403."""
        return "Bearer"


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # its metaclass is untyped
    """How the OpenAPI document names it."""

    target_class = "decisions.api.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "An API token, made on the settings page."}


def access_of(request: Request) -> Access:
    """What this request may, token scopes included."""
    if isinstance(request.auth, ApiToken):
        return Access.of(request.user, limited_to=access.permissions_of(request.auth.scopes))
    return Access.of(request.user)


def actor_of(request: Request) -> Actor:
    """Who acts, as the timeline will say it."""
    user = request.user
    assert isinstance(user, User)  # noqa: S101 - ScopedPermission let nobody else through
    return Actor.token(request.auth) if isinstance(request.auth, ApiToken) else Actor.person(user)
