"""When a person's password or rights change, their sessions end: all of them, whoever changed what, from where.

One mechanism for pages, commands and whatever else saves a user, a role or a group's membership: signals of the
models themselves, which swallow no error. What bypasses them is ``QuerySet.update`` and ``bulk_create``, which
nothing here uses for these models. Ending sessions is the second lock: rights are read anew with every request, and
so are a changed password and a person switched off (Django's session hash, ``ModelBackend.get_user``).

What no service of ours does, and so records nowhere else, is put on record here: passwords, people switched on and
off, memberships of groups.
"""

from collections.abc import Collection
from typing import Any, Final

from django.contrib.auth.models import Group, User
from django.db.models.signals import m2m_changed, post_save, pre_delete, pre_save
from django.utils import timezone

from decisions.models import RoleBinding
from decisions.services import sessions, timeline
from decisions.services.actors import Actor

# Who changes a user by no page of ours: manage.py changepassword, a shell, a directory's synchronisation.
ELSEWHERE: Final = Actor(name="command line")
_GRANTS: Final = ("password", "is_active", "is_staff", "is_superuser", "username")


def change_password(*, user: User, password: str, by: Actor) -> None:
    """A new password, checked by the caller; it ends all sessions of this person."""
    user.set_password(password)
    user._changed_by = by  # type: ignore[attr-defined]  # for the receiver below, in this same call
    with timeline.transaction():
        user.save(update_fields=["password"])


def _user_is_saved(
    instance: User, *, raw: bool = False, update_fields: Collection[str] | None = None, **_: Any
) -> None:
    watched = _GRANTS if update_fields is None else set(_GRANTS) & set(update_fields)
    if raw or not instance.pk or not watched:
        return
    before = User.objects.filter(pk=instance.pk).values(*_GRANTS).first()
    changed = {name for name in watched if before and before[name] != getattr(instance, name)}
    if not changed:
        return
    sessions.end_all([instance.pk])
    # A hash that is only brought up to date at a sign-in is no new password.
    if "password" in changed and instance._password is not None:  # type: ignore[attr-defined]  # Django's own mark
        _record("password changed", instance)
    if "is_active" in changed:
        _record("person switched on" if instance.is_active else "person switched off", instance)


def _record(what: str, user: User, **detail: str) -> None:
    by: Actor = user.__dict__.pop("_changed_by", ELSEWHERE)
    with timeline.transaction():
        timeline.audit(what, at=timezone.now(), by=by, subject=f"user {user.get_username()}", detail=detail)


def _role_will_change(instance: RoleBinding, *, raw: bool = False, **_: Any) -> None:
    before = None if raw else RoleBinding.objects.filter(pk=instance.pk).first()
    if before is not None:
        sessions.end_all(_whose(before))


def _role_is_changed(instance: RoleBinding, *, raw: bool = False, **_: Any) -> None:
    if not raw:
        sessions.end_all(_whose(instance))


def _clusters_of_a_role_change(instance: Any, *, action: str, reverse: bool, **_: Any) -> None:
    if action.startswith("pre_") and action != "pre_clear":
        return
    bindings = instance.rolebinding_set.all() if reverse else [instance]
    for binding in bindings:
        sessions.end_all(_whose(binding))


def _membership_changes(instance: User | Group, *, action: str, pk_set: set[int] | None, **_: Any) -> None:
    if action not in {"post_add", "post_remove", "pre_clear"}:
        return
    joined = action == "post_add"
    users, groups = _members(instance, pk_set)
    sessions.end_all([user.pk for user in users])
    for user in users:
        for group in groups:
            _record("group joined" if joined else "group left", user, group=group.name)


def _members(instance: User | Group, pk_set: set[int] | None) -> tuple[list[User], list[Group]]:
    if isinstance(instance, User):
        groups = instance.groups.all() if pk_set is None else Group.objects.filter(pk__in=pk_set)
        return [instance], list(groups)
    users = instance.user_set.all() if pk_set is None else User.objects.filter(pk__in=pk_set)
    return list(users), [instance]


def _whose(binding: RoleBinding) -> list[int]:
    if binding.group_id is None:
        return [binding.user_id] if binding.user_id else []
    return list(User.objects.filter(groups=binding.group_id).values_list("pk", flat=True))


def watch() -> None:
    """Connect all of this; once, when the application is ready."""
    pre_save.connect(_user_is_saved, sender=User, dispatch_uid="rights")
    for signal in (pre_save, pre_delete):
        signal.connect(_role_will_change, sender=RoleBinding, dispatch_uid="rights")
    post_save.connect(_role_is_changed, sender=RoleBinding, dispatch_uid="rights")
    m2m_changed.connect(
        _clusters_of_a_role_change, sender=RoleBinding.clusters.through, dispatch_uid="rights"
    )
    m2m_changed.connect(_membership_changes, sender=User.groups.through, dispatch_uid="rights")
