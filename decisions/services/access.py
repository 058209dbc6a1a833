"""Who may, as writes: role bindings, API tokens, callers of doors and their tokens. Each change is audited.

A secret is 256 random bits, shown once when it is made; only its SHA-256 is kept, so nobody can read it back.
"""

import hashlib
import ipaddress
import re
import secrets
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import Group, User
from django.db import IntegrityError
from django.db.models import Q

from decisions.models import ApiToken, Caller, CallerToken, Cluster, Permission, Role, RoleBinding
from decisions.services import timeline
from decisions.services.actors import Actor
from decisions.services.errors import Invalid

SCOPES: dict[str, frozenset[str]] = {
    "read": frozenset({Permission.VIEW}),
    "decide": frozenset({Permission.VIEW, Permission.DECIDE}),
    "override": frozenset({Permission.VIEW, Permission.OVERRIDE}),
    "configure": frozenset({Permission.VIEW, Permission.CONFIGURE}),
}
LONGEST_API_TOKEN = timedelta(days=366)
TOKEN_OVERLAP = timedelta(days=1)
USE_NOTED_EVERY = timedelta(minutes=1)
_PREFIX = "dui_"
_NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_SECRET = re.compile(rf"{_PREFIX}[A-Za-z0-9_-]{{43}}")
_VERB = re.compile(r"[A-Za-z0-9._-]{1,63}")


