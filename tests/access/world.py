"""The world of the matrix: people, clusters, decisions in every state, and for each row of the table a request."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from decisions.models import (
    ApiToken,
    Caller,
    CallerToken,
    Cluster,
    Cycle,
    Decision,
    Eviction,
    Freeze,
    Heartbeat,
    PolicyVersion,
    Role,
    RoleBinding,
    Rule,
    TeamReason,
    Verdict,
)
from decisions.services import access
from decisions.services.actors import SYSTEM
from tests.access.table import SCOPES
from tests.builders import make_cluster, make_decision, make_user
from tests.domain.fake_cluster import FakeCluster, a_pod

PASSWORD = "correct horse battery"
# What a request may write without having changed anything: where somebody is signed in, when something was last used,
# how often somebody failed to sign in.
STAMPS = (
    '"decisions_session"',
    '"axes_accessattempt"',
    '"decisions_apitoken" SET "last_used_at"',
    '"auth_user" SET "last_login"',
)
POLICY = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nprofiles: []\n"


@dataclass
class World:
    """Everything there is, by place: shop and bank in cluster prod, far in cluster far."""

    now: datetime
    people: dict[str, User] = field(default_factory=dict)
    clusters: dict[str, Cluster] = field(default_factory=dict)
    decisions: dict[tuple[str, str], Decision] = field(default_factory=dict)
    cycles: dict[str, Cycle] = field(default_factory=dict)
    policies: dict[str, PolicyVersion] = field(default_factory=dict)
    freezes: dict[str, Freeze] = field(default_factory=dict)
    callers: dict[str, Caller] = field(default_factory=dict)
    caller_tokens: dict[str, CallerToken] = field(default_factory=dict)
    sessions: dict[str, str] = field(default_factory=dict)
    own_tokens: dict[str, ApiToken] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    binding: RoleBinding | None = None
    reason: TeamReason | None = None
    browser: Client = field(default_factory=Client)
    careful: Client = field(default_factory=lambda: Client(enforce_csrf_checks=True))
    """As the browser, but forms need their token."""

    def send(
        self,
        method: str,
        address: str,
        place: str = "shop",
        *,
        who: str = "anon",
        token: str = "",
        csrf: bool = True,
        keep: bool = False,
    ) -> "Outcome":
        """Send what a row of the table says, with somebody's session or with a token; undone unless it is kept."""
        with nullcontext() if keep else undone():
            sent = self.prepared(address, place, who)
            client = self.browser if csrf else self.careful
            client.cookies = SimpleCookie(self._cookies(who))
            path = reverse(address.partition(":")[0], args=sent.args)
            with writes() as statements:
                answer = client.generic(method, path, **_content(method, path, sent, token))
            return Outcome(answer, statements)

    def prepared(self, address: str, place: str = "shop", who: str = "root") -> "Request":
        """What a row sends, after what it is about was put into the state that it changes."""
        return REQUESTS.get(address, _plain)(self, place, who)

    def _cookies(self, who: str) -> dict[str, str]:
        return {settings.SESSION_COOKIE_NAME: self.sessions[who]} if who in self.sessions else {}


@dataclass(frozen=True)
class Outcome:
    """An answer, and what it wrote."""

    answer: Any
    statements: list[str]

    def __str__(self) -> str:
        """As the table says it: the status, ``login`` for a redirect there, a star where something changed."""
        to_login = self.answer.status_code == 302 and self.answer["Location"].startswith(reverse("login"))
        return f"{'login' if to_login else self.answer.status_code}{'*' if self.statements else ''}"


@dataclass(frozen=True)
class Request:
    """What is sent: arguments of the address, a form or a JSON document, a query."""

    args: tuple[Any, ...] = ()
    body: Mapping[str, Any] = field(default_factory=dict)
    query: str = ""


def _content(method: str, path: str, sent: Request, token: str) -> dict[str, Any]:
    extra: dict[str, Any] = {"headers": {"Authorization": f"Bearer {token}"} if token else {}}
    if method in {"GET", "HEAD", "OPTIONS", "TRACE"}:
        return {**extra, "QUERY_STRING": sent.query}
    if path.startswith("/api/"):
        return {**extra, "data": json.dumps(sent.body), "content_type": "application/json"}
    form = urlencode(sent.body, doseq=True)
    return {**extra, "data": form, "content_type": "application/x-www-form-urlencoded"}


