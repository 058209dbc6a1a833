"""Programs that use the API: with a token, with a session, with nothing."""

import json
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from decisions.services import access
from decisions.services.actors import SYSTEM


class Api:
    """A client of the API v1 that speaks JSON."""

    def __init__(self, token: str = "", client: Client | None = None) -> None:
        self._client = client or Client()
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def get(self, path: str, **query: Any) -> Any:
        return self._client.get(f"/api/v1/{path}", query, headers=self._headers)

    def post(self, path: str, body: Any = None) -> Any:
        data = json.dumps({} if body is None else body)
        return self._client.post(
            f"/api/v1/{path}", data, content_type="application/json", headers=self._headers
        )


def token_of(user: User, *scopes: str) -> str:
    """A token of this user's with these scopes (none: read)."""
    now = timezone.now()
    expires = now + timedelta(days=1)
    return access.create_api_token(
        owner=user, name="ci", scopes=scopes, expires_at=expires, by=SYSTEM, now=now
    )[1]


def api(user: User, *scopes: str) -> Api:
    """The API as a program of this user sees it."""
    return Api(token_of(user, *scopes))
