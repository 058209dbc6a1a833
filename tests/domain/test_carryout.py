"""Carrying out one eviction: what is read, what is asked, what is written, and everything that stops it."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User

from decisions.models import Cluster, Decision, DecisionEvent, Event, Eviction, Rule, Verdict
from decisions.services import carryout, evictions, freezes, verdicts
from decisions.services.actors import SYSTEM, Actor
from deschedui.kube.client import PodView
from deschedui.kube.errors import Forbidden, Throttled, TimedOut, Unauthorized
from tests.builders import NOW, at, make_decision
from tests.domain import fake_cluster
from tests.domain.fake_cluster import FakeClock, FakeCluster, a_pod, using

pytestmark = pytest.mark.django_db
UID = "3f6c1f0e-6a2b-4a54-9c1e-0d5b7b1a0001"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def fake() -> Iterator[FakeCluster]:
    """A cluster with the pod and its ReplicaSet, three of three ready."""
    fake = FakeCluster()
    fake.add_owner()
    fake.add(a_pod(uid=UID))
    with using(fake):
        yield fake


def approved(cluster: Cluster, ada: User, **fields: Any) -> Decision:
    """A decision that Ada approved and that is queued."""
    row = make_decision(cluster, **{"pod_uid": UID, **fields})
    return verdicts.approve(decision_id=row.pk, version=1, by=Actor.person(ada), undo_seconds=0, now=NOW)


def carry_out(cluster: Cluster, clock: FakeClock) -> int:
    return carryout.carry_out(cluster.pk, worker="w1", clock=clock)


def status_of(row: Decision) -> tuple[str, str]:
    row.refresh_from_db()
    return row.verdict, row.eviction


def kinds_of(row: Decision) -> list[str]:
    return [event.kind for event in row.events.all()]


def test_an_approved_pod_is_evicted_by_its_uid(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    row = approved(cluster, ada)
    assert carry_out(cluster, clock) == 1
    assert [sent.uid for sent in fake.sent] == [UID]
    assert status_of(row) == (Verdict.ALLOWED, Eviction.ACCEPTED)


def test_the_api_server_is_told_who_approved_it_and_why(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    approved(cluster, ada, grace_period_seconds=30)
    carry_out(cluster, clock)
    [sent] = fake.sent
    assert sent.annotations["reason"].endswith("at most 24h; approved by ada")
    assert sent.grace_period_seconds == 30


def test_the_pod_gets_an_event(cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock) -> None:
    row = approved(cluster, ada)
    carry_out(cluster, clock)
    [event] = fake.events
    assert (event.uid, event.reason) == (UID, "EvictionApproved")
    assert f"approved by ada (decision {row.pk})" in event.note


def test_only_the_pod_its_owner_and_its_namespaces_pdbs_are_read(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    approved(cluster, ada)
    carry_out(cluster, clock)
    assert fake.reads == ["pod shop/web-5fc9-kdpx9", "owner shop/ReplicaSet/web-5fc9", "pdbs shop"]


def test_the_timeline_tells_the_whole_story(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    row = approved(cluster, ada)
    carry_out(cluster, clock)
    assert kinds_of(row) == [Event.APPROVED, Event.QUEUED, Event.TRIED, Event.ACCEPTED]


# --- what stops it ----------------------------------------------------------------------------------------


def test_a_pod_that_is_gone_is_not_evicted(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    row = approved(cluster, ada)
    fake.remove(UID)
    carry_out(cluster, clock)
    assert fake.sent == []
    assert status_of(row) == (Verdict.ALLOWED, Eviction.GONE)


def test_a_new_pod_of_the_old_name_is_not_evicted(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    row = approved(cluster, ada)
    fake.add(a_pod(uid="another"))
    carry_out(cluster, clock)
    assert (fake.sent, status_of(row)[1]) == ([], Eviction.GONE)
    assert "replaced before the eviction" in row.message


def test_a_pod_that_is_ending_is_neither_evicted_nor_counted(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    row = approved(cluster, ada)
    fake.terminate(UID)
    carry_out(cluster, clock)
    assert (fake.sent, status_of(row)[1], row.accepted_at) == ([], Eviction.GONE, None)


def test_fewer_ready_replicas_ask_again_and_say_the_difference(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    row = approved(cluster, ada)
    fake.set_ready(2)
    carry_out(cluster, clock)
    assert (fake.sent, status_of(row)) == ([], (Verdict.PENDING, Eviction.NONE))
    assert row.expires_at == at(3600)
    event = row.events.get(kind=Event.BACK_TO_PENDING)
    assert event.detail["changes"] == {"ready replicas": ["3 of 3", "2 of 3"]}


@pytest.mark.parametrize("status", [Eviction.DELEGATED, Eviction.ACCEPTED, Eviction.EVICTED])
def test_a_sibling_that_its_own_decision_took_is_moved_not_lost(
    status: Eviction, cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    row = approved(cluster, ada)
    taken = {"eviction": status, "verdict": Verdict.ALLOWED, "ended_at": at(1), "settled_at": at(1)}
    make_decision(cluster, pod_uid="sibling", asker="caller:1", executor="asker", **taken)
    fake.set_ready(2)
    carry_out(cluster, clock)
    assert status_of(row)[1] == Eviction.ACCEPTED


def test_a_sibling_whose_replacement_is_ready_is_no_excuse(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    row = approved(cluster, ada)
    ended = {"ended_at": at(1), "settled_at": at(1), "replacement_ready_at": at(2)}
    make_decision(cluster, pod_uid="sibling", verdict=Verdict.ALLOWED, eviction=Eviction.EVICTED, **ended)
    fake.set_ready(2)
    clock.advance(60)
    carry_out(cluster, clock)
    assert status_of(row)[0] == Verdict.PENDING


def test_a_ready_replacement_that_its_owner_has_not_counted_yet_is_waited_for(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    row = approved(cluster, ada)
    ready = {"ended_at": at(-9), "settled_at": at(-1), "replacement_ready_at": at(-1)}
    make_decision(cluster, pod_uid="sibling", verdict=Verdict.ALLOWED, eviction=Eviction.EVICTED, **ready)
    fake.set_ready(2)
    carry_out(cluster, clock)
    assert (fake.sent, status_of(row), row.not_before) == ([], (Verdict.ALLOWED, Eviction.QUEUED), at(2))
    fake.set_ready(3)
    clock.advance(2)
    carry_out(cluster, clock)
    assert status_of(row)[1] == Eviction.ACCEPTED


def test_a_sibling_that_left_before_the_numbers_were_read_makes_up_for_nothing(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    row = approved(cluster, ada, nominated_at=at(-10), forecast={"ready": 3, "desired": 4})
    left = {"accepted_at": at(-60), "settled_at": at(-1), "verdict": Verdict.ALLOWED}
    make_decision(cluster, pod_uid="sibling", eviction=Eviction.ACCEPTED, **left)
    fake.set_ready(2, desired=4)
    carry_out(cluster, clock)
    assert (fake.sent, status_of(row)[0]) == ([], Verdict.PENDING)


def test_the_numbers_are_as_old_as_the_listing_not_as_the_nomination(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    shown = {"ready": 3, "desired": 3, "read_at": at(-120).isoformat()}
    row = approved(cluster, ada, nominated_at=at(-10), forecast=shown)
    left = {"accepted_at": at(-60), "settled_at": at(-1), "verdict": Verdict.ALLOWED}
    make_decision(cluster, pod_uid="sibling", eviction=Eviction.ACCEPTED, **left)
    fake.set_ready(2)
    carry_out(cluster, clock)
    assert status_of(row)[1] == Eviction.ACCEPTED


def test_a_second_yes_is_one_to_the_difference_that_was_shown(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    row = approved(cluster, ada)
    fake.set_ready(2)
    carry_out(cluster, clock)
    row.refresh_from_db()
    assert row.forecast["ready"] == 2
    again = Actor.person(ada)
    verdicts.approve(decision_id=row.pk, version=row.version, by=again, undo_seconds=0, now=at(1))
    clock.advance(1)
    carry_out(cluster, clock)
    assert status_of(row)[1] == Eviction.ACCEPTED


def test_a_deployment_in_a_rollout_is_measured_by_the_pods_own_replica_set(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    both = {"ready": 3, "desired": 4, "owner_ready": 2, "owner_desired": 2}
    row = approved(cluster, ada, forecast=both)
    fake.set_ready(2, desired=2)
    carry_out(cluster, clock)
    assert status_of(row)[1] == Eviction.ACCEPTED


def test_an_owner_that_is_gone_asks_again(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    row = approved(cluster, ada)
    fake.owners.clear()
    carry_out(cluster, clock)
    assert status_of(row)[0] == Verdict.PENDING
    assert "does not exist any more" in row.events.get(kind=Event.BACK_TO_PENDING).reason


def test_an_approver_who_lost_the_right_is_no_approver(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    row = approved(cluster, ada)
    ada.role_bindings.all().delete()
    carry_out(cluster, clock)
    assert (fake.sent, status_of(row)[0]) == ([], Verdict.PENDING)
    assert "ada may no longer decide here" in row.events.get(kind=Event.BACK_TO_PENDING).reason


def test_what_nobody_approved_needs_nobodys_right(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    row = make_decision(
        cluster,
        pod_uid=UID,
        verdict=Verdict.ALLOWED,
        rule=Rule.UNATTENDED,
        decided_at=NOW,
        expires_at=at(900),
    )
    evictions.queue(row.pk, not_before=NOW, now=NOW)
    carry_out(cluster, clock)
    assert status_of(row)[1] == Eviction.ACCEPTED


# --- freezes ----------------------------------------------------------------------------------------------


def test_a_freeze_holds_the_claim(cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock) -> None:
    row = approved(cluster, ada)
    freezes.freeze(cluster=cluster, by=SYSTEM, reason="incident", now=NOW)
    assert carry_out(cluster, clock) == 0
    assert (fake.reads, status_of(row)[1]) == ([], Eviction.QUEUED)


@pytest.mark.parametrize("everything", [True, False])
def test_a_freeze_between_claim_and_call_holds_the_call(
    everything: bool, cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    row = approved(cluster, ada)
    what = None if everything else cluster
    fake.at_send = lambda _: freezes.freeze(cluster=what, by=SYSTEM, reason="incident", now=NOW)
    carry_out(cluster, clock)
    assert (fake.sent, status_of(row)[1]) == ([], Eviction.QUEUED)
    assert row.message == "frozen by deschedui: incident"


def test_a_lifted_freeze_lets_it_go(cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock) -> None:
    row = approved(cluster, ada)
    frozen = freezes.freeze(cluster=None, by=SYSTEM, reason="incident", now=NOW)
    freezes.lift(freeze_id=frozen.pk, by=SYSTEM, now=NOW)
    carry_out(cluster, clock)
    assert status_of(row)[1] == Eviction.ACCEPTED


def test_a_freeze_of_another_cluster_holds_nothing(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    row = approved(cluster, ada)
    other = Cluster.objects.create(name="other")
    freezes.freeze(cluster=other, by=SYSTEM, reason="incident", now=NOW)
    carry_out(cluster, clock)
    assert status_of(row)[1] == Eviction.ACCEPTED


def test_disarming_between_claim_and_call_holds_the_call(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    row = approved(cluster, ada)
    fake.at_send = lambda _: Cluster.objects.update(armed=False)
    carry_out(cluster, clock)
    assert (fake.sent, status_of(row)[1], row.message) == ([], Eviction.QUEUED, "the cluster was disarmed")


def test_a_call_that_would_outlast_its_lease_is_not_sent(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    row = approved(cluster, ada)
    fake.at_send = lambda _: clock.advance(91)
    carry_out(cluster, clock)
    assert (fake.sent, status_of(row)[1]) == ([], Eviction.QUEUED)
    assert "too little of its time" in row.events.filter(kind=Event.REQUEUED)[0].reason


# --- a cluster that cannot be used ------------------------------------------------------------------------


def test_a_cluster_that_does_not_answer_costs_nothing_but_time(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    row = approved(cluster, ada)
    fake.broken = TimedOut("read pod shop/web: no complete answer within 10 s")
    carry_out(cluster, clock)
    cluster.refresh_from_db()
    assert status_of(row) == (Verdict.ALLOWED, Eviction.QUEUED)
    assert (row.not_before, row.failures) == (at(30), 0)
    assert "no complete answer within 10 s" in cluster.problem


def test_refused_credentials_are_the_clusters_problem(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    row = approved(cluster, ada)
    fake.broken = Unauthorized("read pod: the cluster's credentials were refused (401)", status=401)
    carry_out(cluster, clock)
    cluster.refresh_from_db()
    assert status_of(row)[1] == Eviction.QUEUED
    assert "credentials were refused" in cluster.problem
    assert cluster.problem_since == NOW


def test_the_problem_ends_with_the_next_answer(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    Cluster.objects.update(problem="no route", problem_since=at(-60))
    approved(cluster, ada)
    carry_out(cluster, clock)
    cluster.refresh_from_db()
    assert (cluster.problem, cluster.problem_since, cluster.contacted_at) == ("", None, NOW)


def test_a_throttled_read_slows_the_whole_cluster(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    approved(cluster, ada)
    fake.broken = Throttled("slow down", retry_after=20)
    carry_out(cluster, clock)
    cluster.refresh_from_db()
    assert cluster.throttled_until == at(20)


def test_a_throttled_cluster_is_left_alone_until_then(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    row = approved(cluster, ada)
    Cluster.objects.update(throttled_until=at(20))
    assert carry_out(cluster, clock) == 0
    clock.advance(20)
    assert carry_out(cluster, clock) == 1
    assert status_of(row)[1] == Eviction.ACCEPTED


def test_a_read_that_is_forbidden_fails_and_says_which_right_is_missing(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    row = approved(cluster, ada)
    fake.broken = Forbidden("read pod: forbidden; grant get on pods", verb="get", resource="pods")
    carry_out(cluster, clock)
    assert (status_of(row)[1], row.cause) == (Eviction.FAILED, "rbac")
    assert "grant get on pods" in row.message


# --- order and amount -------------------------------------------------------------------------------------


def test_an_approval_waits_for_its_undo_time(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    row = make_decision(cluster, pod_uid=UID)
    verdicts.approve(decision_id=row.pk, version=1, by=Actor.person(ada), undo_seconds=5, now=NOW)
    assert carry_out(cluster, clock) == 0
    clock.advance(5)
    assert carry_out(cluster, clock) == 1


def test_an_expired_approval_is_not_carried_out(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    approved(cluster, ada)
    clock.advance(4 * 3600)
    assert carry_out(cluster, clock) == 0
    assert fake.sent == []


def test_carrying_out_starts_the_time_of_an_approval(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    row = approved(cluster, ada)
    assert row.expires_at == at(4 * 3600)
    clock.advance(3600)
    carry_out(cluster, clock)
    row.refresh_from_db()
    assert (row.released_at, row.expires_at) == (at(3600), at(3600 + 900))


def test_the_time_of_an_approval_never_grows(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    row = approved(cluster, ada)
    clock.advance(4 * 3600 - 60)
    carry_out(cluster, clock)
    row.refresh_from_db()
    assert row.expires_at == at(4 * 3600)


def test_of_one_owner_one_goes_at_a_time(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    first = approved(cluster, ada)
    fake.add(a_pod("web-2", uid="u2"))
    second = approved(cluster, ada, pod_uid="u2", pod_name="web-2")
    assert carry_out(cluster, clock) == 1
    assert (status_of(first)[1], status_of(second)[1]) == (Eviction.ACCEPTED, Eviction.QUEUED)


def test_pods_of_different_owners_do_not_wait_for_each_other(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    approved(cluster, ada)
    fake.add(a_pod("api-1", uid="u2", owner={**fake_cluster.OWNED, "name": "api", "uid": "api-uid"}))
    fake.add_owner(name="api", uid="api-uid")
    approved(cluster, ada, pod_uid="u2", pod_name="api-1", owner_uid="api-uid", owner_name="api")
    assert carry_out(cluster, clock) == 2


def test_a_cluster_lets_only_so_many_fly(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    cluster.overrides = {"in_flight_per_cluster": 2}
    cluster.save(update_fields=["overrides"])
    for number in range(3):
        fake.add(a_pod(f"bare-{number}", uid=f"b{number}", owner=None))
        approved(cluster, ada, pod_uid=f"b{number}", pod_name=f"bare-{number}", owner_uid="", forecast={})
    assert carry_out(cluster, clock) == 2


def test_running_it_again_does_nothing(
    cluster: Cluster, ada: User, fake: FakeCluster, clock: FakeClock
) -> None:
    approved(cluster, ada)
    carry_out(cluster, clock)
    assert carry_out(cluster, clock) == 0
    assert fake.evicted == [UID]


def test_carrying_out_says_nothing_where_nothing_is_due(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    assert carry_out(cluster, clock) == 0
    assert DecisionEvent.objects.count() == 0


class OneIsHidden(FakeCluster):
    """A cluster in which one pod may not be read."""

    def read_pod(self, namespace: str, name: str) -> PodView | None:
        if name == "hidden":
            raise Forbidden("get pods: forbidden")
        return super().read_pod(namespace, name)


def test_a_pod_that_may_not_be_read_holds_up_no_other_whose_lease_ran_out(
    cluster: Cluster, clock: FakeClock
) -> None:
    lost = {"verdict": Verdict.ALLOWED, "eviction": Eviction.EVICTING, "attempt": 1, "lease_until": at(-1)}
    rows = [make_decision(cluster, pod_uid=name, pod_name=name, **lost) for name in ("hidden", "seen")]
    with using(OneIsHidden()):
        carry_out(cluster, clock)
    assert [status_of(row)[1] for row in rows] == [Eviction.EVICTING, Eviction.EVICTED]