def digest_of(secret: str) -> str:
    """What is kept of a token."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _new_secret() -> str:
    return _PREFIX + secrets.token_urlsafe(32)


# --- roles ------------------------------------------------------------------------------------------------


def bind_role(
    *,
    role: str,
    user: User | None = None,
    group: Group | None = None,
    clusters: Iterable[Cluster] = (),
    namespaces: Iterable[str] = (),
    by: Actor,
    now: datetime,
) -> RoleBinding:
    """Give a user or a group a role in some clusters (none: all) and namespaces (none: all).

    Raises:
        Invalid: no such role, not exactly one of user and group, or a namespace that cannot be one.
    """
    spaces = sorted({namespace.strip() for namespace in namespaces if namespace.strip()})
    if role not in Role.values:
        raise Invalid(f"A role is one of {', '.join(Role.values)}.", "role")
    if (user is None) == (group is None):
        raise Invalid("A role goes to a user or to a group.", "user")
    if wrong := next((space for space in spaces if not _NAMESPACE.fullmatch(space)), None):
        raise Invalid(f"{wrong[:70]} cannot be a namespace's name.", "namespaces")
    with timeline.transaction():
        binding = RoleBinding.objects.create(user=user, group=group, role=role, namespaces=spaces)
        binding.clusters.set(clusters)
        timeline.audit("role given", at=now, by=by, subject=_whose(binding), detail=_binding_detail(binding))
    return binding


def unbind_role(*, binding_id: int, by: Actor, now: datetime) -> bool:
    """Take a role away; False if somebody else already did.

    Raises:
        Invalid: it is the last admin of everything: nobody could give a role again.
    """
    with timeline.transaction():
        # Locked together, so that two who each remove one of the last two do not both succeed.
        admins = set(_admins_of_everything().select_for_update(of=("self",)).values_list("pk", flat=True))
        binding = RoleBinding.objects.filter(pk=binding_id).first()
        if binding is None:
            return False
        if admins == {binding_id}:
            raise Invalid(
                "This is the last admin of all clusters: give somebody else that role first.", "role"
            )
        subject, detail = _whose(binding), _binding_detail(binding)
        binding.delete()
        timeline.audit("role taken away", at=now, by=by, subject=subject, detail=detail)
    return True


def _admins_of_everything() -> Any:
    return RoleBinding.objects.filter(role=Role.ADMIN, clusters=None, namespaces=[])


def _whose(binding: RoleBinding) -> str:
    return f"user {binding.user}" if binding.user else f"group {binding.group}"


def _binding_detail(binding: RoleBinding) -> dict[str, Any]:
    clusters = [cluster.name for cluster in binding.clusters.all()]
    return {"role": binding.role, "clusters": clusters, "namespaces": binding.namespaces}


# --- API tokens -------------------------------------------------------------------------------------------


def permissions_of(scopes: Iterable[str]) -> frozenset[str]:
    """The permissions that a token's scopes leave of its owner's."""
    return frozenset().union(*(SCOPES.get(scope, frozenset()) for scope in scopes))


def create_api_token(
    *, owner: User, name: str, scopes: Collection[str] = (), expires_at: datetime, by: Actor, now: datetime
) -> tuple[ApiToken, str]:
    """A token with which a program acts for its owner, and its secret, which is shown this once.

    Args:
        scopes: of read, decide, override, configure; none: read.

    Raises:
        Invalid: no name, an unknown scope, or an expiry that is over or more than a year away.
    """
    if not name.strip():
        raise Invalid("Name the token after what uses it.", "name")
    if unknown := sorted(set(scopes) - SCOPES.keys()):
        raise Invalid(f"There is no scope {unknown[0][:60]}; there are {', '.join(SCOPES)}.", "scopes")
    if not now < expires_at <= now + LONGEST_API_TOKEN:
        raise Invalid("A token expires within a year.", "expires_at")
    secret = _new_secret()
    with timeline.transaction():
        token = ApiToken.objects.create(
            owner=owner,
            name=name.strip()[:100],
            digest=digest_of(secret),
            scopes=sorted({"read", *scopes}),
            created_at=now,
            expires_at=expires_at,
        )
        detail = {"owner": owner.get_username(), "scopes": token.scopes, "expires": expires_at.isoformat()}
        timeline.audit("API token made", at=now, by=by, subject=token.name, detail=detail)
    return token, secret


def revoke_api_token(*, token_id: int, by: Actor, now: datetime) -> bool:
    """End a token at once; False if it had been revoked."""
    with timeline.transaction():
        won = ApiToken.objects.filter(pk=token_id, revoked_at=None).update(revoked_at=now)
        if won:
            token = ApiToken.objects.select_related("owner").get(pk=token_id)
            detail = {"owner": token.owner.get_username()}
            timeline.audit("API token revoked", at=now, by=by, subject=token.name, detail=detail)
    return bool(won)


def find_api_token(secret: str, *, now: datetime) -> ApiToken | None:
    """The valid token of an active owner with this secret; its use is noted once a minute.

    What does not look like one of ours costs no query, whoever sends how much of it.
    """
    if not _SECRET.fullmatch(secret):
        return None
    token = (
        ApiToken.objects.select_related("owner")
        .filter(digest=digest_of(secret), revoked_at=None, expires_at__gt=now, owner__is_active=True)
        .first()
    )
    if token is not None and (token.last_used_at is None or token.last_used_at <= now - USE_NOTED_EVERY):
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
    return token


# --- callers of doors -------------------------------------------------------------------------------------


def register_caller(
    *,
    name: str,
    cluster: Cluster,
    owner: User | None = None,
    door: str = Caller.Door.EXTENDER,
    verb: str = "evict",
    interval_seconds: int = 300,
    timeout_seconds: float = 5.0,
    kubernetes_username: str = "",
    path_token_allowed: bool = False,
    networks: Iterable[str] = (),
    by: Actor,
    now: datetime,
) -> Caller:
    """Register somebody who will ask us at a door. It can ask once it has a token.

    Raises:
        Invalid: a value cannot be used, or the cluster has a caller of this name.
    """
    caller = Caller(
        name=name.strip()[:100],
        cluster=cluster,
        owner=owner,
        door=door,
        verb=verb.strip(),
        interval_seconds=interval_seconds,
        timeout_seconds=timeout_seconds,
        kubernetes_username=kubernetes_username.strip()[:253],
        path_token_allowed=path_token_allowed,
        networks=_networks(networks),
    )
    _check_caller(caller)
    try:
        with timeline.transaction():
            caller.save(force_insert=True)
            detail = {"verb": caller.verb, "interval": interval_seconds, "networks": caller.networks}
            timeline.audit(
                "caller registered", at=now, by=by, cluster=cluster, subject=caller.name, detail=detail
            )
    except IntegrityError as error:
        raise Invalid(f"{cluster} has a caller {caller.name} already.", "name") from error
    return caller


def _check_caller(caller: Caller) -> None:
    if not caller.name:
        raise Invalid("Name the caller.", "name")
    if caller.door not in Caller.Door.values:
        raise Invalid(f"There is no door {caller.door[:20]}.", "door")
    if not _VERB.fullmatch(caller.verb):
        raise Invalid("Its decisionVerb is one word of letters, digits, dots and dashes.", "verb")
    if not 1 <= caller.interval_seconds <= 7 * 24 * 3600:
        raise Invalid("Its interval is between a second and a week.", "interval_seconds")
    if not 0.1 <= caller.timeout_seconds <= 300:
        raise Invalid("Its timeout is between 0.1 and 300 seconds.", "timeout_seconds")


def _networks(written: Iterable[str]) -> list[str]:
    networks = []
    for text in written:
        try:
            networks.append(str(ipaddress.ip_network(text.strip(), strict=False)))
        except ValueError as error:
            raise Invalid(f"{text[:60]} is not a network such as 10.0.0.0/8.", "networks") from error
    return networks


def revoke_caller(*, caller_id: int, by: Actor, now: datetime) -> bool:
    """Refuse this caller from now on, with all of its tokens; False if that was so already."""
    with timeline.transaction():
        won = Caller.objects.filter(pk=caller_id, revoked_at=None).update(revoked_at=now)
        if won:
            caller = Caller.objects.select_related("cluster").get(pk=caller_id)
            CallerToken.objects.filter(caller=caller, revoked_at=None).update(revoked_at=now)
            timeline.audit("caller revoked", at=now, by=by, cluster=caller.cluster, subject=caller.name)
    return bool(won)


def issue_caller_token(
    *, caller: Caller, expires_at: datetime | None = None, by: Actor, now: datetime
) -> tuple[CallerToken, str]:
    """A further token for a caller, and its secret, which is shown this once.

    Raises:
        Invalid: the caller was revoked, or the expiry is over.
    """
    if caller.revoked_at is not None:
        raise Invalid("This caller was revoked; register it anew.", "caller")
    if expires_at is not None and expires_at <= now:
        raise Invalid("This expiry is over.", "expires_at")
    secret = _new_secret()
    with timeline.transaction():
        token = CallerToken.objects.create(
            caller=caller, digest=digest_of(secret), hint=secret[-4:], created_at=now, expires_at=expires_at
        )
        detail = {"ends in": token.hint, "expires": expires_at.isoformat() if expires_at else "never"}
        _audit_token("caller token made", token, detail, by, now)
    return token, secret


def rotate_caller_token(
    *,
    caller: Caller,
    overlap: timedelta = TOKEN_OVERLAP,
    expires_at: datetime | None = None,
    by: Actor,
    now: datetime,
) -> tuple[CallerToken, str]:
    """A new token; those before it end after an overlap in which both are valid.

    Raises:
        Invalid: see :func:`issue_caller_token`; or the overlap is negative.
    """
    if overlap < timedelta(0):
        raise Invalid("An overlap cannot be negative.", "overlap")
    with timeline.transaction():
        token, secret = issue_caller_token(caller=caller, expires_at=expires_at, by=by, now=now)
        until = now + overlap
        older = CallerToken.objects.filter(caller=caller, revoked_at=None).exclude(pk=token.pk)
        ending = older.filter(Q(expires_at=None) | Q(expires_at__gt=until)).update(expires_at=until)
        detail = {"ends in": token.hint, "before it": ending, "until": until.isoformat()}
        _audit_token("caller tokens rotated", token, detail, by, now)
    return token, secret


def revoke_caller_token(*, token_id: int, by: Actor, now: datetime) -> bool:
    """End one token at once; False if it had been revoked."""
    with timeline.transaction():
        won = CallerToken.objects.filter(pk=token_id, revoked_at=None).update(revoked_at=now)
        if won:
            token = CallerToken.objects.select_related("caller__cluster").get(pk=token_id)
            _audit_token("caller token revoked", token, {"ends in": token.hint}, by, now)
    return bool(won)


def _audit_token(what: str, token: CallerToken, detail: dict[str, Any], by: Actor, now: datetime) -> None:
    caller = token.caller
    timeline.audit(what, at=now, by=by, cluster=caller.cluster, subject=caller.name, detail=detail)
