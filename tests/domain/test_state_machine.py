"""A walk over the arrows of a decision, against the database's real constraints.

Hypothesis picks what happens next: people, callers, workers that live or die, answers of the API server, time,
freezes, pods that come and go. A trigger writes down every change of a verdict or an eviction status that the
database sees, however it came about; each must be an arrow of design.md section 5.
"""

from collections.abc import Callable
from contextlib import ExitStack, suppress
from datetime import timedelta
from functools import partial
from typing import Any

import msgspec
import pytest
from django.db import connection, transaction
from django.db.models import Q, QuerySet
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from decisions.models import (
    COMMITTED,
    ENDED,
    OPEN,
    Cluster,
    Decision,
    Eviction,
    Executor,
    Role,
    Verdict,
)
from decisions.services import carryout, clusters, evictions, follow, freezes, verdicts
from decisions.services.actors import SYSTEM, Actor
from decisions.services.errors import Refused
from deschedui.extender.outcomes import Effect
from deschedui.kube.eviction import EvictionRequest
from deschedui.kube.lists import IN_PROGRESS_ANNOTATION
from tests.builders import make_ask, make_cluster, make_user
from tests.domain import fake_cluster
from tests.domain.fake_cluster import FakeClock, FakeCluster, a_pod, using
from tests.domain.test_races import Killed, killed
from tests.domain.test_verdicts import with_outcome

pytestmark = pytest.mark.django_db

VERDICT_ARROWS = {
    ("pending", "allowed"),
    ("pending", "denied"),
    ("pending", "expired"),
    ("pending", "withdrawn"),
    ("denied", "allowed"),
    ("allowed", "pending"),
    ("allowed", "denied"),
    ("allowed", "expired"),
    ("allowed", "withdrawn"),
}
EVICTION_ARROWS = {
    ("none", "queued"),
    ("none", "delegated"),
    ("queued", "evicting"),
    ("queued", "none"),
    ("queued", "gone"),
    ("evicting", "accepted"),
    ("evicting", "evicted"),
    ("evicting", "in_background"),
    ("evicting", "blocked"),
    ("evicting", "queued"),
    ("evicting", "failed"),
    ("evicting", "gone"),
    ("blocked", "queued"),
    ("blocked", "none"),
    ("blocked", "gone"),
    ("delegated", "none"),
    ("delegated", "evicted"),
    ("failed", "queued"),
    ("accepted", "evicted"),
    ("in_background", "evicted"),
    ("in_background", "queued"),
    ("in_background", "failed"),
}
ANSWERS = {
    "accepted": None,
    "blocked": fake_cluster.BLOCKED,
    "throttled": fake_cluster.THROTTLED,
    "no answer": fake_cluster.NO_ANSWER,
    "no right": fake_cluster.NO_RIGHT,
    "credentials": fake_cluster.REFUSED_CREDENTIALS,
    "in background": fake_cluster.IN_BACKGROUND,
    "several PDBs": fake_cluster.status(
        500, "InternalError", "This pod has more than one PodDisruptionBudget"
    ),
    "webhook": fake_cluster.status(400, "BadRequest", 'admission webhook "x.example" denied the request: no'),
}
PODS = ("web-0", "web-1", "bare")
ASKERS = ("policy", "caller:7")
anything = st.integers(0, 50)
pods, askers = st.sampled_from(PODS), st.sampled_from(ASKERS)


