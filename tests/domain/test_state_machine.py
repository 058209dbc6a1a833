"""A walk over the arrows of a decision, against the database's real constraints.

Hypothesis picks what happens next: people, callers, workers that live or die, answers of the API server, time,
freezes, pods that come and go. A trigger writes down every change of a verdict or an eviction status that the
database sees, however it came about; each must be an arrow of design.md section 5.
"""

from collections.abc import Callable
from contextlib import ExitStack, suppress
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
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
    Freeze,
    Role,
    Verdict,
)
from decisions.services import carryout, clusters, evictions, follow, freezes, verdicts
from decisions.services.actors import SYSTEM, Actor
from decisions.services.errors import Refused
from deschedui.extender.outcomes import Effect
from deschedui.kube.eviction import EvictionRequest
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

    @rule(ready=st.integers(0, 2))
    def replicas(self, ready: int) -> None:
        """So many are ready now."""
        self.fake.set_ready(ready)

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
        self.attempt(which, lambda row: evictions.tell(row.pk, by=SYSTEM, now=self.clock.now()))

    # --- people

    @rule(which=anything, undo=st.sampled_from([0, 5]))
    def approve(self, which: int, undo: int) -> None:
        """Yes."""
        self.attempt(
            which,
            lambda row: verdicts.approve(
                decision_id=row.pk, version=row.version, by=self.ada, undo_seconds=undo, now=self.clock.now()
            ),
        )

    @rule(which=anything, verb=st.sampled_from(["deny", "undo", "take_back", "override", "retry", "go_on"]))
    def decide(self, which: int, verb: str) -> None:
        """Whatever else a person may do."""
        now = self.clock.now()
        verbs: dict[str, Callable[[Decision], Any]] = {
            "deny": lambda row: verdicts.deny(
                decision_id=row.pk, version=row.version, by=self.ada, reason="no", now=now
            ),
            "undo": lambda row: verdicts.undo(decision_id=row.pk, by=self.ada, now=now),
            "take_back": lambda row: verdicts.take_back(
                decision_id=row.pk, by=self.ada, reason="no", now=now
            ),
            "override": lambda row: verdicts.override(
                decision_id=row.pk, by=self.ada, reason="yes", pod_exists=True, now=now
            ),
            "retry": lambda row: evictions.retry_failed(decision_id=row.pk, by=self.ada, now=now),
            "go_on": lambda row: evictions.go_on(decision_id=row.pk, by=self.ada, now=now),
        }
        self.attempt(which, verbs[verb])

    def attempt(self, which: int, change: Callable[[Decision], Any]) -> None:
        """Try something on one of the decisions; to be refused is fine."""
        rows = list(Decision.objects.order_by("-id")[:4])
        if rows:
            try:
                change(rows[which % len(rows)])
            except Refused:
                return

    # --- workers

    @rule(answer=st.sampled_from(sorted(ANSWERS)))
    def carry_out(self, answer: str) -> None:
        """A worker carries out what is due; the API server answers like this."""
        scripted = ANSWERS[answer]
        self.fake.script = [scripted] if scripted else []
        carryout.carry_out(self.cluster.pk, worker="w1", clock=self.clock)
        self.fake.script = []

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

    @rule()
    @precondition(lambda self: not Freeze.objects.filter(lifted_at=None).exists())
    def freeze(self) -> None:
        """Stop."""
        freezes.freeze(cluster=None, by=SYSTEM, reason="incident", now=self.clock.now())

    @rule()
    def lift(self) -> None:
        """Go on."""
        for frozen in Freeze.objects.filter(lifted_at=None):
            freezes.lift(freeze_id=frozen.pk, by=SYSTEM, now=self.clock.now())

    @rule()
    def disarm(self) -> None:
        """Only observe, for a while."""
        clusters.disarm(cluster=Cluster.objects.get(), by=SYSTEM, now=self.clock.now())

    @rule()
    def arm(self) -> None:
        """Evict again."""
        clusters.arm(cluster=Cluster.objects.get(), by=SYSTEM, now=self.clock.now())

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
        self.lift()
        self.arm()
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
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Life,
        settings=settings(
            max_examples=20,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
