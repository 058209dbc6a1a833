"""Races, provoked on purpose: with threads, and with workers that die in the middle.

On SQLite (a file) and, with ``DESCHEDUI_TEST_DATABASE_URL``, on PostgreSQL. What must hold whatever happens: never
two evictions of one pod, never an eviction without an allowed decision, never a decision lost.
"""

import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection

from decisions.models import OPEN, Cluster, Decision, Event, Eviction, Executor, Verdict
from decisions.services import carryout, clusters, evictions, follow, freezes, pace, verdicts
from decisions.services.actors import SYSTEM, Actor
from decisions.services.errors import Conflict
from deschedui.kube.eviction import Again, EvictionCause, EvictionResult
from tests.builders import NOW, at, make_ask, make_decision
from tests.domain.fake_cluster import OWNED, FakeClock, FakeCluster, a_pod, using
from tests.doors.edges import ask, register

pytestmark = pytest.mark.django_db(transaction=True)
UID = "u1"
ROUNDS = 4
RULES = pace.Rules()


class Killed(BaseException):
    """The worker's end, in the middle of something."""


def race(*racers: Callable[[], Any]) -> list[Any]:
    """Let all of them start at the same moment; what each returned or raised, in their order."""
    start = threading.Barrier(len(racers))
    results: list[Any] = [None] * len(racers)

    def run(place: int, racer: Callable[[], Any]) -> None:
        try:
            connection.ensure_connection()
            start.wait(10)
            results[place] = racer()
        except Exception as error:  # noqa: BLE001 - a refusal is one of the results
            results[place] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(racers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


def count(results: list[Any], kind: type) -> int:
    return sum(isinstance(result, kind) for result in results)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def fake() -> Iterator[FakeCluster]:
    """A cluster with the pod and its ReplicaSet; whatever was sent was allowed at that moment."""
    fake = FakeCluster()
    fake.add_owner(desired=30, ready=30)
    fake.add(a_pod(uid=UID))
    fake.after_send = only_what_was_allowed
    with using(fake):
        yield fake
    assert len(fake.evicted) == len(set(fake.evicted)), "a pod was evicted twice"


def only_what_was_allowed(request: Any) -> None:
    rows = Decision.objects.filter(pod_uid=request.uid, verdict=Verdict.ALLOWED, eviction=Eviction.EVICTING)
    assert rows.count() == 1, "an eviction without an allowed decision"


def approved(cluster: Cluster, ada: User, **fields: Any) -> Decision:
    row = make_decision(cluster, **{"pod_uid": UID, **fields})
    return verdicts.approve(decision_id=row.pk, version=1, by=Actor.person(ada), undo_seconds=0, now=NOW)


def carry_out(cluster: Cluster, clock: FakeClock, worker: str = "w1") -> int:
    return carryout.carry_out(cluster.pk, worker=worker, clock=clock)


def fresh(row: Decision) -> Decision:
    row.refresh_from_db()
    return row


# --- people -----------------------------------------------------------------------------------------------


def approver(row: Decision, user: User) -> Callable[[], Decision]:
    return lambda: verdicts.approve(
        decision_id=row.pk, version=1, by=Actor.person(user), undo_seconds=0, now=NOW
    )


def denier(row: Decision, user: User) -> Callable[[], Decision]:
    return lambda: verdicts.deny(decision_id=row.pk, version=1, by=Actor.person(user), reason="no", now=NOW)


def claimer(row: Decision) -> Callable[[], int]:
    return lambda: evictions.claim(row.pk, worker="w", rules=RULES, now=NOW)


def test_of_two_approvals_at_once_one_wins(cluster: Cluster, ada: User, viewer: User) -> None:
    for _ in range(ROUNDS):
        row = make_decision(cluster)
        results = race(approver(row, ada), approver(row, viewer))
        assert (count(results, Decision), count(results, Conflict)) == (1, 1)
        assert row.events.filter(kind=Event.APPROVED).count() == 1


def test_of_approve_and_deny_at_once_one_wins(cluster: Cluster, ada: User, viewer: User) -> None:
    for _ in range(ROUNDS):
        row = make_decision(cluster)
        results = race(approver(row, ada), denier(row, viewer))
        assert (count(results, Decision), count(results, Conflict)) == (1, 1)
        assert (fresh(row).verdict, row.eviction) in {
            (Verdict.ALLOWED, Eviction.QUEUED),
            (Verdict.DENIED, Eviction.NONE),
        }


@pytest.mark.parametrize("how", ["take back", "undo"])
def test_taking_back_and_the_claim_never_both_win(cluster: Cluster, ada: User, how: str) -> None:
    def back(row: Decision) -> Callable[[], Decision]:
        by = Actor.person(ada)
        if how == "undo":
            return lambda: verdicts.undo(decision_id=row.pk, by=by, now=NOW)
        return lambda: verdicts.take_back(decision_id=row.pk, by=by, reason="no", now=NOW)

    for number in range(ROUNDS):
        row = approved(cluster, ada, pod_uid=f"u{number}", owner_uid=f"o{number}")
        taken, claimed = race(back(row), claimer(row))
        assert isinstance(taken, Decision) != bool(claimed)
        expected = Eviction.EVICTING if claimed else Eviction.NONE
        assert (fresh(row).eviction, row.verdict == Verdict.ALLOWED) == (expected, bool(claimed))


def test_of_two_retries_at_once_one_wins(cluster: Cluster, ada: User) -> None:
    row = make_decision(cluster, verdict=Verdict.ALLOWED, eviction=Eviction.FAILED)
    again = partial(evictions.retry_failed, decision_id=row.pk, by=Actor.person(ada), now=NOW)
    results = race(again, again, again)
    assert (count(results, Decision), count(results, Conflict)) == (1, 2)


# --- asking -----------------------------------------------------------------------------------------------


def test_a_question_that_comes_many_times_at_once_is_one_decision(cluster: Cluster) -> None:
    ask = make_ask(cluster, pod_uid=UID, asker="caller:7", executor=Executor.ASKER)
    results = race(*[lambda: verdicts.record(ask=ask, now=NOW)] * 5)
    assert {result.decision.pk for result in results} == {Decision.objects.get().pk}
    assert Decision.objects.get().nominated_count == 5


def test_two_askers_approved_at_once_evict_once(cluster: Cluster, ada: User, viewer: User) -> None:
    for number in range(ROUNDS):
        mine = make_decision(cluster, pod_uid=f"u{number}")
        theirs = make_decision(cluster, pod_uid=f"u{number}", asker="caller:7")
        race(approver(mine, ada), approver(theirs, viewer))
        assert sorted([fresh(mine).eviction, fresh(theirs).eviction]) == [Eviction.NONE, Eviction.QUEUED]
        waits = mine if mine.eviction == Eviction.NONE else theirs
        assert waits.waits_for_id in {mine.pk, theirs.pk} - {waits.pk}


# --- a pod that goes --------------------------------------------------------------------------------------


def expirer(row: Decision) -> Callable[[], bool]:
    return lambda: verdicts.expire_one(row.pk, now=at(10))


def disarmer(row: Decision) -> Callable[[], Cluster]:
    return lambda: clusters.disarm(cluster=row.cluster, by=SYSTEM, now=NOW)


def taker(row: Decision) -> Callable[[], Decision]:
    by = Actor(name="grace")
    return lambda: verdicts.take_back(decision_id=row.pk, by=by, reason="no", now=NOW)


def worker(row: Decision) -> Callable[[], Eviction | None]:
    """One that hears that the pod is gone."""
    gone = EvictionResult("gone", EvictionCause.NOT_FOUND, "gone", Again.NO)
    return lambda: evictions.write_result(row.pk, 1, gone, now=NOW)


@pytest.mark.parametrize(
    ("racer", "status"),
    [
        (taker, Eviction.QUEUED),
        (disarmer, Eviction.QUEUED),
        (expirer, Eviction.QUEUED),
        (worker, Eviction.EVICTING),
    ],
)
def test_whoever_changes_one_of_a_pods_decisions_while_it_goes_waits_in_no_circle(
    cluster: Cluster, racer: Callable[[Decision], Callable[[], Any]], status: str
) -> None:
    for number in range(3 * ROUNDS):
        Cluster.objects.update(armed=True)
        uid = {"pod_uid": f"u{number}", "verdict": Verdict.ALLOWED}
        waits = make_decision(cluster, asker="caller:7", **uid)
        row = make_decision(cluster, eviction=status, attempt=1, lease_until=at(60), expires_at=at(10), **uid)
        Decision.objects.filter(pk=waits.pk).update(waits_for=row)
        results = race(
            racer(row), partial(evictions.pod_is_gone, cluster.pk, row.pod_uid, why="gone", now=NOW)
        )
        assert count(results, Exception) == count(results, Conflict), results
        evictions.pod_is_gone(cluster.pk, row.pod_uid, why="gone", now=NOW)
        assert not Decision.objects.filter(OPEN, pod_uid=row.pod_uid).exists()


def test_approving_one_for_a_pod_that_goes_waits_in_no_circle(cluster: Cluster, ada: User) -> None:
    for number in range(3 * ROUNDS):
        uid = f"u{number}"
        queued = make_decision(cluster, pod_uid=uid, verdict=Verdict.ALLOWED, eviction=Eviction.QUEUED)
        waits = make_decision(cluster, pod_uid=uid, asker="caller:7")
        results = race(
            approver(waits, ada),
            partial(evictions.pod_is_gone, cluster.pk, uid, why="gone", now=NOW),
        )
        assert count(results, Exception) == count(results, Conflict), results
        evictions.pod_is_gone(cluster.pk, uid, why="gone", now=NOW)
        assert (fresh(queued).eviction, fresh(waits).is_open) == (Eviction.GONE, False)


def test_nothing_is_recorded_behind_a_disarming(cluster: Cluster) -> None:
    _, token = register(cluster)
    for _ in range(2 * ROUNDS):
        Cluster.objects.update(armed=True)
        results = race(disarmer(make_decision(cluster)), lambda: ask(token))
        assert count(results, Exception) == 0, results
        assert not Decision.objects.filter(OPEN).exists()


def test_undoing_and_telling_never_leave_a_yes_that_is_none(cluster: Cluster, ada: User) -> None:
    for number in range(ROUNDS):
        row = approved(cluster, ada, pod_uid=f"u{number}", asker="caller:7", executor=Executor.ASKER)
        race(
            partial(verdicts.undo, decision_id=row.pk, by=SYSTEM, now=at(1)),
            partial(evictions.tell, row.pk, by=SYSTEM, now=at(1)),
        )
        assert (fresh(row).verdict, row.eviction) == (Verdict.PENDING, Eviction.NONE)


# --- workers ----------------------------------------------------------------------------------------------


def test_the_same_task_delivered_many_times_evicts_once(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    row = approved(cluster, ada)
    results = race(*[lambda: carry_out(cluster, clock)] * 4)
    assert sorted(results) == [0, 0, 0, 1]
    assert (fake.evicted, fresh(row).eviction, row.attempt) == ([UID], Eviction.ACCEPTED, 1)


def test_many_workers_carry_out_each_pod_once(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    cluster.overrides = {"in_flight_per_cluster": 50}
    cluster.save(update_fields=["overrides"])
    for number in range(8):
        fake.add(a_pod(f"bare-{number}", uid=f"b{number}", owner=None))
        approved(cluster, ada, pod_uid=f"b{number}", pod_name=f"bare-{number}", owner_uid="", forecast={})
    results = race(*[lambda: carry_out(cluster, clock)] * 4)
    while carry_out(cluster, clock):
        pass
    assert count(results, Exception) == 0
    assert sorted(fake.evicted) == [f"b{number}" for number in range(8)]


def test_workers_at_once_keep_to_the_owners_pace(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    for number in range(4):
        fake.add(a_pod(f"web-{number}", uid=f"w{number}"))
        approved(cluster, ada, pod_uid=f"w{number}", pod_name=f"web-{number}")
    race(*[lambda: carry_out(cluster, clock)] * 4)
    assert len(fake.evicted) == 1


def test_of_claims_at_once_for_one_owner_one_wins(cluster: Cluster, ada: User) -> None:
    for number in range(ROUNDS):
        owner = {"owner_uid": f"o{number}"}
        rows = [approved(cluster, ada, pod_uid=f"u{number}-{each}", **owner) for each in range(4)]
        claimed = race(*map(claimer, rows))
        assert sorted(claimed) == [0, 0, 0, 1]
        evictions.in_flight(cluster.pk).update(eviction=Eviction.GONE)


def test_workers_at_once_keep_to_the_clusters_pace(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    cluster.overrides = {"in_flight_per_cluster": 2}
    cluster.save(update_fields=["overrides"])
    for number in range(6):
        owner = {**OWNED, "name": f"rs-{number}", "uid": f"o{number}"}
        fake.add_owner(name=f"rs-{number}", uid=f"o{number}")
        fake.add(a_pod(f"web-{number}", uid=f"w{number}", owner=owner))
        approved(cluster, ada, pod_uid=f"w{number}", pod_name=f"web-{number}", owner_uid=f"o{number}")
    race(*[lambda: carry_out(cluster, clock)] * 4)
    assert len(fake.evicted) == 2


def test_a_freeze_lets_nothing_go_that_it_did_not_count(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    for number in range(ROUNDS):
        fake.add(a_pod(f"bare-{number}", uid=f"b{number}", owner=None))
        row = approved(
            cluster, ada, pod_uid=f"b{number}", pod_name=f"bare-{number}", owner_uid="", forecast={}
        )
        frozen, _ = race(
            lambda: freezes.freeze(cluster=cluster, by=SYSTEM, reason="incident", now=NOW),
            lambda: carry_out(cluster, clock),
        )
        assert fresh(row).eviction in {Eviction.QUEUED, Eviction.ACCEPTED}
        assert carry_out(cluster, clock) == 0
        freezes.lift(freeze_id=frozen.pk, by=SYSTEM, now=NOW)
        carry_out(cluster, clock)
        assert fresh(row).eviction == Eviction.ACCEPTED


# --- workers that die -------------------------------------------------------------------------------------


def killed(_: Any) -> None:
    raise Killed


def test_killed_between_the_claim_and_the_call(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    row = approved(cluster, ada)
    fake.at_send = killed
    with pytest.raises(Killed):
        carry_out(cluster, clock)
    assert (fresh(row).eviction, fake.sent) == (Eviction.EVICTING, [])
    fake.at_send = lambda _: None
    clock.advance(119)
    assert carry_out(cluster, clock, "w2") == 0
    clock.advance(1)
    assert carry_out(cluster, clock, "w2") == 1
    assert (fresh(row).eviction, row.attempt, fake.evicted) == (Eviction.ACCEPTED, 2, [UID])
    assert row.events.filter(kind=Event.LEASE_LOST).count() == 1


@pytest.mark.parametrize("after", [Eviction.ACCEPTED, Eviction.EVICTED])
def test_killed_between_the_call_and_its_record(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock, after: str
) -> None:
    row = approved(cluster, ada)
    fake.after_send = killed
    with pytest.raises(Killed):
        carry_out(cluster, clock)
    assert fresh(row).eviction == Eviction.EVICTING
    if after == Eviction.EVICTED:
        fake.remove(UID)
    clock.advance(120)
    assert carry_out(cluster, clock, "w2") == 0
    assert (fresh(row).eviction, row.unconfirmed, len(fake.sent)) == (after, True, 1)


def test_nobody_takes_it_back_meanwhile(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    row = approved(cluster, ada)
    fake.after_send = killed
    with pytest.raises(Killed):
        carry_out(cluster, clock)
    with pytest.raises(Conflict, match="Too late"):
        verdicts.take_back(decision_id=row.pk, by=Actor.person(ada), reason="no", now=at(1))
    assert verdicts.expire_due(now=at(10 * 3600)) == 0


def test_two_workers_that_find_a_lost_lease_settle_it_once(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    row = approved(cluster, ada)
    fake.after_send = killed
    with pytest.raises(Killed):
        carry_out(cluster, clock)
    clock.advance(120)
    race(*[lambda: carry_out(cluster, clock)] * 3)
    assert row.events.filter(kind=Event.LEASE_LOST).count() == 1
    assert (fresh(row).eviction, len(fake.sent)) == (Eviction.ACCEPTED, 1)


def test_a_worker_that_slept_through_its_lease_does_not_send(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    row = approved(cluster, ada)

    def sleeps(_: Any) -> None:
        fake.at_send = lambda _: None
        clock.advance(121)
        carry_out(cluster, clock, "w2")

    fake.at_send = sleeps
    carry_out(cluster, clock, "w1")
    assert (fake.evicted, fresh(row).eviction, row.claimed_by) == ([UID], Eviction.ACCEPTED, "w2")


# --- messages that are lost -------------------------------------------------------------------------------


def test_what_was_committed_and_never_enqueued_is_found(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    row = approved(cluster, ada)
    assert carryout.due_clusters(now=NOW) == [cluster.pk]
    carry_out(cluster, clock)
    assert fresh(row).eviction == Eviction.ACCEPTED
    assert carryout.due_clusters(now=NOW) == []


def test_many_looks_at_once_end_a_decision_once(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    row = approved(cluster, ada)
    carry_out(cluster, clock)
    fake.remove(UID)
    race(*[lambda: follow.follow(cluster.pk, clock=clock)] * 4)
    assert fresh(row).eviction == Eviction.EVICTED
    assert row.events.filter(kind=Event.EVICTED).count() == 1


def test_many_sweeps_at_once_expire_a_decision_once(cluster: Cluster) -> None:
    rows = [make_decision(cluster, expires_at=at(10)) for _ in range(5)]
    race(*[lambda: verdicts.expire_due(now=at(10))] * 4)
    for row in rows:
        assert (fresh(row).verdict, row.unanswered) == (Verdict.EXPIRED, 1)
        assert row.events.filter(kind=Event.EXPIRED).count() == 1
