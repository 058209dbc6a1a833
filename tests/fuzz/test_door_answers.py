"""Callers, people and a cluster in any order: the door says yes where somebody's yes stands, and nowhere else."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from hypothesis import given
from hypothesis import strategies as st

from decisions.doors import extender
from decisions.models import Caller, Cluster, Decision, Eviction, Executor, Verdict
from decisions.services import access, clusters, freezes, moment, verdicts
from decisions.services.actors import SYSTEM, Actor
from decisions.services.errors import Conflict, Invalid, NotAllowed
from decisions.services.lookups import Looked, Sight
from tests.builders import NOW, make_cluster
from tests.doors.edges import GONE, UID, UNREACHABLE, FakePod, pod_body, register
from tests.fuzz import examples

pytestmark = pytest.mark.django_db

NASTY = [
    "",
    " ",
    "\x00",
    "a\x00b",
    "\ud800",
    "\u202e",
    "é",
    "x" * 300,
    "../..",
    "'; --",
    "${x}",
    "{{x}}",
    "-",
    "A",
    "a",
]
_texts = st.sampled_from([*NASTY, UID, "cart-0", "shop"]) | st.text(max_size=8)
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from([10**400, -(2**63), 1e308, 0.1]) | _texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3),
    max_leaves=8,
)
_metadata = st.dictionaries(
    st.sampled_from(
        ["name", "namespace", "uid", "labels", "annotations", "ownerReferences", "deletionTimestamp"]
    ),
    _json,
    max_size=4,
)
_pods = st.builds(
    lambda metadata, more, known: {
        **more,
        "metadata": {"name": "cart-0", "namespace": "shop", "uid": UID, **metadata} if known else metadata,
    },
    _metadata,
    st.dictionaries(st.sampled_from(["spec", "status", "kind"]), _json, max_size=2),
    st.booleans(),
)
_documents = st.dictionaries(
    st.sampled_from(["pod", "Pod", "POD", "node", "podName", "podname", "podNamespace", "x"]),
    _pods | _json,
    max_size=3,
)
bodies = (
    st.just(pod_body())
    | st.builds(lambda pod: json.dumps({"pod": pod, "node": None}).encode(), _pods)
    | st.builds(lambda document: json.dumps(document).encode(), _documents)
    | st.builds(
        lambda at, new: pod_body()[:at] + new + pod_body()[at:], st.integers(0, 250), st.binary(max_size=6)
    )
    | st.binary(max_size=60)
)
_headers = st.sampled_from(
    ["", "Bearer", "Bearer ", "Basic x", "bearer TOKEN", "Bearer  TOKEN ", "Bearer x", "\x00"]
)
_segments = st.lists(
    st.sampled_from(["evict", "TOKEN", "x", "..", "\x00", "EVICT", "x" * 500]), max_size=4
).map(tuple)
knocks = st.builds(
    extender.Knock,
    method=st.sampled_from(["POST", "GET", "post", ""]),
    segments=_segments,
    authorization=_headers,
    address=st.sampled_from(["10.0.0.7", "", "::1", "x", "10.0.0.7%eth0"]),
)


@examples(120)
@given(knock=knocks, body=bodies)
def test_whatever_is_asked_is_recorded_or_refused(
    cluster: Cluster, knock: extender.Knock, body: bytes
) -> None:
    with transaction.atomic():
        _, token = register(cluster, path_token_allowed=True)
        answer = extender.answer(_with(knock, token), body, now=NOW, edge_for=lambda *_: FakePod(UNREACHABLE))
        assert answer["allow"] is False
        assert answer["reason"]
        json.dumps(answer)
        assert Decision.objects.count() == (1 if answer["state"] == "pending" else 0)
        transaction.set_rollback(True)


def _with(knock: extender.Knock, token: str) -> extender.Knock:
    swapped = tuple(part.replace("TOKEN", token) for part in knock.segments)
    return replace(knock, segments=swapped, authorization=knock.authorization.replace("TOKEN", token))


# --- in any order


@dataclass
class World:
    """A cluster, two callers, one pod, and what an observer notes of who said yes."""

    cluster: Cluster
    callers: list[tuple[Caller, str]]
    ada: User
    pod: FakePod = field(default_factory=FakePod)
    seconds: float = 0.0
    yes: set[int] = field(default_factory=set)

    @property
    def now(self) -> Any:
        return NOW + timedelta(seconds=self.seconds)

    @property
    def by(self) -> Actor:
        return Actor.person(self.ada)

    def ask(self, which: int) -> None:
        """Ask, and hold the answer against what was noted."""
        caller, token = self.callers[which % 2]
        knock = extender.Knock("POST", ("evict",), f"Bearer {token}", "10.0.0.7")
        answer = extender.answer(knock, pod_body(), now=self.now, edge_for=lambda *_: self.pod)
        if answer["allow"]:
            row = Decision.objects.get(pk=answer["decision"])
            assert row.pk in self.yes
            assert (row.caller, row.executor, row.pod_uid) == (caller, Executor.ASKER, UID)
            assert (row.verdict, row.eviction) == (Verdict.ALLOWED, Eviction.DELEGATED)
            assert self.pod.seen.sight is Sight.FOUND
            assert self.pod.seen.uid == UID
            assert not freezes.active(self.cluster.pk)
            self.cluster.refresh_from_db()
            assert self.cluster.armed
        for pk in (
            Decision.objects.filter(pk__in=self.yes)
            .exclude(verdict=Verdict.ALLOWED)
            .values_list("pk", flat=True)
        ):
            self.yes.discard(pk)

    def approve(self, which: int) -> None:
        if row := self._row(which):
            verdicts.approve(
                decision_id=row.pk, version=row.version, by=self.by, undo_seconds=which % 2 * 5, now=self.now
            )
            self.yes.add(row.pk)

    def deny(self, which: int) -> None:
        if row := self._row(which):
            verdicts.deny(decision_id=row.pk, version=row.version, by=self.by, reason="no", now=self.now)
            self.yes.discard(row.pk)

    def take_back(self, which: int) -> None:
        if row := self._row(which):
            verdicts.take_back(decision_id=row.pk, by=self.by, reason="wait", now=self.now)
            self.yes.discard(row.pk)

    def undo(self, which: int) -> None:
        if row := self._row(which):
            verdicts.undo(decision_id=row.pk, by=self.by, now=self.now)
            self.yes.discard(row.pk)

    def expire(self, which: int) -> None:
        verdicts.expire_due(now=self.now)

    def freeze(self, which: int) -> None:
        freezes.freeze(cluster=self.cluster if which % 2 else None, by=self.by, reason="stop", now=self.now)

    def lift(self, which: int) -> None:
        if frozen := freezes.active(self.cluster.pk):
            freezes.lift(freeze_id=frozen.pk, by=self.by, now=self.now)

    def disarm(self, which: int) -> None:
        clusters.disarm(cluster=self.cluster, by=SYSTEM, now=self.now)

    def arm(self, which: int) -> None:
        clusters.arm(cluster=self.cluster, by=SYSTEM, now=self.now)

    def wait(self, which: int) -> None:
        self.seconds += (1, 70, 4_000, 90_000)[which % 4]

    def change_pod(self, which: int) -> None:
        here = FakePod().seen
        views = [
            here,
            here,
            GONE,
            UNREACHABLE,
            replace(here, uid="other"),
            replace(here, terminating=True),
            Looked(Sight.FOUND),
        ]
        self.pod.seen = views[which % len(views)]

    def change_moment(self, which: int) -> None:
        self.pod.now = [moment.Now(), moment.Now(ready=1, desired=3), moment.Now(why_unknown="away")][
            which % 3
        ]

    def revoke(self, which: int) -> None:
        access.revoke_caller(caller_id=self.callers[1][0].pk, by=SYSTEM, now=self.now)

    def _row(self, which: int) -> Decision | None:
        rows = list(Decision.objects.order_by("-pk")[:4])
        return rows[which % len(rows)] if rows else None


STEPS = [
    name
    for name, method in vars(World).items()
    if callable(method) and not name.startswith("_") and name != "ask"
]
_steps = st.lists(
    st.tuples(st.sampled_from(["ask", "ask", "approve", "approve", *STEPS]), st.integers(0, 7)), max_size=25
)


@examples(30)
@given(steps=_steps)
def test_a_yes_was_given_by_somebody_and_still_stands(ada: User, steps: list[tuple[str, int]]) -> None:
    with transaction.atomic():
        cluster = make_cluster("fuzzed")
        world = World(cluster, [register(cluster, name=name) for name in ("one", "two")], ada)
        for step, which in steps:
            try:
                with transaction.atomic():
                    getattr(world, step)(which)
            except (Conflict, Invalid, NotAllowed):
                continue
            world.ask(which)
        transaction.set_rollback(True)


def test_the_fuzzer_hears_a_yes_at_all(ada: User) -> None:
    world = World(make_cluster("plain"), [register(make_cluster("other"), name="x")] * 2, ada)
    world.callers = [register(world.cluster, name="one")] * 2
    world.ask(0)
    world.approve(0)
    world.seconds = 10
    world.ask(0)
    assert Decision.objects.get().eviction == Eviction.DELEGATED