# --- building it ------------------------------------------------------------------------------------------


def build(fake: FakeCluster) -> World:
    """All of it, once."""
    world = World(now=timezone.now())
    prod, far = make_cluster("prod"), make_cluster("far")
    world.clusters = {"shop": prod, "bank": prod, "far": far}
    Heartbeat.objects.create(name="worker@test", seen_at=world.now)
    _people(world, prod)
    for place in ("shop", "bank", "far"):
        _decisions(world, place, fake)
    for place in ("shop", "far"):
        _things_of_a_cluster(world, place)
    world.freezes["all"] = Freeze.objects.create(
        reason="incident", set_at=world.now, set_by="x", lifted_at=world.now
    )
    world.reason = TeamReason.objects.create(text="owner asked to wait")
    _sign_in(world)
    _tokens(world)
    return world


def _people(world: World, prod: Cluster) -> None:
    narrow: dict[str, Any] = {"clusters": [prod], "namespaces": ["shop"]}
    world.people = {
        "none": make_user("none"),
        "viewer": make_user("viewer", Role.VIEWER, **narrow),
        "approver": make_user("approver", Role.APPROVER, **narrow),
        "admin": make_user("admin", Role.ADMIN, **narrow),
        "lead": make_user("lead", Role.APPROVER, clusters=[prod]),
        "chief": make_user("chief", Role.ADMIN, clusters=[prod]),
        "root": make_user("root", Role.ADMIN),
        "gone": make_user("gone", Role.ADMIN),
    }
    world.binding = make_user("nina", Role.VIEWER).role_bindings.get()


def _decisions(world: World, place: str, fake: FakeCluster) -> None:
    now, soon = world.now, world.now + timedelta(hours=1)
    ada = world.people["root"]
    yes = {"verdict": Verdict.ALLOWED, "rule": Rule.HUMAN, "decided_by": ada, "decided_by_name": "root"}
    states: dict[str, dict[str, Any]] = {
        "waiting": {},
        # Just now, however long the tests before this one take: it can still be undone.
        "queued": {**yes, "eviction": Eviction.QUEUED, "decided_at": now + timedelta(minutes=5)},
        "denied": {
            "verdict": Verdict.DENIED,
            "rule": Rule.HUMAN,
            "decision_reason": "no",
            "expires_at": None,
        },
        "failed": {**yes, "eviction": Eviction.FAILED, "decided_at": now},
        "held": {**yes, "eviction": Eviction.QUEUED, "held": "no Ready replacement", "decided_at": now},
    }
    for state, fields in states.items():
        name = f"{place}-{state}"
        world.decisions[place, state] = make_decision(
            world.clusters[place],
            **{
                "namespace": "bank" if place == "bank" else "shop",
                "pod_name": name,
                "pod_uid": f"uid-{name}",
                "owner_uid": f"owner-{name}",
                "created_at": now,
                "updated_at": now,
                "nominated_at": now,
                "expires_at": soon,
                **fields,
            },
        )
        fake.add(a_pod(name=name, namespace="bank" if place == "bank" else "shop", uid=f"uid-{name}"))


def _things_of_a_cluster(world: World, place: str) -> None:
    cluster, now = world.clusters[place], world.now
    world.policies[place] = PolicyVersion.objects.create(
        cluster=cluster, number=1, text=POLICY, digest="x", valid=True, source="a file", created_at=now
    )
    world.cycles[place] = Cycle.objects.create(
        cluster=cluster,
        kind="scheduled",
        state="completed",
        started_at=now,
        deadline_at=now,
        heartbeat_at=now,
    )
    world.freezes[place] = Freeze.objects.create(
        cluster=cluster, reason="incident", set_at=now, set_by="x", lifted_at=now
    )
    world.callers[place] = access.register_caller(name="nightly", cluster=cluster, by=SYSTEM, now=now)
    world.caller_tokens[place], _ = access.issue_caller_token(caller=world.callers[place], by=SYSTEM, now=now)


def _sign_in(world: World) -> None:
    for who, user in world.people.items():
        browser = Client()
        browser.force_login(user)
        world.sessions[who] = browser.cookies[settings.SESSION_COOKIE_NAME].value


