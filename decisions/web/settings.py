"""Settings: clusters, freezes, callers, roles, tokens, reasons, and what one person prefers.

Every change is a POST with a ``what``; each handler is one call of a service. Who may not change a section sees
its state and who may.
"""

import zoneinfo
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

from django.contrib import messages
from django.contrib.auth.models import Group, User
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from decisions.models import (
    ApiToken,
    AuditEntry,
    Caller,
    CallerToken,
    Chain,
    Cluster,
    Freeze,
    Permission,
    Preference,
    Role,
    RoleBinding,
    TeamReason,
)
from decisions.queries import sentences
from decisions.queries.people import who_may
from decisions.services import access as access_service
from decisions.services import clusters as cluster_service
from decisions.services import freezes, installation
from decisions.services.clock import db_now
from decisions.services.errors import Invalid, Refused
from decisions.web.forms import a_day, a_number, read_settings, setting_fields, words
from decisions.web.middleware import preference_of
from decisions.web.pages import access_of, actor_of, page, person_of

MOST_AUDITED: Final = 30


@page("GET", "POST")
def settings(request: HttpRequest) -> HttpResponse:
    """The page; or one change of it."""
    if request.method == "POST":
        return change(request)
    return render(request, "settings.html", settings_context(request))


def settings_context(
    request: HttpRequest, typed: Mapping[str, str] | None = None, wrong: Invalid | None = None
) -> dict[str, Any]:
    """Everything that this person may see of the settings."""
    access = access_of(request)
    clusters = list(access.clusters())
    configurable = {cluster.pk for cluster in access.clusters(Permission.CONFIGURE, whole=True)}
    refused = typed.get("cluster") if typed else None
    everything = _everything(request, Permission.CONFIGURE)
    return {
        "clusters": [
            {
                "cluster": cluster,
                "may": cluster.pk in configurable,
                "may_freeze": access.may(Permission.DECIDE, cluster.pk),
                "admins": () if cluster.pk in configurable else who_may(Permission.CONFIGURE, cluster.pk),
                "fields": setting_fields(cluster, typed if refused == cluster.name else None, wrong),
                "changed": len(cluster.overrides),
                "callers": cluster.callers.prefetch_related("tokens").select_related("owner"),
            }
            for cluster in clusters
        ],
        "freezes": _freezes(request).select_related("cluster"),
        "may_freeze_all": _everything(request, Permission.DECIDE),
        "may_configure_all": everything,
        "configurable": configurable,
        "bindings": RoleBinding.objects.select_related("user", "group").prefetch_related("clusters")
        if everything
        else (),
        "roles": Role.choices,
        "users": User.objects.filter(is_active=True).order_by("username")[:500] if everything else (),
        "groups": Group.objects.order_by("name")[:500] if everything else (),
        "tokens": _tokens(request).filter(revoked_at=None).select_related("owner"),
        "scopes": tuple(access_service.SCOPES),
        "reasons": TeamReason.objects.all(),
        "may_reasons": access.may_somewhere(Permission.CONFIGURE),
        "zones": sorted(zoneinfo.available_timezones()),
        "audit": _changes()[:MOST_AUDITED] if everything else (),
        "chains": _chains() if everything else (),
        "secret": getattr(request, "shown_once", None),
        "wrong": wrong,
        "typed": typed or {},
        "in_half_a_year": (db_now() + timedelta(days=180)).date().isoformat(),
        "page": "settings",
    }


def _freezes(request: HttpRequest, *, lifted_too: bool = False) -> "QuerySet[Freeze]":
    """Freezes of everything, and of clusters that this person sees."""
    mine = Freeze.objects.filter(Q(cluster=None) | Q(cluster__in=access_of(request).clusters()))
    return mine if lifted_too else mine.filter(lifted_at=None)


def _tokens(request: HttpRequest) -> "QuerySet[ApiToken]":
    """This person's own; an admin of everything can revoke anybody's, when somebody has to, at night."""
    everybodys = _everything(request, Permission.CONFIGURE)
    return ApiToken.objects.all() if everybodys else ApiToken.objects.filter(owner=person_of(request))


def _show_once(request: HttpRequest, **secret: str) -> None:
    """What this very answer shows and nothing keeps."""
    request.shown_once = secret  # type: ignore[attr-defined]


def _changes() -> "QuerySet[AuditEntry]":
    """What was changed last; that people come and go is on record too, and would fill the list."""
    return AuditEntry.objects.select_related("cluster").exclude(what__in=("signed in", "signed out"))


