"""Who calls the API: a session, or a token that acts for its owner within its scopes."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from django.contrib.auth.models import User
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from decisions.models import ApiToken, Permission
from decisions.queries.access import Access
from decisions.services.actors import Actor
from decisions.services.tokens import digest

SCOPES: dict[str, frozenset[str]] = {
    "read": frozenset({Permission.VIEW}),
    "decide": frozenset({Permission.VIEW, Permission.DECIDE, Permission.OVERRIDE}),
    "configure": frozenset({Permission.VIEW, Permission.CONFIGURE}),
}
USED_NOTE_EVERY = timedelta(minutes=1)


class TokenAuthentication(BaseAuthentication):
    """``Authorization: Bearer dui_…``. A token that is unknown, revoked or expired is a 401 that says so."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        scheme, _, value = get_authorization_header(request).decode("latin-1").partition(" ")
        if scheme.lower() != "bearer":
            return None
        token = ApiToken.objects.select_related("owner").filter(digest=digest(value.strip())).first()
        now = datetime.now(UTC)
        if token is None:
            raise AuthenticationFailed("This token is not known.")
        if token.revoked_at is not None or token.expires_at <= now or not token.owner.is_active:
            raise AuthenticationFailed("This token was revoked, has expired, or its owner left.")
        if token.last_used_at is None or token.last_used_at < now - USED_NOTE_EVERY:
            ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
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


def permissions_of(scopes: Iterable[str]) -> frozenset[str]:
    """The permissions that these scopes leave of their owner's."""
    return frozenset().union(*(SCOPES.get(scope, frozenset()) for scope in scopes))


def access_of(request: Request) -> Access:
    """What this request may, token scopes included."""
    if isinstance(request.auth, ApiToken):
        return Access.of(request.user, limited_to=permissions_of(request.auth.scopes))
    return Access.of(request.user)


def actor_of(request: Request) -> Actor:
    """Who acts, as the timeline will say it."""
    user = request.user
    assert isinstance(user, User)  # noqa: S101 - ScopedPermission let nobody else through
    return Actor.token(user, request.auth.name) if isinstance(request.auth, ApiToken) else Actor.person(user)