def _tokens(world: World) -> None:
    for who, user in world.people.items():
        world.own_tokens[who], world.secrets[who] = _token(world, user, SCOPES)
    for scope in SCOPES:
        _, world.secrets[scope] = _token(world, world.people["root"], [scope])
    root = world.people["root"]
    revoked, world.secrets["revoked"] = _token(world, root, SCOPES)
    access.revoke_api_token(token_id=revoked.pk, by=SYSTEM, now=world.now)
    expired, world.secrets["expired"] = _token(world, root, SCOPES)
    ApiToken.objects.filter(pk=expired.pk).update(expires_at=world.now)
    world.secrets["of somebody switched off"] = world.secrets.pop("gone")
    User.objects.filter(username="gone").update(is_active=False)
    world.secrets["made up"] = "dui_" + "x" * 43


def _token(world: World, owner: User, scopes: Any) -> tuple[ApiToken, str]:
    until = world.now + timedelta(days=1)
    return access.create_api_token(
        owner=owner, name="ci", scopes=scopes, expires_at=until, by=SYSTEM, now=world.now
    )


# --- what a row sends -------------------------------------------------------------------------------------

Build = Callable[[World, str, str], Request]


def _plain(_world: World, _place: str, _who: str) -> Request:
    return Request()


def _of_decision(state: str, **body: Any) -> Build:
    """A request about the decision in this state of the place."""

    def build_it(world: World, place: str, _who: str) -> Request:
        decision = world.decisions[place, state]
        return Request((decision.pk,), {"version": decision.version, "confirmed": "1", **body})

    return build_it


def _rows_of(state: str, **body: Any) -> Build:
    def build_it(world: World, place: str, _who: str) -> Request:
        decision = world.decisions[place, state]
        row = f"{decision.pk}:{decision.version}"
        return Request((), {"row": row, **body}, f"row={row}")

    return build_it


def _with_cluster(**body: Any) -> Build:
    return lambda world, place, _who: Request((), {"cluster": world.clusters[place].name, **body})


def _thing(name: str) -> Build:
    return lambda world, place, _who: Request((getattr(world, name)[place].pk,))


def _setting(what: str, **body: Any) -> Build:
    """A change on the settings page; a callable value is asked for what stands there."""

    def build_it(world: World, place: str, who: str) -> Request:
        filled = {
            name: value(world, place, who) if callable(value) else value for name, value in body.items()
        }
        return Request((), {"what": what, **filled})

    return build_it


def _cluster_name(world: World, place: str, _who: str) -> str:
    return world.clusters[place].name


def _pk_of(name: str) -> Callable[[World, str, str], int]:
    return lambda world, place, _who: getattr(world, name)[place].pk


def _state(**fields: Any) -> Callable[[World, str, str], str]:
    """The cluster's name, after it was put into the state that the change leaves."""

    def name_of(world: World, place: str, who: str) -> str:
        Cluster.objects.filter(pk=world.clusters[place].pk).update(**fields)
        return _cluster_name(world, place, who)

    return name_of


def _frozen(world: World, place: str, _who: str) -> int:
    Freeze.objects.filter(pk=world.freezes[place].pk).update(lifted_at=None)
    return world.freezes[place].pk


def _all_frozen(world: World, _place: str, _who: str) -> int:
    return _frozen(world, "all", _who)


def _own_token(world: World, _place: str, who: str) -> int:
    return world.own_tokens.get(who, world.own_tokens["root"]).pk


def _lifting(world: World, place: str, who: str) -> Request:
    return Request((_frozen(world, place, who),))