def _chains() -> list[tuple[str, Chain]]:
    """The chains of the record, each with the name that a person knows."""
    names = {Chain.name_for(pk): name for pk, name in Cluster.objects.values_list("pk", "name")}
    return [(names.get(chain.name, chain.name), chain) for chain in Chain.objects.all()]


def _everything(request: HttpRequest, permission: str) -> bool:
    """Whether this person has a permission in all clusters and namespaces."""
    return any(
        permission in grant.permissions and grant.clusters is None and not grant.namespaces
        for grant in access_of(request).grants
    )


# --- changes -----------------------------------------------------------------------------------------------


def change(request: HttpRequest) -> HttpResponse:
    """One change; a refused one draws the page with what was typed and what is wrong with it."""
    handler = CHANGES.get(request.POST.get("what", ""))
    if handler is None:
        raise Http404("There is no such setting.")
    try:
        place, done = handler(request)
    except Invalid as refusal:
        typed = request.POST.dict()
        return render(request, "settings.html", settings_context(request, typed, refusal), status=422)
    except Refused as refusal:
        messages.warning(request, str(refusal))
        return redirect("settings")
    messages.success(request, done)
    if hasattr(request, "shown_once"):
        # Drawn now, not after a redirect: a secret that waited for the next request would be kept somewhere.
        return render(request, "settings.html", settings_context(request))
    return redirect(f"{reverse('settings')}#{place}")


Handler = Callable[[HttpRequest], tuple[str, str]]


def _cluster(request: HttpRequest, permission: str = Permission.CONFIGURE) -> Cluster:
    """The cluster of the form, if this person has the permission for all of it."""
    access = access_of(request)
    cluster = access.clusters().filter(name=request.POST.get("cluster", "")).first()
    if cluster is None:
        raise Http404("There is no such cluster, or none that you may see.")
    if not access.may(permission, cluster.pk):
        names = sentences.listed(who_may(permission, cluster.pk), last="or") or "Nobody"
        raise PermissionDenied(f"You may not {permission} cluster {cluster.name}. {names} may.")
    return cluster


def _must(*, allowed: bool, sentence: str) -> None:
    if not allowed:
        raise PermissionDenied(sentence)


def _state_of(verb: str) -> Handler:
    def handle(request: HttpRequest) -> tuple[str, str]:
        cluster = _cluster(request)
        _verbs[verb][0](cluster=cluster, by=actor_of(request), now=db_now())
        return f"cluster-{cluster.name}", _verbs[verb][1].format(cluster.name)

    return handle


_verbs: Final[Mapping[str, tuple[Callable[..., Cluster], str]]] = {
    "arm": (cluster_service.arm, "{} is armed: what is allowed is carried out."),
    "disarm": (cluster_service.disarm, "{} only observes now; what was open and not yet tried is withdrawn."),
    "pause": (cluster_service.pause, "{} is paused: no cycle starts by time."),
    "resume": (cluster_service.resume, "{} goes on: cycles start by time."),
}


def _confirm(request: HttpRequest) -> tuple[str, str]:
    cluster = _cluster(request)
    row = installation.confirm(cluster=cluster, by=actor_of(request), now=db_now())
    if not row.stopped:
        return f"cluster-{row.name}", f"{row.name} is not frozen any more: nothing had to be confirmed."
    return (
        f"cluster-{row.name}",
        f"Confirmed. A worker takes the Lease of {row.name} over in a moment; then cycles nominate afresh.",
    )


def _connection_fields(request: HttpRequest) -> dict[str, Any]:
    post = request.POST
    return {
        "in_cluster": post.get("in_cluster") == "on",
        **{name: post.get(name, "") for name in ("kubeconfig", "context", "policy_file", "policy_configmap")},
        "interval_seconds": a_number(post, "interval_seconds", 300),
    }


def _connection(request: HttpRequest) -> tuple[str, str]:
    cluster = _cluster(request)
    cluster_service.change(cluster=cluster, by=actor_of(request), now=db_now(), **_connection_fields(request))
    return f"cluster-{cluster.name}", f"{cluster.name} is changed."


def _add_cluster(request: HttpRequest) -> tuple[str, str]:
    allowed = _everything(request, Permission.CONFIGURE)
    _must(allowed=allowed, sentence="Only an admin of all clusters may add one.")
    name = request.POST.get("name", "").strip()
    cluster_service.create(name=name, by=actor_of(request), now=db_now(), **_connection_fields(request))
    return f"cluster-{name}", f"{name} is added. It only observes until you arm it."


