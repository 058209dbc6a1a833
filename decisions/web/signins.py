"""Who signs in and out, and who tried, put on record; and who was added and removed, by whatever means.

Of a failed attempt the name is kept only where somebody is called so: people type passwords into the field above.
Attempts on names that nobody has cost whoever makes them nothing to vary, so they are counted and only so many a minute
become entries; those on somebody's name are few by themselves, because they are locked (``web.throttle``).
"""

import threading
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from django.contrib.auth.models import Group, User
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.db.models.signals import post_save, pre_delete
from django.http import HttpRequest
from django.utils import timezone

from decisions.services import timeline
from decisions.services.actors import Actor
from decisions.services.rights import ELSEWHERE
from decisions.web.throttle import address_of

NOBODY: Final = Actor(name="not signed in")
MINUTE: Final = timedelta(minutes=1)
MOST_A_MINUTE: Final = 20


@dataclass
class Bound:
    """At most so many in a minute, of this process; the others are counted until one may be told."""

    most: int = MOST_A_MINUTE
    _since: datetime | None = None
    _told: int = 0
    _untold: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, now: datetime) -> int | None:
        """None: not now, but counted. Else how many were not told before this one."""
        with self._lock:
            if self._since is None or now - self._since >= MINUTE:
                self._since, self._told = now, 0
            if self._told >= self.most:
                self._untold += 1
                return None
            untold, self._untold = self._untold, 0
            self._told += 1
            return untold


unknown_names = Bound()


def _signed_in(request: HttpRequest, user: User, **_: Any) -> None:
    _record("signed in", request, Actor.person(user), user.get_username())


def _signed_out(request: HttpRequest, user: User | None, **_: Any) -> None:
    if user is not None:
        _record("signed out", request, Actor.person(user), user.get_username())


def _failed(credentials: dict[str, Any], request: HttpRequest | None = None, **_: Any) -> None:
    if request is None or _was_locked(request):
        return
    name = str(credentials.get("username") or "")
    if User.objects.filter(username=name).exists():
        _record("sign-in failed", request, NOBODY, name)
    elif (untold := unknown_names.take(timezone.now())) is not None:
        more = {"attempts_not_told_before": untold} if untold else {}
        _record("sign-in failed", request, NOBODY, "", **more)


def _was_locked(request: HttpRequest) -> bool:
    """Tried while it is locked: the lock is on record, and such an attempt counts for nothing."""
    locked = getattr(request, "axes_locked_out", False)
    return bool(locked) and getattr(request, "axes_failures_since_start", None) is None


def _record(what: str, request: HttpRequest, by: Actor, name: str, **more: int) -> None:
    timeline.audit(
        what,
        at=timezone.now(),
        by=by,
        subject=f"user {name}" if name else "a name that nobody has",
        detail={"address": address_of(request) or "", **more},
    )


def _added(instance: User | Group, *, created: bool, raw: bool = False, **_: Any) -> None:
    if created and not raw:
        detail = {"superuser": instance.is_superuser} if isinstance(instance, User) else {}
        timeline.audit(
            f"{_kind(instance)} added",
            at=timezone.now(),
            by=ELSEWHERE,
            subject=_called(instance),
            detail=detail,
        )


def _removed(instance: User | Group, **_: Any) -> None:
    """With them go their roles and tokens."""
    roles = [binding.role for binding in instance.role_bindings.all()]
    timeline.audit(
        f"{_kind(instance)} removed",
        at=timezone.now(),
        by=ELSEWHERE,
        subject=_called(instance),
        detail={"roles": roles},
    )


def _kind(instance: User | Group) -> str:
    return "person" if isinstance(instance, User) else "group"


def _called(instance: User | Group) -> str:
    return f"user {instance.get_username()}" if isinstance(instance, User) else f"group {instance.name}"


def watch() -> None:
    """Connect all of this; once, when the application is ready."""
    user_logged_in.connect(_signed_in, dispatch_uid="record")
    user_logged_out.connect(_signed_out, dispatch_uid="record")
    user_login_failed.connect(_failed, dispatch_uid="record")
    for model in (User, Group):
        post_save.connect(_added, sender=model, dispatch_uid="record")
        pre_delete.connect(_removed, sender=model, dispatch_uid="record")