def log_moves() -> None:
    """Let the database write down every change of a verdict or an eviction status."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE moves (v0 text, v1 text, e0 text, e1 text)")
        for statement in _TRIGGER[connection.vendor]:
            cursor.execute(statement)


_INSERT = "INSERT INTO moves VALUES (OLD.verdict, NEW.verdict, OLD.eviction, NEW.eviction);"
_CHANGED = "OLD.verdict <> NEW.verdict OR OLD.eviction <> NEW.eviction"
_FUNCTION = f"RETURNS trigger AS $$ BEGIN {_INSERT} RETURN NULL; END $$ LANGUAGE plpgsql"
_ON = "ON decisions_decision FOR EACH ROW WHEN"
_TRIGGER = {
    "sqlite": [f"CREATE TEMP TRIGGER moved AFTER UPDATE {_ON} {_CHANGED} BEGIN {_INSERT} END"],
    "postgresql": [
        f"CREATE FUNCTION pg_temp.moved() {_FUNCTION}",
        f"CREATE TRIGGER moved AFTER UPDATE {_ON} ({_CHANGED}) EXECUTE FUNCTION pg_temp.moved()",
    ],
}


class Life(RuleBasedStateMachine):
    """One cluster, three pods, two askers, and everything that can happen to them."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.stack.enter_context(transaction.atomic())
        self.stack.callback(transaction.set_rollback, True)
        log_moves()
        self.clock, self.fake = FakeClock(), FakeCluster()
        self.stack.enter_context(using(self.fake))
        self.fake.after_send = self.check_sent
        self.cluster = make_cluster()
        self.ada = Actor.person(make_user("ada", Role.APPROVER))
        self.generation = 0
        self.fake.add_owner(desired=2, ready=2)
        for name in PODS:
            self.new_pod(name)

    def teardown(self) -> None:
        try:
            self.everything_ends()
        finally:
            self.stack.close()

    # --- pods

    @rule(name=pods)
    def new_pod(self, name: str) -> None:
        """A pod, or another one under its name."""
        self.generation += 1
        owner = None if name == "bare" else fake_cluster.OWNED
        born = timedelta(hours=2) - (self.clock.now() - FakeClock().moment)
        self.fake.add(a_pod(name, uid=f"{name}#{self.generation}", owner=owner, age=born))

    @rule(name=pods)
    def pod_goes(self, name: str) -> None:
        """It goes by itself, or its termination ends."""
        self.fake.pods.pop(("shop", name), None)

    @rule(ready=st.sampled_from([1, 2, 2, 2]))
    def replicas(self, ready: int) -> None:
        """So many are ready now."""
        self.fake.set_ready(ready)

    @rule(name=pods, mark=st.booleans())
    def move_in_background(self, name: str, mark: bool) -> None:
        """Somebody begins to move it and gives up, or nobody begins."""
        pod = self.fake.pods.get(("shop", name))
        if pod is None:
            return
        if mark:
            meta = msgspec.structs.replace(pod.metadata, annotations={IN_PROGRESS_ANNOTATION: "true"})
            self.fake.add(msgspec.structs.replace(pod, metadata=meta))
            self.look()
            self.fake.add(pod)
        self.time_passes(601)
        self.look()

    # --- askers

    @rule(name=pods, asker=askers, effect=st.sampled_from([None, None, *Effect]))
    def ask(self, name: str, asker: str, effect: Effect | None) -> None:
        """Somebody wants a pod evicted."""
        pod = self.fake.pods.get(("shop", name))
        if pod is None or not Cluster.objects.get().armed:
            return
        asked: dict[str, Any] = with_outcome(effect) if effect else {}
        owner = "" if name == "bare" else "rs-uid"
        verdicts.record(
            ask=make_ask(
                self.cluster,
                pod_uid=pod.metadata.uid,
                pod_name=name,
                asker=asker,
                executor=Executor.US if asker == "policy" else Executor.ASKER,
                owner_uid=owner,
                forecast={"ready": self.fake.owners["ReplicaSet", "web-5fc9"].ready, "desired": 2}
                if owner
                else {},
                **asked,
            ),
            now=self.clock.now(),
        )

    @rule(which=anything)
    def tell(self, which: int) -> None:
        """A caller asks again and may hear a yes."""
        rows = Decision.objects.filter(executor=Executor.ASKER)
        self.attempt(rows, which, lambda row: evictions.tell(row.pk, by=SYSTEM, now=self.clock.now()))

    # --- people

    @rule(name=pods, asker=askers)
    def ask_and_approve(self, name: str, asker: str) -> None:
        """The usual way."""
        self.ask(name, asker, None)
        self.approve(0)

    @rule(which=anything)
    def approve(self, which: int) -> None:
        """Yes."""
        self.attempt(
            Decision.objects.filter(verdict=Verdict.PENDING),
            which,
            lambda row: verdicts.approve(
                decision_id=row.pk, version=row.version, by=self.ada, undo_seconds=0, now=self.clock.now()
            ),
        )

    @rule(which=anything, verb=st.sampled_from(["deny", "undo", "take_back", "override", "retry", "go_on"]))
    def decide(self, which: int, verb: str) -> None:
        """Whatever else a person may do, mostly where it makes sense."""
        now, by = self.clock.now(), self.ada
        allowed = Q(verdict=Verdict.ALLOWED)
        verbs: dict[str, tuple[Q, Callable[..., Any]]] = {
            "deny": (Q(verdict=Verdict.PENDING), partial(verdicts.deny, version=1, reason="no")),
            "undo": (allowed, verdicts.undo),
            "take_back": (allowed, partial(verdicts.take_back, reason="no")),
            "override": (
                Q(verdict=Verdict.DENIED),
                partial(verdicts.override, reason="yes", pod_exists=True),
            ),
            "retry": (Q(eviction=Eviction.FAILED), evictions.retry_failed),
            "go_on": (~Q(held=""), evictions.go_on),
        }
        which_rows, change = verbs[verb]
        rows = Decision.objects.filter(which_rows) if which % 5 else Decision.objects.all()
        self.attempt(rows, which, lambda row: change(decision_id=row.pk, by=by, now=now))

    def attempt(self, rows: "QuerySet[Decision]", which: int, change: Callable[[Decision], Any]) -> None:
        """Try something on one of the decisions; to be refused is fine."""
        found = list(rows.order_by("-id")[:4])
        if found:
            with suppress(Refused):
                change(found[which % len(found)])

    # --- workers

    @rule(answer=st.sampled_from(sorted(ANSWERS)))
    def carry_out(self, answer: str) -> None:
        """A worker carries out what is due; the API server answers like this."""
        self.clock.advance(1)
        scripted = ANSWERS[answer]
        self.fake.script = [scripted] if scripted else []
        carryout.carry_out(self.cluster.pk, worker="w1", clock=self.clock)
        self.fake.script = []

    @rule(name=pods, answer=st.sampled_from(sorted(ANSWERS)))
    def the_whole_way(self, name: str, answer: str) -> None:
        """Asked for, approved, carried out, answered like this."""
        self.ask_and_approve(name, "policy")
        self.carry_out(answer)

    @rule(name=pods, asker=askers)
    def approved_too_late(self, name: str, asker: str) -> None:
        """Approved, and then the pod goes by itself; a worker or a look finds out first."""
        self.ask_and_approve(name, asker)
        self.tell(0)
        self.pod_goes(name)

    @rule(where=st.sampled_from(["at_send", "after_send"]))
    def die(self, where: str) -> None:
        """A worker dies before or after its call."""
        setattr(self.fake, where, killed)
        with suppress(Killed):
            carryout.carry_out(self.cluster.pk, worker="w2", clock=self.clock)
        self.fake.at_send, self.fake.after_send = lambda _: None, self.check_sent

    @rule()
    def look(self) -> None:
        """A look at what is open."""
        Cluster.objects.update(next_follow_at=None)
        follow.follow(self.cluster.pk, clock=self.clock)

    @rule(seconds=st.sampled_from([1, 31, 121, 601, 901, 3601, 4 * 3600]))
    def time_passes(self, seconds: int) -> None:
        """Time, and what happens by it."""
        now = self.clock.advance(seconds)
        verdicts.expire_due(now=now)
        evictions.requeue_blocked(now=now)
        evictions.queue_stranded(now=now)

    # --- the whole cluster

    @rule(everything=st.booleans())
    def freeze_for_a_while(self, everything: bool) -> None:
        """Stop; whatever is due waits."""
        what = None if everything else self.cluster
        frozen = freezes.freeze(cluster=what, by=SYSTEM, reason="incident", now=self.clock.now())
        self.carry_out("accepted")
        freezes.lift(freeze_id=frozen.pk, by=SYSTEM, now=self.clock.now())

    @rule()
    def observe_for_a_while(self) -> None:
        """Only observe, then evict again."""
        clusters.disarm(cluster=Cluster.objects.get(), by=SYSTEM, now=self.clock.now())
        self.carry_out("accepted")
        clusters.arm(cluster=Cluster.objects.get(), by=SYSTEM, now=self.clock.now())

    @rule(name=pods)
    def end_and_come_back(self, name: str) -> None:
        """A pod ends, its replacement comes, and somebody looks."""
        self.pod_goes(name)
        self.look()
        self.new_pod(name)
        self.look()

    # --- what always holds

    def check_sent(self, request: EvictionRequest) -> None:
        """At the moment of a call: allowed, claimed, armed, not frozen."""
        [row] = Decision.objects.filter(pod_uid=request.uid, eviction=Eviction.EVICTING)
        assert row.verdict == Verdict.ALLOWED
        assert row.expires_at is not None
        assert row.cluster.armed
        assert freezes.active(row.cluster_id) is None

    @invariant()
    def every_change_is_an_arrow(self) -> None:
        """What the trigger wrote down."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT v0, v1, e0, e1 FROM moves")
            moves = cursor.fetchall()
            cursor.execute("DELETE FROM moves")
        for v0, v1, e0, e1 in moves:
            assert v0 == v1 or (v0, v1) in VERDICT_ARROWS, f"verdict {v0} -> {v1}"
            assert e0 == e1 or (e0, e1) in EVICTION_ARROWS, f"eviction {e0} -> {e1}"
            assert not (v0 == "allowed" and v1 != v0) or e1 == "none", f"the verdict left {e1}"

    @invariant()
    def no_pod_is_evicted_twice(self) -> None:
        """The API server accepted each eviction once."""
        assert len(self.fake.evicted) == len(set(self.fake.evicted))

    @invariant()
    def one_of_an_owner_at_a_time(self) -> None:
        """The pace holds."""
        flying = evictions.in_flight(self.cluster.pk).filter(owner_uid="rs-uid")
        assert flying.count() <= 1

    @invariant()
    def no_decision_is_open_twice(self) -> None:
        """One open decision for a pod and an asker."""
        keys = list(Decision.objects.filter(OPEN).values_list("pod_uid", "asker"))
        assert len(keys) == len(set(keys))

    @invariant()
    def everything_has_its_story(self) -> None:
        """No decision without a timeline."""
        assert not Decision.objects.filter(events=None).exists()

    def everything_ends(self) -> None:
        """No decision is lost: given time and a cluster that answers, each of them ends."""
        for name in PODS:
            self.pod_goes(name)
        for _ in range(4):
            self.time_passes(4 * 3600)
            self.carry_out("accepted")
            self.look()
        self.time_passes(24 * 3600)
        left = Decision.objects.filter(OPEN).values_list("pk", "verdict", "eviction", "held")
        assert not left, f"never ended: {list(left)}"
        ended = Decision.objects.filter(verdict=Verdict.ALLOWED).exclude(eviction__in=ENDED)
        assert not ended.exists()
        assert not Decision.objects.filter(eviction__in=COMMITTED).exists()
        self.every_change_is_an_arrow()


def test_whatever_happens_is_an_arrow_and_everything_ends() -> None:
    run_state_machine_as_test(
        Life,
        settings=settings(
            max_examples=25,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