REQUESTS: dict[str, Build] = {
    "login": lambda *_: Request((), {"username": "root", "password": PASSWORD}),
    "password": lambda *_: Request(
        (), {"present": PASSWORD, "new": "a better horse battery", "again": "a better horse battery"}
    ),
    "live": lambda *_: Request(("shell",)),
    "export": lambda *_: Request(("csv",)),
    "cycle": _thing("cycles"),
    **dict.fromkeys(("decision", "row", "why", "approve"), _of_decision("waiting")),
    "deny": _of_decision("waiting", reason="not now"),
    "undo": _of_decision("queued"),
    "take-back": _of_decision("queued", reason="not now"),
    "override": _of_decision("denied", reason="I know better"),
    "retry": _of_decision("failed"),
    "go-on": _of_decision("held"),
    "bulk": _rows_of("waiting", answer="deny"),
    "bulk-summary": _rows_of("waiting"),
    "bulk-apply": _rows_of("waiting", answer="deny", reason="not now"),
    "start-cycle": _with_cluster(),
    "check-policy": _with_cluster(text=POLICY),
    "store-policy": _with_cluster(text=POLICY + "# new\n"),
    "settings:arm": _setting("arm", cluster=_state(armed=False)),
    "settings:disarm": _setting("disarm", cluster=_cluster_name),
    "settings:pause": _setting("pause", cluster=_cluster_name),
    "settings:resume": _setting("resume", cluster=_state(paused=True)),
    "settings:confirm-installation": _setting("confirm-installation", cluster=_state(stopped="foreign")),
    "settings:connection": _setting(
        "connection", cluster=_cluster_name, context="other", interval_seconds="600"
    ),
    "settings:settings": _setting("settings", cluster=_cluster_name, max_waiting="7"),
    "settings:add-cluster": _setting("add-cluster", name="new", interval_seconds="300"),
    "settings:freeze": _setting("freeze", cluster=_cluster_name, reason="incident"),
    "settings:freeze-all": _setting("freeze", reason="incident"),
    "settings:lift": _setting("lift", pk=_frozen),
    "settings:lift-all": _setting("lift", pk=_all_frozen),
    "settings:add-caller": _setting("add-caller", cluster=_cluster_name, name="weekly"),
    "settings:rotate": _setting("rotate", pk=_pk_of("callers")),
    "settings:revoke-caller": _setting("revoke-caller", pk=_pk_of("callers")),
    "settings:revoke-caller-token": _setting("revoke-caller-token", pk=_pk_of("caller_tokens")),
    "settings:bind": _setting(
        "bind", whom=lambda world, *_: f"user:{world.people['none'].pk}", role="viewer"
    ),
    "settings:unbind": _setting("unbind", pk=lambda world, *_: world.binding.pk),
    "settings:add-token": _setting("add-token", name="ci"),
    "settings:revoke-token": _setting("revoke-token", pk=_own_token),
    "settings:revoke-anothers-token": _setting(
        "revoke-token", pk=lambda world, *_: world.own_tokens["gone"].pk
    ),
    "settings:add-reason": _setting("add-reason", text="wait for the release"),
    "settings:remove-reason": _setting("remove-reason", pk=lambda world, *_: world.reason.pk),
    "settings:prefer": _setting("prefer", time_zone="Europe/Berlin"),
    "settings:nonsense": _setting("nonsense"),
    "api-not-here": lambda *_: Request(("nowhere",)),
    "api-decision-detail": _of_decision("waiting"),
    "api-decision-approve": _of_decision("waiting"),
    "api-decision-deny": _of_decision("waiting", reason="not now"),
    "api-decision-take-back": _of_decision("queued", reason="not now"),
    "api-decision-override": _of_decision("denied", reason="I know better"),
    "api-cycle-detail": _thing("cycles"),
    "api-cycle-list": _with_cluster(),
    "api-policy-detail": _thing("policies"),
    "api-policy-validate": lambda *_: Request((), {"text": POLICY}),
    "api-freeze-detail": _thing("freezes"),
    "api-freeze-list": _with_cluster(reason="incident"),
    "api-freeze-lift": _lifting,
    "api-cluster-confirm-installation": lambda world, place, who: Request(
        (_state(stopped="foreign")(world, place, who),)
    ),
    "api-cluster-detail": lambda world, place, _who: Request((world.clusters[place].name,)),
}


# --- what it did ------------------------------------------------------------------------------------------


@contextmanager
def writes() -> Iterator[list[str]]:
    """The statements that changed rows, but for :data:`STAMPS`."""
    seen: list[str] = []

    def watch(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        result = execute(sql, params, many, context)
        verb = sql.lstrip().split(" ", 1)[0].upper()
        touched = verb == "INSERT" or (verb in {"UPDATE", "DELETE"} and context["cursor"].rowcount != 0)
        if touched and not any(stamp in sql for stamp in STAMPS):
            seen.append(sql)
        return result

    with connection.execute_wrapper(watch):
        yield seen


@contextmanager
def undone() -> Iterator[None]:
    """Whatever happens inside has not happened."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)
