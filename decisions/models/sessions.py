"""Who is signed in: sessions with their owner and their times, so that the server can end them."""

from typing import ClassVar

from django.conf import settings
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models


class Session(AbstractBaseSession):
    """One signed-in browser. Its key is kept hashed: who reads the database cannot take a session over."""

    session_key = models.CharField(
        primary_key=True, max_length=64, help_text="SHA-256 of the cookie's value."
    )
    account = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, null=True, related_name="+", help_text="Empty: nobody yet."
    )
    signed_in_at = models.DateTimeField()
    active_at = models.DateTimeField(help_text="When a person last did something; a poll is nobody's doing.")

    objects: ClassVar[models.Manager["Session"]]  # type: ignore[assignment]  # the base has a manager of its own

    def __str__(self) -> str:
        return f"a session of {self.account or 'nobody'}"

    def save(self, *, force_update: bool = False, **kwargs: object) -> None:
        """Writing what a session holds never moves its times: only a person's doing does (``SessionStore.touch``)."""
        fields = {"update_fields": ["session_data", "account"]} if force_update else {}
        super().save(force_update=force_update, **{**kwargs, **fields})  # type: ignore[arg-type]