def _settings(request: HttpRequest) -> tuple[str, str]:
    cluster = _cluster(request)
    changes = read_settings(request.POST.dict())
    cluster_service.change_settings(cluster=cluster, changes=changes, by=actor_of(request), now=db_now())
    return f"cluster-{cluster.name}", f"The settings of {cluster.name} are changed."


def _freeze(request: HttpRequest) -> tuple[str, str]:
    if request.POST.get("cluster"):
        cluster: Cluster | None = _cluster(request, Permission.DECIDE)
    else:
        cluster = None
        allowed = _everything(request, Permission.DECIDE)
        _must(allowed=allowed, sentence="Freezing all clusters takes a role in all of them.")
    row = freezes.freeze(
        cluster=cluster, by=actor_of(request), reason=request.POST.get("reason", ""), now=db_now()
    )
    calls, told = sentences.plural(row.calls_in_flight, "call"), sentences.plural(row.callers_told, "caller")
    return "freeze", f"Frozen. {calls} already in flight, {told} had heard a yes."


def _lift(request: HttpRequest) -> tuple[str, str]:
    if not _freezes(request, lifted_too=True).filter(pk=_pk(request)).exists():
        raise Http404("There is no such freeze, or none that you may see.")
    row = Freeze.objects.filter(pk=_pk(request), lifted_at=None).first()
    if row is None:
        return "freeze", "It had been lifted already."
    access = access_of(request)
    may = (
        access.may(Permission.CONFIGURE, row.cluster_id)
        if row.cluster_id
        else _everything(request, Permission.CONFIGURE)
    )
    _must(allowed=may, sentence="Lifting a freeze takes an admin.")
    freezes.lift(freeze_id=row.pk, by=actor_of(request), now=db_now())
    return "freeze", "Lifted: evictions go on."


def _add_caller(request: HttpRequest) -> tuple[str, str]:
    cluster, post, now = _cluster(request), request.POST, db_now()
    caller = access_service.register_caller(
        name=post.get("name", ""),
        cluster=cluster,
        owner=person_of(request),
        verb=post.get("verb", "") or "evict",
        interval_seconds=a_number(post, "interval_seconds", 300),
        timeout_seconds=float(a_number(post, "timeout_seconds", 5)),
        kubernetes_username=post.get("kubernetes_username", ""),
        path_token_allowed=post.get("path_token_allowed") == "on",
        networks=words(post.get("networks", "")),
        by=actor_of(request),
        now=now,
    )
    _, secret = access_service.issue_caller_token(caller=caller, by=actor_of(request), now=now)
    _show_once(request, of=f"caller {caller.name}", token=secret, verb=caller.verb)
    return "callers", f"{caller.name} is registered. Its token is shown once, above."


def _caller(request: HttpRequest) -> Caller:
    caller = Caller.objects.select_related("cluster").filter(pk=_pk(request)).first()
    if caller is None or not access_of(request).may(Permission.CONFIGURE, caller.cluster_id):
        raise Http404("There is no such caller, or none that you may configure.")
    return caller


def _rotate(request: HttpRequest) -> tuple[str, str]:
    caller = _caller(request)
    _, secret = access_service.rotate_caller_token(caller=caller, by=actor_of(request), now=db_now())
    _show_once(request, of=f"caller {caller.name}", token=secret, verb=caller.verb)
    return (
        "callers",
        f"{caller.name} has a new token, shown once, above. The one before it holds for another day.",
    )


def _revoke_caller(request: HttpRequest) -> tuple[str, str]:
    caller = _caller(request)
    access_service.revoke_caller(caller_id=caller.pk, by=actor_of(request), now=db_now())
    return "callers", f"{caller.name} is revoked: it hears no to everything from now on."


def _revoke_caller_token(request: HttpRequest) -> tuple[str, str]:
    token = CallerToken.objects.select_related("caller").filter(pk=_pk(request)).first()
    if token is None or not access_of(request).may(Permission.CONFIGURE, token.caller.cluster_id):
        raise Http404("There is no such token, or none that you may configure.")
    access_service.revoke_caller_token(token_id=token.pk, by=actor_of(request), now=db_now())
    return "callers", f"The token {token} is revoked."


