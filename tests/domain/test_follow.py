"""Following: pods that went, that stay too long, and what came in their place."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from decisions.models import Cluster, Decision, Event, Eviction, Executor, Verdict
from decisions.services import follow
from deschedui.kube.errors import TimedOut
from tests.builders import NOW, at, make_decision
from tests.domain.fake_cluster import OWNED, FakeClock, FakeCluster, a_pod, using
from tests.domain.test_evictions import allowed

pytestmark = pytest.mark.django_db
UID = "u1"
MARK = {"descheduler.alpha.kubernetes.io/eviction-in-progress": ""}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def fake() -> Iterator[FakeCluster]:
    fake = FakeCluster()
    fake.add_owner()
    with using(fake):
        yield fake


def look(cluster: Cluster, clock: FakeClock) -> int:
    """One look, whenever the last one was."""
    Cluster.objects.update(next_follow_at=None)
    return follow.follow(cluster.pk, clock=clock)


def fresh(row: Decision) -> Decision:
    row.refresh_from_db()
    return row


def born(seconds: float, name: str = "web-new", **fields: Any) -> Any:
    """A pod of the ReplicaSet, made so many seconds after NOW."""
    return a_pod(name, **{"uid": "new", "age": timedelta(seconds=-seconds), **fields})


# --- gone -------------------------------------------------------------------------------------------------


def test_a_pending_decision_is_withdrawn_when_its_pod_is_gone(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    row = make_decision(cluster, pod_uid=UID)
    look(cluster, clock)
    assert fresh(row).verdict == Verdict.WITHDRAWN
    assert row.events.get().reason == "the pod is gone"


def test_a_pod_that_was_replaced_under_its_name_counts_as_gone(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    row = make_decision(cluster, pod_uid=UID)
    fake.add(a_pod(uid="another"))
    look(cluster, clock)
    assert row.events.get().reason == "the pod was replaced by another of its name"


def test_a_pod_that_is_there_changes_nothing(cluster: Cluster, fake: FakeCluster, clock: FakeClock) -> None:
    row = make_decision(cluster, pod_uid=UID)
    fake.add(a_pod(uid=UID))
    assert look(cluster, clock) == 0
    assert fresh(row).verdict == Verdict.PENDING


def test_a_pod_that_only_the_list_misses_is_not_gone(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    row = make_decision(cluster, pod_uid=UID)
    fake.add(a_pod(uid=UID))
    fake.hidden_from_lists.add(UID)
    look(cluster, clock)
    assert fresh(row).verdict == Verdict.PENDING


def test_all_who_asked_for_the_pod_hear_of_it(cluster: Cluster, fake: FakeCluster, clock: FakeClock) -> None:
    ours = allowed(cluster, Eviction.ACCEPTED, pod_uid=UID)
    theirs = make_decision(cluster, pod_uid=UID, asker="caller:7")
    assert look(cluster, clock) == 2
    assert (fresh(ours).eviction, fresh(theirs).verdict) == (Eviction.EVICTED, Verdict.WITHDRAWN)


def test_a_list_that_fails_ends_nothing(cluster: Cluster, fake: FakeCluster, clock: FakeClock) -> None:
    row = make_decision(cluster, pod_uid=UID)
    fake.broken = TimedOut("list pods: no complete answer within 60 s")
    assert look(cluster, clock) == 0
    cluster.refresh_from_db()
    assert (fresh(row).verdict, cluster.problem[:9]) == (Verdict.PENDING, "list pods")


def test_a_name_that_no_pod_can_have_does_not_stop_the_look(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    odd = make_decision(cluster, pod_uid="odd", namespace="../..", pod_name="%2e")
    row = make_decision(cluster, pod_uid=UID)
    look(cluster, clock)
    assert [fresh(each).verdict for each in (odd, row)] == [Verdict.WITHDRAWN] * 2


def test_one_list_serves_everything_that_is_open(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    for number in range(5):
        fake.add(a_pod(f"web-{number}", uid=f"u{number}"))
        make_decision(cluster, pod_uid=f"u{number}", pod_name=f"web-{number}")
    look(cluster, clock)
    assert fake.reads == ["version", "list pods"]


def test_a_cluster_with_nothing_open_is_not_asked(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    make_decision(cluster, pod_uid=UID, verdict=Verdict.DENIED)
    look(cluster, clock)
    assert fake.reads == []
    assert follow.due_clusters(now=NOW) == []


def test_two_looks_at_once_are_one(cluster: Cluster, fake: FakeCluster, clock: FakeClock) -> None:
    make_decision(cluster, pod_uid=UID)
    follow.follow(cluster.pk, clock=clock)
    fake.reads.clear()
    follow.follow(cluster.pk, clock=clock)
    assert fake.reads == []


def test_a_look_is_due_again_in_time(cluster: Cluster, fake: FakeCluster, clock: FakeClock) -> None:
    fake.add(a_pod(uid=UID))
    make_decision(cluster, pod_uid=UID)
    follow.follow(cluster.pk, clock=clock)
    assert follow.due_clusters(now=at(9)) == []
    assert follow.due_clusters(now=at(15)) == [cluster.pk]


def test_while_a_pod_is_on_its_way_a_look_is_due_sooner(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    allowed(cluster, Eviction.ACCEPTED, pod_uid=UID, accepted_at=NOW)
    fake.add(a_pod(uid=UID))
    follow.follow(cluster.pk, clock=clock)
    assert follow.due_clusters(now=at(2)) == [cluster.pk]


def test_what_hangs_is_not_looked_at_more_often(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    allowed(cluster, Eviction.ACCEPTED, pod_uid=UID, accepted_at=at(-601))
    fake.add(a_pod(uid=UID))
    follow.follow(cluster.pk, clock=clock)
    assert follow.due_clusters(now=at(9)) == []


def test_the_servers_version_is_noted(cluster: Cluster, fake: FakeCluster, clock: FakeClock) -> None:
    make_decision(cluster, pod_uid=UID)
    look(cluster, clock)
    cluster.refresh_from_db()
    assert (cluster.server_version, cluster.contacted_at) == ("v1.37.2", NOW)


# --- still there ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"eviction": Eviction.ACCEPTED, "accepted_at": NOW}, "still terminating"),
        (
            {"eviction": Eviction.DELEGATED, "executor": Executor.ASKER, "told_at": NOW},
            "not evicted by its caller",
        ),
    ],
)
def test_after_ten_minutes_it_is_said_once_that_the_pod_is_still_there(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock, fields: dict[str, Any], says: str
) -> None:
    row = allowed(cluster, **{"pod_uid": UID, "expires_at": at(9999), **fields})
    fake.add(a_pod(uid=UID))
    fake.terminate(UID)
    clock.advance(599)
    look(cluster, clock)
    assert row.events.count() == 0
    for _ in range(3):
        clock.advance(60)
        look(cluster, clock)
    assert [(line.kind, line.reason) for line in row.events.all()] == [(Event.STILL_THERE, says)]


def test_told_again_it_is_said_again(cluster: Cluster, fake: FakeCluster, clock: FakeClock) -> None:
    told: dict[str, Any] = {"executor": Executor.ASKER, "told_at": NOW, "expires_at": at(9999)}
    row = allowed(cluster, Eviction.DELEGATED, pod_uid=UID, **told)
    fake.add(a_pod(uid=UID))
    clock.advance(600)
    look(cluster, clock)
    Decision.objects.update(told_at=at(700))
    clock.advance(700)
    look(cluster, clock)
    assert row.events.filter(kind=Event.STILL_THERE).count() == 2


def test_accepted_and_not_even_ending_is_told_apart(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    row = allowed(cluster, Eviction.ACCEPTED, pod_uid=UID, accepted_at=at(-600))
    fake.add(a_pod(uid=UID))
    look(cluster, clock)
    assert row.events.get().reason == "accepted by the API server, and not terminating"


# --- in background ----------------------------------------------------------------------------------------


def test_somebodys_mark_is_noted_once(cluster: Cluster, fake: FakeCluster, clock: FakeClock) -> None:
    row = allowed(cluster, Eviction.IN_BACKGROUND, pod_uid=UID, accepted_at=NOW)
    fake.add(a_pod(uid=UID, annotations={"descheduler.alpha.kubernetes.io/eviction-in-progress": "true"}))
    look(cluster, clock)
    look(cluster, clock)
    assert row.events.get().reason == "somebody has begun to move it"


def test_a_mark_that_has_gone_queues_it_again(cluster: Cluster, fake: FakeCluster, clock: FakeClock) -> None:
    row = allowed(cluster, Eviction.IN_BACKGROUND, pod_uid=UID, accepted_at=NOW)
    fake.add(a_pod(uid=UID, annotations={"descheduler.alpha.kubernetes.io/eviction-in-progress": "true"}))
    look(cluster, clock)
    fake.add(a_pod(uid=UID))
    look(cluster, clock)
    assert fresh(row).eviction == Eviction.QUEUED


def test_without_a_mark_nobody_started_it(cluster: Cluster, fake: FakeCluster, clock: FakeClock) -> None:
    row = allowed(cluster, Eviction.IN_BACKGROUND, pod_uid=UID, accepted_at=NOW)
    fake.add(a_pod(uid=UID))
    clock.advance(599)
    look(cluster, clock)
    assert fresh(row).eviction == Eviction.IN_BACKGROUND
    clock.advance(1)
    look(cluster, clock)
    assert fresh(row).eviction == Eviction.FAILED
    assert row.events.get().reason.startswith("nobody started it")


def test_moved_in_the_background_it_ends_as_evicted(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    row = allowed(cluster, Eviction.IN_BACKGROUND, pod_uid=UID, accepted_at=NOW)
    look(cluster, clock)
    assert fresh(row).eviction == Eviction.EVICTED


# --- replacements -----------------------------------------------------------------------------------------


def evicted(cluster: Cluster, **fields: Any) -> Decision:
    """An evicted pod whose replacement is still to come."""
    return allowed(
        cluster, Eviction.EVICTED, **{"pod_uid": UID, "accepted_at": NOW, "ended_at": NOW, **fields}
    )


def test_the_replacement_is_seen_with_its_node(cluster: Cluster, fake: FakeCluster, clock: FakeClock) -> None:
    row = evicted(cluster)
    fake.add(born(3, node="n2", ready=False))
    look(cluster, clock)
    assert (fresh(row).replacement_name, row.replacement_node, row.settled_at) == ("web-new", "n2", None)
    assert row.events.get().reason == "web-new on n2"


def test_the_pace_goes_on_when_it_is_ready(cluster: Cluster, fake: FakeCluster, clock: FakeClock) -> None:
    row = evicted(cluster)
    fake.add(born(3, node="n2", ready=False))
    look(cluster, clock)
    fake.add(born(3, node="n2"))
    clock.advance(12)
    look(cluster, clock)
    assert (fresh(row).replacement_seen_at, row.replacement_ready_at, row.settled_at) == (NOW, at(12), at(12))
    assert [line.reason for line in row.events.all()] == ["web-new on n2", "web-new on n2, Ready"]


def test_an_old_sibling_is_no_replacement(cluster: Cluster, fake: FakeCluster, clock: FakeClock) -> None:
    row = evicted(cluster)
    fake.add(a_pod("web-old", uid="old"))
    look(cluster, clock)
    assert (fresh(row).replacement_uid, row.settled_at) == ("", None)


def test_a_young_sibling_is_no_replacement_by_the_api_servers_clock(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    row = evicted(cluster, server_accepted_at=at(1))
    fake.add(born(-3, "web-sibling"))
    look(cluster, clock)
    assert (fresh(row).replacement_uid, row.settled_at) == ("", None)


def test_of_several_young_pods_the_youngest_is_the_replacement(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    row = evicted(cluster)
    fake.add(born(-3, "web-a-sibling", uid="sibling"))
    fake.add(born(1, "web-b", ready=False))
    look(cluster, clock)
    assert (fresh(row).replacement_uid, row.settled_at) == ("new", None)


def test_one_pod_replaces_one_pod(cluster: Cluster, fake: FakeCluster, clock: FakeClock) -> None:
    first = evicted(cluster)
    second = evicted(cluster, pod_uid="u2", pod_name="web-2")
    fake.add(born(3))
    look(cluster, clock)
    assert [fresh(row).replacement_uid for row in (first, second)] == ["new", ""]


def test_a_stateful_pod_is_replaced_by_the_one_of_its_name(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    row = evicted(cluster, pod_name="db-0")
    fake.add(born(1, "db-3", uid="scaled-up"))
    fake.add(born(5, "db-0", uid="same-name"))
    look(cluster, clock)
    assert fresh(row).replacement_uid == "same-name"


def test_a_replacement_that_went_before_it_was_ready_is_replaced(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    row = evicted(cluster)
    fake.add(born(3, ready=False))
    look(cluster, clock)
    fake.remove("new")
    fake.add(born(30, "web-newer", uid="newer"))
    look(cluster, clock)
    assert (fresh(row).replacement_uid, row.settled_at) == ("newer", NOW)


def test_an_owner_that_wants_no_more_pods_is_waited_for_no_longer(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    row = evicted(cluster)
    fake.add(a_pod("web-old", uid="old"))
    fake.set_ready(1, desired=1)
    look(cluster, clock)
    assert fresh(row).settled_at == NOW
    assert row.events.get().reason == "ReplicaSet web-5fc9 wants no more pods than the 1 that it has"


@pytest.mark.parametrize("unready", [{"phase": "Failed"}, {"ready": False}])
def test_what_does_not_serve_is_none_of_the_pods_that_it_has(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock, unready: dict[str, Any]
) -> None:
    row = evicted(cluster)
    fake.add(a_pod("web-old", uid="old"))
    fake.add(a_pod("web-other", uid="other", **unready))
    fake.set_ready(1, desired=2)
    look(cluster, clock)
    assert fresh(row).settled_at is None


def test_an_owner_that_is_gone_is_waited_for_no_longer(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    row = evicted(cluster)
    fake.owners.clear()
    look(cluster, clock)
    assert fresh(row).settled_at == NOW


def test_a_job_whose_new_pod_has_finished_is_done(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    row = evicted(cluster)
    fake.add(born(3, ready=False, phase="Succeeded"))
    look(cluster, clock)
    assert fresh(row).replacement_ready_at == NOW


def test_what_a_caller_evicted_is_looked_after_for_an_hour(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    row = evicted(cluster, executor=Executor.ASKER)
    clock.advance(3599)
    look(cluster, clock)
    assert fresh(row).settled_at is None
    clock.advance(1)
    look(cluster, clock)
    assert fresh(row).settled_at == at(3600)


def test_a_pod_of_another_owner_is_no_replacement(
    cluster: Cluster, fake: FakeCluster, clock: FakeClock
) -> None:
    row = evicted(cluster)
    fake.add(born(3, owner={**OWNED, "uid": "another-rs"}))
    look(cluster, clock)
    assert fresh(row).replacement_uid == ""
