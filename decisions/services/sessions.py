"""Sessions: how long they last and what ends them. The server decides, the cookie only names one.

Idle for ``DESCHEDUI_SESSION_IDLE_HOURS`` or signed in for ``DESCHEDUI_SESSION_HOURS``: over. Polling is nobody's
doing and prolongs neither; nor does writing to a session. Its owner's password or rights change: over, all of them
(:func:`end_all`, called by ``services.rights`` and by nothing else).
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any, Final

from asgiref.sync import sync_to_async
from axes.models import AccessAttempt
from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends import db
from django.db.models import Q
from django.utils import timezone

from decisions.models import Session
from decisions.services.access import digest_of

NOTED_EVERY: Final = timedelta(minutes=1)


def idle() -> timedelta:
    """How long a session lives without anybody doing anything."""
    return timedelta(hours=settings.ENV.session_idle_hours)


def absolute() -> timedelta:
    """How long after signing in a session is over whatever happens."""
    return timedelta(hours=settings.ENV.session_hours)


def alive(now: datetime) -> Q:
    """The condition on a session that is not over."""
    return Q(signed_in_at__gt=now - absolute(), active_at__gt=now - idle())


def end_all(user_ids: Collection[int]) -> int:
    """End every session of these people, at once. Returns how many that were."""
    return Session.objects.filter(account__in=user_ids).delete()[0] if user_ids else 0


def forget(*, now: datetime) -> int:
    """Drop the sessions that are over, and failed sign-ins that count no more: they hold what somebody typed."""
    AccessAttempt.objects.filter(attempt_time__lte=now - settings.AXES_COOLOFF_TIME).delete()
    return Session.objects.exclude(alive(now)).delete()[0]


class SessionStore(db.SessionStore):
    """``SESSION_ENGINE``: Django's, with hashed keys, an owner, and times that only a person's doing moves."""

    signed_in_at: datetime | None = None
    active_at: datetime | None = None

    @classmethod
    def get_model_class(cls) -> type[Session]:
        """The table."""
        return Session

    def _get_session_from_db(self) -> Session | None:
        row = Session.objects.filter(alive(timezone.now()), session_key=self._digest()).first()
        if row is None:
            self._session_key = None
            return None
        self.signed_in_at, self.active_at = row.signed_in_at, row.active_at
        return row

    def _digest(self, session_key: str | None = None) -> str:
        return digest_of(session_key or self.session_key or "")

    def exists(self, session_key: str) -> bool:
        """Whether there is a session with this key, alive or not."""
        return Session.objects.filter(session_key=self._digest(session_key)).exists()

    def create_model_instance(self, data: dict[str, Any]) -> Session:
        """The row as it will be written; its times count for a new one only."""
        now = timezone.now()
        owner = data.get(SESSION_KEY)
        return Session(
            session_key=self._digest(self._get_or_create_session_key()),  # type: ignore[attr-defined]  # not in the stubs
            session_data=self.encode(data),
            account_id=int(owner) if owner else None,
            signed_in_at=now,
            active_at=now,
            expire_date=_over(now, now),
        )

    def delete(self, session_key: str | None = None) -> None:
        """End it."""
        if session_key or self.session_key:
            Session.objects.filter(session_key=self._digest(session_key)).delete()

    def touch(self, now: datetime) -> bool:
        """A person did something: from here the idle time begins anew. Written once a minute."""
        if self.active_at is None or self.signed_in_at is None or self.active_at > now - NOTED_EVERY:
            return False
        row = Session.objects.filter(session_key=self._digest(), active_at__lt=now)
        return bool(row.update(active_at=now, expire_date=_over(self.signed_in_at, now)))

    @classmethod
    def clear_expired(cls) -> None:
        """For ``manage.py clearsessions``; the tick does it as well."""
        forget(now=timezone.now())

    # Django has each of these twice; nothing here awaits them, and a key must never be written in clear.

    async def _aget_session_from_db(self) -> Session | None:
        return await sync_to_async(self._get_session_from_db)()

    async def aexists(self, session_key: str) -> bool:
        """As :meth:`exists`."""
        return await sync_to_async(self.exists)(session_key)

    async def acreate_model_instance(self, data: dict[str, Any]) -> Session:
        """As :meth:`create_model_instance`."""
        return await sync_to_async(self.create_model_instance)(data)

    async def adelete(self, session_key: str | None = None) -> None:
        """As :meth:`delete`."""
        await sync_to_async(self.delete)(session_key)


def _over(signed_in_at: datetime, active_at: datetime) -> datetime:
    return min(signed_in_at + absolute(), active_at + idle())
