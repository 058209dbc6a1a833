"""The Lease of an installation: what a check does, and what freezes a cluster by itself."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import override_settings

from decisions.models import (
    AuditEntry,
    Cluster,
    CycleKind,
    CycleState,
    Decision,
    Event,
    Eviction,
    Executor,
    Verdict,
)
from decisions.models.enums import Stop
from decisions.queries import installation as query
from decisions.services import carryout, connections, cycles, evictions, freezes, installation, pace, verdicts
from decisions.services.actors import SYSTEM, Actor
from decisions.services.errors import Closed, Conflict
from deschedui.kube.errors import Forbidden, KubeError, NotFound, Throttled, TimedOut
from deschedui.kube.leases import LeaseView
from tests.builders import NOW, at, make_cluster, make_decision
from tests.domain.cycle_world import Runs, policy_text
from tests.domain.fake_cluster import FakeClock, FakeCluster, a_pod, using

US, THEM = "installation-of-the-tests", "another-installation-0001"
RBAC = Forbidden("update Lease deschedui/deschedui: forbidden; grant update on leases to this account")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def fake() -> Iterator[FakeCluster]:
    cluster = FakeCluster()
    cluster.add_owner()
    with using(cluster):
        yield cluster


@pytest.fixture
def cluster(db: None) -> Cluster:
    """Armed, and never in contact yet."""
    return make_cluster(lease_checked_at=None, lease_checked_by="", next_lease_at=None)


def lease(fake: FakeCluster) -> LeaseView:
    return fake.leases["deschedui"]


def put_lease(fake: FakeCluster, holder: str = US, counter: int | None = 1) -> None:
    fake.leases["deschedui"] = LeaseView(holder, counter, "9")


def beat(cluster: Cluster, clock: FakeClock, seconds: float = 0) -> Cluster:
    clock.advance(seconds)
    installation.beat(cluster.pk, clock=clock)
    return Cluster.objects.get(pk=cluster.pk)


def checked(cluster: Cluster, clock: FakeClock, seconds: float = 0) -> str:
    """Check as a claim does; why not, or an empty text."""
    clock.advance(seconds)
    fresh = Cluster.objects.get(pk=cluster.pk)
    try:
        installation.check(fresh, connections.client_for(fresh), clock=clock)
    except installation.NotOurs as why:
        return str(why)
    return ""


def a_queued(cluster: Cluster, fake: FakeCluster, uid: str = "u1", **fields: Any) -> Decision:
    fake.add(a_pod(f"web-5fc9-{uid}", uid=uid))
    allowed = {"verdict": Verdict.ALLOWED, "eviction": Eviction.QUEUED, "executor": Executor.US}
    return make_decision(
        cluster, pod_uid=uid, pod_name=f"web-5fc9-{uid}", expires_at=at(7200), **{**allowed, **fields}
    )


def carry_out(cluster: Cluster, clock: FakeClock) -> int:
    return carryout.carry_out(cluster.pk, worker="w1", clock=clock)


def state(row: Decision) -> tuple[str, str]:
    row.refresh_from_db()
    return row.verdict, row.eviction


# --- an ordinary life -------------------------------------------------------------------------------------


def test_the_first_contact_makes_the_lease(cluster: Cluster, fake: FakeCluster, clock: FakeClock) -> None:
    now = beat(cluster, clock)
    assert (lease(fake).holder, lease(fake).counter, now.lease_counter) == (US, 1, 1)
    assert (now.lease_checked_at, now.lease_checked_by, now.stopped) == (NOW, query.mark(), "")


def test_the_database_knows_no_id(cluster: Cluster, fake: FakeCluster, clock: FakeClock) -> None:
    now = beat(cluster, clock)
    assert US not in str(Cluster.objects.filter(pk=now.pk).values().get())


def test_a_heartbeat_every_ten_seconds_raises_both(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    for seconds in (0, 5, 5, 9, 1):
        now = beat(cluster, clock, seconds)
    assert (fake.lease_writes, now.lease_counter) == ([1, 2, 3], 3)


def test_the_database_is_raised_first(cluster: Cluster, fake: FakeCluster, clock: FakeClock) -> None:
    stored: list[int] = []
    fake.at_lease_write = lambda claim: stored.append(Cluster.objects.get().lease_counter - claim.counter)
    beat(cluster, clock)
    beat(cluster, clock, 10)
    assert stored == [0, 0]


def test_a_cluster_that_only_observes_gets_no_lease(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    Cluster.objects.update(armed=False)
    assert installation.due_clusters(now=NOW) == []
    beat(cluster, clock)
    assert fake.leases == {}


def test_one_that_was_armed_once_keeps_its_lease(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    beat(cluster, clock)
    Cluster.objects.update(armed=False)
    assert beat(cluster, clock, 10).lease_counter == 2


def test_a_claim_raises_both(cluster: Cluster, fake: FakeCluster, clock: FakeClock) -> None:
    rows = [a_queued(cluster, fake, uid, owner_uid="") for uid in ("u1", "u2", "u3")]
    assert carry_out(cluster, clock) == 3
    assert {state(row)[1] for row in rows} == {Eviction.ACCEPTED}
    assert fake.lease_writes == [1, 2, 3]


def test_nothing_due_writes_nothing(cluster: Cluster, fake: FakeCluster, clock: FakeClock) -> None:
    a_queued(cluster, fake, not_before=at(60))
    carry_out(cluster, clock)
    assert fake.lease_writes == []


def test_a_burst_of_claims_reads_the_lease_once(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    for _ in range(5):
        checked(cluster, clock, 1)
    assert (fake.lease_reads, fake.lease_writes) == (1, [1, 2, 3, 4, 5])


def test_others_notes_on_the_lease_only_cost_a_read(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    checked(cluster, clock)
    fake.leases["deschedui"] = LeaseView(US, 1, "7", annotations={"somebody": "looked"})
    assert checked(cluster, clock, 1) == ""
    assert (lease(fake).counter, Cluster.objects.get().stopped) == (2, "")


def test_another_namespace_is_a_setting(cluster: Cluster, fake: FakeCluster, clock: FakeClock) -> None:
    Cluster.objects.update(overrides={"lease_namespace": "ops"})
    beat(cluster, clock)
    assert list(fake.leases) == ["ops"]


# --- what freezes it --------------------------------------------------------------------------------------


def test_another_installations_id_freezes(cluster: Cluster, fake: FakeCluster, clock: FakeClock) -> None:
    put_lease(fake, THEM)
    now = beat(cluster, clock)
    assert (now.stopped, lease(fake).holder, fake.lease_writes) == ("foreign", THEM, [])
    assert "names another installation (another-…)" in now.stopped_why


def test_it_freezes_in_the_middle_too(cluster: Cluster, fake: FakeCluster, clock: FakeClock) -> None:
    beat(cluster, clock)
    put_lease(fake, THEM, 50)
    assert "another installation" in checked(cluster, clock, 1)
    assert Cluster.objects.get().stopped == "foreign"


def test_a_lease_ahead_of_the_database_freezes(cluster: Cluster, fake: FakeCluster, clock: FakeClock) -> None:
    put_lease(fake, US, 8)
    Cluster.objects.update(lease_counter=7, lease_checked_at=NOW)
    now = beat(cluster, clock)
    assert (now.stopped, now.lease_counter, lease(fake).counter) == ("ahead", 7, 8)
    assert "counts 8, this database 7" in now.stopped_why


def test_a_database_restored_under_a_running_worker_freezes(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    for _ in range(5):
        checked(cluster, clock, 1)
    Cluster.objects.update(lease_counter=2)
    assert "ahead of the database" in checked(cluster, clock, 1)
    assert (fake.lease_writes, Cluster.objects.get().stopped) == ([1, 2, 3, 4, 5], "ahead")


def test_a_database_ahead_of_the_lease_is_what_a_dead_worker_leaves(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    put_lease(fake, US, 4)
    Cluster.objects.update(lease_counter=6, lease_checked_at=NOW)
    assert (beat(cluster, clock).stopped, lease(fake).counter) == ("", 7)


def test_a_lease_that_is_gone_freezes(cluster: Cluster, fake: FakeCluster, clock: FakeClock) -> None:
    beat(cluster, clock)
    fake.leases.clear()
    now = beat(cluster, clock, 10)
    assert (now.stopped, fake.leases) == ("missing", {})


def test_a_first_contact_that_failed_half_way_is_still_a_first_one(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    fake.lease_broken = NotFound('create Lease: HTTP 404: namespaces "deschedui" not found', status=404)
    assert 'namespaces "deschedui" not found' in checked(cluster, clock)
    fake.lease_broken = None
    assert (checked(cluster, clock, 10), Cluster.objects.get().stopped) == ("", "")


@pytest.mark.parametrize("counter", [None])
def test_a_counter_that_cannot_be_read_freezes(
    counter: int | None, cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    put_lease(fake, US, counter)
    now = beat(cluster, clock)
    assert (now.stopped, "no counter that can be read" in now.stopped_why) == ("foreign", True)


def test_it_is_in_the_record_once(cluster: Cluster, fake: FakeCluster, clock: FakeClock) -> None:
    put_lease(fake, THEM)
    for _ in range(3):
        beat(cluster, clock, 10)
    assert AuditEntry.objects.filter(what="frozen by itself").count() == 1


# --- what is open then ------------------------------------------------------------------------------------


def test_all_that_is_open_is_withdrawn(cluster: Cluster, fake: FakeCluster, clock: FakeClock) -> None:
    told = {"eviction": Eviction.DELEGATED, "executor": Executor.ASKER, "told_at": NOW, "asker": "caller:1"}
    rows = [
        make_decision(cluster),
        a_queued(cluster, fake, "u1"),
        a_queued(cluster, fake, "u2", eviction=Eviction.BLOCKED),
        a_queued(cluster, fake, "u3", **told),
    ]
    put_lease(fake, THEM)
    now = beat(cluster, clock)
    assert {state(row) for row in rows} == {(Verdict.WITHDRAWN, Eviction.NONE)}
    assert now.stopped_withdrawn == 4
    reasons = {row.events.get(kind=Event.WITHDRAWN).reason for row in rows}
    assert reasons == {"the cluster was frozen by itself: the Lease names another installation"}


def test_what_is_called_right_now_is_withdrawn_when_its_lease_has_run_out(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    row = a_queued(cluster, fake, eviction=Eviction.EVICTING, attempt=1, lease_until=at(100))
    put_lease(fake, THEM)
    beat(cluster, clock)
    installation.withdraw_stopped(now=clock.now())
    assert state(row) == (Verdict.ALLOWED, Eviction.EVICTING)
    clock.advance(101)
    carry_out(cluster, clock)
    assert state(row) == (Verdict.WITHDRAWN, Eviction.NONE)
    assert Cluster.objects.get().stopped_withdrawn == 1


def test_what_really_went_is_written_as_such(cluster: Cluster, fake: FakeCluster, clock: FakeClock) -> None:
    row = a_queued(cluster, fake, eviction=Eviction.EVICTING, attempt=1, lease_until=at(100))
    put_lease(fake, THEM)
    beat(cluster, clock)
    fake.remove("u1")
    clock.advance(101)
    carry_out(cluster, clock)
    assert (state(row), row.unconfirmed) == ((Verdict.ALLOWED, Eviction.EVICTED), True)


def test_a_stop_between_the_claim_and_the_call_holds_the_call(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    row = a_queued(cluster, fake)
    fake.at_send = lambda _: installation.stop(cluster.pk, kind=Stop.FOREIGN, why="a test", now=NOW)
    carry_out(cluster, clock)
    assert (fake.sent, state(row)[1]) == ([], Eviction.QUEUED)
    assert "frozen by itself" in row.message
    installation.withdraw_stopped(now=NOW)
    assert state(row) == (Verdict.WITHDRAWN, Eviction.NONE)


def test_the_claim_tests_it(cluster: Cluster, fake: FakeCluster) -> None:
    row = a_queued(make_cluster("other", stopped="ahead"), fake)
    rules = pace.Rules.of(row.cluster.settings)
    assert evictions.claim(row.pk, worker="w", rules=rules, now=NOW) == 0


def test_a_check_that_is_too_old_holds_the_call(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    row = a_queued(cluster, fake)
    fake.at_send = lambda _: clock.advance(26)
    carry_out(cluster, clock)
    assert (fake.sent, state(row)) == ([], (Verdict.ALLOWED, Eviction.QUEUED))
    assert "was not checked within the last 25 s" in row.message


def test_nothing_that_was_denied_becomes_allowed(cluster: Cluster, fake: FakeCluster, ada: User) -> None:
    Cluster.objects.update(stopped="foreign")
    denied = make_decision(cluster, verdict=Verdict.DENIED, decision_reason="no")
    with pytest.raises(Conflict, match="An admin has to confirm this installation"):
        verdicts.override(decision_id=denied.pk, by=Actor.person(ada), reason="now", pod_exists=True, now=NOW)


def test_nothing_that_failed_is_tried_again(cluster: Cluster, fake: FakeCluster, ada: User) -> None:
    Cluster.objects.update(stopped="foreign")
    failed = a_queued(cluster, fake, eviction=Eviction.FAILED, ended_at=NOW)
    with pytest.raises(Conflict, match="An admin has to confirm this installation"):
        evictions.retry_failed(decision_id=failed.pk, by=Actor.person(ada), now=NOW)


# --- when it cannot be told -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error", [RBAC, TimedOut("read Lease: no complete answer within 10 s"), Throttled("slow down")]
)
def test_a_lease_that_cannot_be_written_lets_nothing_be_claimed(
    error: KubeError, cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    row = a_queued(cluster, fake)
    fake.lease_broken = error
    assert carry_out(cluster, clock) == 0
    assert (state(row), row.attempt, fake.sent) == ((Verdict.ALLOWED, Eviction.QUEUED), 0, [])
    assert str(error) in row.message
    assert str(error) in Cluster.objects.get().lease_problem


def test_it_goes_on_when_it_can_be_written_again(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    row = a_queued(cluster, fake)
    fake.lease_broken = RBAC
    for _ in range(3):
        carry_out(cluster, clock)
        clock.advance(10)
    fake.lease_broken = None
    carry_out(cluster, clock)
    assert (state(row)[1], Cluster.objects.get().lease_problem) == (Eviction.ACCEPTED, "")
    assert row.events.filter(kind=Event.REQUEUED).count() == 1


def test_an_api_server_that_is_away_is_the_clusters_problem(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    fake.lease_broken = TimedOut("read Lease: no complete answer within 10 s")
    assert "no complete answer" in beat(cluster, clock).problem
    fake.lease_broken = None
    assert (beat(cluster, clock, 10).problem, Cluster.objects.get().stopped) == ("", "")


def test_a_missing_right_does_not_break_the_connection(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    fake.lease_broken = RBAC
    now = beat(cluster, clock)
    assert (now.problem, now.lease_problem_since) == ("", NOW)


def test_a_freeze_of_people_and_one_by_itself_hold_each_on_its_own(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    put_lease(fake, THEM)
    beat(cluster, clock)
    row = freezes.freeze(cluster=cluster, by=SYSTEM, reason="incident", now=NOW)
    freezes.lift(freeze_id=row.pk, by=SYSTEM, now=NOW)
    assert Cluster.objects.get().stopped == "foreign"


# --- an admin's word --------------------------------------------------------------------------------------


def stopped(cluster: Cluster, fake: FakeCluster, clock: FakeClock, counter: int = 40) -> Cluster:
    put_lease(fake, THEM, counter)
    return beat(cluster, clock)


def confirm(cluster: Cluster, clock: FakeClock) -> Cluster:
    fresh = Cluster.objects.get(pk=cluster.pk)
    return installation.confirm(cluster=fresh, by=Actor(name="root"), now=clock.now())


def test_nothing_goes_on_without_it(cluster: Cluster, fake: FakeCluster, clock: FakeClock) -> None:
    stopped(cluster, fake, clock)
    fake.leases.clear()
    assert beat(cluster, clock, 3600).stopped == "foreign"
    assert "frozen by itself" in checked(cluster, clock)


def test_a_word_takes_the_lease_over_above_both(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    stopped(cluster, fake, clock)
    confirm(cluster, clock)
    now = beat(cluster, clock)
    assert (now.stopped, lease(fake).holder, lease(fake).counter, now.lease_counter) == ("", US, 41, 41)
    assert (now.confirmed_by, now.lease_checked_at) == ("", clock.now())


def test_a_word_makes_a_lease_that_is_gone(cluster: Cluster, fake: FakeCluster, clock: FakeClock) -> None:
    beat(cluster, clock)
    fake.leases.clear()
    beat(cluster, clock, 10)
    confirm(cluster, clock)
    assert (beat(cluster, clock).stopped, lease(fake).counter) == ("", 2)


def test_what_was_withdrawn_stays_so(cluster: Cluster, fake: FakeCluster, clock: FakeClock) -> None:
    row = a_queued(cluster, fake)
    stopped(cluster, fake, clock)
    confirm(cluster, clock)
    beat(cluster, clock)
    assert (carry_out(cluster, clock), state(row), fake.sent) == (0, (Verdict.WITHDRAWN, Eviction.NONE), [])


def test_a_word_waits_for_calls_whose_end_is_unknown(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    row = a_queued(cluster, fake, eviction=Eviction.EVICTING, attempt=1, lease_until=at(100))
    stopped(cluster, fake, clock)
    confirm(cluster, clock)
    assert beat(cluster, clock).stopped == "foreign"
    clock.advance(101)
    carry_out(cluster, clock)
    assert (beat(cluster, clock).stopped, state(row)[0]) == ("", Verdict.WITHDRAWN)


def test_a_call_that_comes_back_while_the_lease_is_taken_over_is_withdrawn(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    row = a_queued(cluster, fake, eviction=Eviction.EVICTING, attempt=1, lease_until=at(100))
    stopped(cluster, fake, clock)
    confirm(cluster, clock)

    def comes_back(execute: Any, sql: str, params: Any, *rest: Any) -> Any:
        if 'AS "a" FROM "decisions_decision"' in sql and Eviction.EVICTING in params:  # whether any is called
            evictions.step_back(row.pk, 1, why="not sent after all", now=NOW)
        return execute(sql, params, *rest)

    with connection.execute_wrapper(comes_back):
        beat(cluster, clock)
    assert (Cluster.objects.get().stopped, state(row)) == ("", (Verdict.WITHDRAWN, Eviction.NONE))


def test_a_word_counts_on_a_cluster_that_only_observes(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    stopped(cluster, fake, clock)
    Cluster.objects.update(armed=False)
    confirm(cluster, clock)
    assert installation.due_clusters(now=clock.now()) == [cluster.pk]
    assert beat(cluster, clock).stopped == ""


def test_a_word_holds_for_ten_minutes(cluster: Cluster, fake: FakeCluster, clock: FakeClock) -> None:
    stopped(cluster, fake, clock)
    confirm(cluster, clock)
    assert beat(cluster, clock, 601).stopped == "foreign"


def test_a_word_for_another_installation_is_none(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    stopped(cluster, fake, clock)
    with override_settings(INSTALLATION_ID="one-more-installation-0002"):
        confirm(cluster, clock)
    assert beat(cluster, clock).stopped == "foreign"


def test_a_word_where_nothing_is_wrong_changes_nothing(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    beat(cluster, clock)
    assert (confirm(cluster, clock).confirmed_at, AuditEntry.objects.count()) == (None, 0)


def test_who_gave_the_word_is_in_the_record(cluster: Cluster, fake: FakeCluster, clock: FakeClock) -> None:
    stopped(cluster, fake, clock)
    confirm(cluster, clock)
    beat(cluster, clock)
    told = AuditEntry.objects.order_by("pk").values_list("what", "by_name")
    assert list(told) == [
        ("frozen by itself", "deschedui"),
        ("installation confirmed", "root"),
        ("Lease taken over", "deschedui"),
    ]


def test_a_lease_that_cannot_be_taken_over_is_tried_again(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    stopped(cluster, fake, clock)
    confirm(cluster, clock)
    fake.lease_broken = RBAC
    assert (beat(cluster, clock).stopped, Cluster.objects.get().lease_problem) == ("foreign", str(RBAC))
    fake.lease_broken = None
    assert beat(cluster, clock, 10).stopped == ""


# --- two installations on one cluster ---------------------------------------------------------------------


def test_of_two_installations_the_one_that_took_over_goes_on(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    beat(cluster, clock)
    theirs = make_cluster("copy", lease_checked_at=None, lease_checked_by="", next_lease_at=None)
    with override_settings(INSTALLATION_ID=THEM):
        assert beat(theirs, clock).stopped == "foreign"
        confirm(theirs, clock)
        assert beat(theirs, clock).stopped == ""
    assert beat(cluster, clock, 10).stopped == "foreign"
    assert lease(fake).holder == THEM


def test_a_copy_may_not_act_on_the_checks_of_the_other(cluster: Cluster) -> None:
    row = make_cluster("copied", lease_checked_at=at(0))
    mine = Cluster.objects.filter(query.in_order(at(20)), pk=row.pk)
    assert mine.exists()
    with override_settings(INSTALLATION_ID=THEM):
        assert not Cluster.objects.filter(query.in_order(at(20)), pk=row.pk).exists()


@pytest.mark.parametrize(("age", "fresh"), [(0, True), (24.9, True), (25, False), (3600, False)])
def test_a_check_holds_for_25_seconds(age: float, fresh: bool, db: None) -> None:
    row = make_cluster("prod", lease_checked_at=NOW)
    assert Cluster.objects.filter(query.in_order(at(age)), pk=row.pk).exists() is fresh


# --- cycles -----------------------------------------------------------------------------------------------


@pytest.fixture
def runs(cluster: Cluster, tmp_path: Path) -> Runs:
    made = Runs(cluster, tmp_path)
    made.policy(policy_text())
    return made


def test_no_cycle_starts_by_time(runs: Runs) -> None:
    Cluster.objects.update(stopped="foreign", next_cycle_at=NOW)
    assert cycles.start_due(now=NOW) == []
    Cluster.objects.update(stopped="")
    assert len(cycles.start_due(now=NOW)) == 1


@pytest.mark.parametrize("kind", [CycleKind.MANUAL, CycleKind.DRY_RUN])
def test_no_cycle_starts_by_hand(kind: CycleKind, runs: Runs) -> None:
    Cluster.objects.update(stopped="ahead")
    with pytest.raises(Closed, match="the Lease is ahead of the database"):
        runs.start(kind)


def test_a_cycle_that_runs_records_nothing_more(runs: Runs) -> None:
    cycle = runs.start()
    Cluster.objects.update(stopped="ahead")
    runs.finish(cycle)
    assert (cycle.state, Decision.objects.count()) == (CycleState.FAILED, 0)
    assert "frozen by itself" in cycle.error