def _bind(request: HttpRequest) -> tuple[str, str]:
    allowed = _everything(request, Permission.CONFIGURE)
    _must(allowed=allowed, sentence="Only an admin of all clusters may give roles.")
    post = request.POST
    kind, _, pk = post.get("whom", "").partition(":")
    number = int(pk) if pk.isascii() and pk.isdigit() and len(pk) < 16 else 0
    user = User.objects.filter(pk=number).first() if kind == "user" else None
    group = Group.objects.filter(pk=number).first() if kind == "group" else None
    access_service.bind_role(
        role=post.get("role", ""),
        user=user,
        group=group,
        clusters=_clusters_named(post.getlist("clusters")),
        namespaces=words(post.get("namespaces", "")),
        by=actor_of(request),
        now=db_now(),
    )
    return "roles", "The role is given."


def _clusters_named(names: list[str]) -> list[Cluster]:
    """All of them: a name that is left out could leave none, and none means every cluster."""
    found = list(Cluster.objects.filter(name__in=names))
    if missing := sorted(set(names) - {cluster.name for cluster in found}):
        raise Invalid(f"There is no cluster {missing[0][:60]}.", "clusters")
    return found


def _unbind(request: HttpRequest) -> tuple[str, str]:
    allowed = _everything(request, Permission.CONFIGURE)
    _must(allowed=allowed, sentence="Only an admin of all clusters may take roles away.")
    access_service.unbind_role(binding_id=_pk(request), by=actor_of(request), now=db_now())
    return "roles", "The role is taken away."


def _add_token(request: HttpRequest) -> tuple[str, str]:
    post, now, person = request.POST, db_now(), person_of(request)
    expires = a_day(post.get("expires", "")) or now + timedelta(days=90)
    token, secret = access_service.create_api_token(
        owner=person,
        name=post.get("name", ""),
        scopes=post.getlist("scopes"),
        expires_at=expires,
        by=actor_of(request),
        now=now,
    )
    _show_once(request, of=f"API token {token.name}", token=secret)
    return "tokens", f"Token {token.name} is made. It is shown once, above."


def _revoke_token(request: HttpRequest) -> tuple[str, str]:
    token = _tokens(request).filter(pk=_pk(request)).first()
    if token is None:
        raise Http404("There is no such token, or none that you may revoke.")
    access_service.revoke_api_token(token_id=token.pk, by=actor_of(request), now=db_now())
    return "tokens", f"Token {token.name} is revoked."


def _add_reason(request: HttpRequest) -> tuple[str, str]:
    allowed = access_of(request).may_somewhere(Permission.CONFIGURE)
    _must(allowed=allowed, sentence="Only an admin may set up reasons for the team.")
    text = request.POST.get("text", "").strip()
    if not text or len(text) > 200:
        raise Invalid("A reason has 1 to 200 characters.", "text")
    cluster_service.add_team_reason(text=text, by=actor_of(request), now=db_now())
    return "reasons", "The reason is one key away now."


def _remove_reason(request: HttpRequest) -> tuple[str, str]:
    allowed = access_of(request).may_somewhere(Permission.CONFIGURE)
    _must(allowed=allowed, sentence="Only an admin may take reasons away.")
    cluster_service.remove_team_reason(reason_id=_pk(request), by=actor_of(request), now=db_now())
    return "reasons", "The reason is taken away."


def _prefer(request: HttpRequest) -> tuple[str, str]:
    zone = request.POST.get("time_zone", "")
    if zone and zone not in zoneinfo.available_timezones():
        raise Invalid(f"There is no time zone {zone[:60]}.", "time_zone")
    keys = request.POST.get("keys") == "on"
    Preference.objects.update_or_create(user=person_of(request), defaults={"time_zone": zone, "keys": keys})
    preference_of(request)
    return "me", "Your preferences are kept."


def _pk(request: HttpRequest) -> int:
    text = request.POST.get("pk", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0


CHANGES: Final[Mapping[str, Handler]] = {
    **{verb: _state_of(verb) for verb in _verbs},
    "confirm-installation": _confirm,
    "connection": _connection,
    "add-cluster": _add_cluster,
    "settings": _settings,
    "freeze": _freeze,
    "lift": _lift,
    "add-caller": _add_caller,
    "rotate": _rotate,
    "revoke-caller": _revoke_caller,
    "revoke-caller-token": _revoke_caller_token,
    "bind": _bind,
    "unbind": _unbind,
    "add-token": _add_token,
    "revoke-token": _revoke_token,
    "add-reason": _add_reason,
    "remove-reason": _remove_reason,
    "prefer": _prefer,
}
