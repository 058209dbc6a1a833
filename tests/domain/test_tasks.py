"""Tasks and ticks: what beat hands out, to whom, and that nothing depends on a message arriving."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from decisions import tasks
from decisions.models import Cluster, Decision, Eviction, Heartbeat, PolicyVersion, Verdict
from decisions.queries import workers
from decisions.services import heartbeats, nudge, ticks
from deschedui.celery import app
from tests.builders import NOW, at, make_cluster, make_decision
from tests.domain.fake_cluster import FakeClock, FakeCluster, a_pod, using
from tests.domain.test_evictions import allowed

pytestmark = pytest.mark.django_db


@pytest.fixture
def queue() -> Iterator[Any]:
    """The broker's queue, empty at first; what is in it are (task, arguments)."""
    with app.connection_for_read() as broker, broker.SimpleQueue("deschedui") as simple:
        simple.clear()
        yield simple
        simple.clear()


def messages(queue: Any) -> list[tuple[str, list[Any]]]:
    found: list[tuple[str, list[Any]]] = []
    while True:
        try:
            message = queue.get_nowait()
        except queue.Empty:
            return sorted(found)
        message.ack()
        found.append((message.headers["task"].removeprefix("decisions.tasks."), message.payload[0]))


@pytest.fixture
def tick(django_capture_on_commit_callbacks: Any) -> Any:
    """One tick, with what it commits."""

    def run(clock: FakeClock) -> None:
        with django_capture_on_commit_callbacks(execute=True):
            ticks.tick(worker="celery@w1", clock=clock)

    return run


def test_a_tick_hands_out_what_is_due(cluster: Cluster, queue: Any, tick: Any) -> None:
    allowed(cluster, Eviction.QUEUED, not_before=NOW)
    tick(FakeClock())
    assert messages(queue) == [("carry_out", [cluster.pk]), ("follow", [cluster.pk])]


def test_a_tick_with_nothing_due_sends_nothing(cluster: Cluster, queue: Any, tick: Any) -> None:
    tick(FakeClock())
    assert messages(queue) == []


def test_each_cluster_gets_its_own_task(cluster: Cluster, queue: Any, tick: Any) -> None:
    other = make_cluster("other")
    for each in (cluster, other):
        allowed(each, Eviction.QUEUED)
    tick(FakeClock())
    sent = [arguments for task, arguments in messages(queue) if task == "carry_out"]
    assert sent == [[cluster.pk], [other.pk]]


def test_a_lease_that_ran_out_is_handed_out(cluster: Cluster, queue: Any, tick: Any) -> None:
    allowed(cluster, Eviction.EVICTING, lease_until=at(-1))
    tick(FakeClock())
    assert ("carry_out", [cluster.pk]) in messages(queue)


def test_a_tick_expires_what_nobody_answered(cluster: Cluster, queue: Any, tick: Any) -> None:
    row = make_decision(cluster, expires_at=NOW)
    tick(FakeClock())
    row.refresh_from_db()
    assert row.verdict == Verdict.EXPIRED


def test_a_tick_withdraws_what_came_back_after_a_disarming(cluster: Cluster, queue: Any, tick: Any) -> None:
    row = allowed(cluster, Eviction.QUEUED, message="the cluster was disarmed")
    Cluster.objects.update(armed=False)
    tick(FakeClock())
    row.refresh_from_db()
    assert (row.verdict, row.eviction) == (Verdict.WITHDRAWN, Eviction.NONE)
    assert row.events.get().reason == "the cluster only observes"


def test_a_tick_queues_the_blocked_whose_time_has_come(cluster: Cluster, queue: Any, tick: Any) -> None:
    allowed(cluster, Eviction.BLOCKED, not_before=NOW)
    tick(FakeClock())
    assert Decision.objects.get().eviction == Eviction.QUEUED
    assert ("carry_out", [cluster.pk]) in messages(queue)


def test_a_tick_starts_the_cycle_that_is_due(cluster: Cluster, queue: Any, tick: Any) -> None:
    PolicyVersion.objects.create(
        cluster=cluster, number=1, text="", digest="", valid=True, source="test", created_at=NOW
    )
    tick(FakeClock())
    cycle = cluster.cycles.get()
    assert ("run_cycle", [cycle.pk]) in messages(queue)


def test_two_beats_start_one_cycle(cluster: Cluster, queue: Any, tick: Any) -> None:
    PolicyVersion.objects.create(
        cluster=cluster, number=1, text="", digest="", valid=True, source="test", created_at=NOW
    )
    tick(FakeClock())
    tick(FakeClock())
    assert cluster.cycles.count() == 1


def test_a_step_that_fails_does_not_stop_the_others(cluster: Cluster, queue: Any, tick: Any) -> None:
    PolicyVersion.objects.create(
        cluster=cluster, number=1, text="", digest="", valid=True, source="test", created_at=NOW
    )
    Cluster.objects.create(name="broken", overrides={"colour": "red"})
    broken = Cluster.objects.get(name="broken")
    make_decision(broken, expires_at=NOW)
    tick(FakeClock())
    assert "run_cycle" in [task for task, _ in messages(queue)]


def test_a_tick_is_the_workers_sign_of_life(cluster: Cluster, queue: Any, tick: Any) -> None:
    tick(FakeClock())
    assert Heartbeat.objects.get().name == "celery@w1"
    last = workers.latest()
    assert last is not None
    assert (last.seen_at, workers.is_away(last, at(29)), workers.is_away(last, at(30))) == (NOW, False, True)


def test_a_quiet_tick_is_cheap(
    cluster: Cluster, queue: Any, tick: Any, django_assert_max_num_queries: Any
) -> None:
    tick(FakeClock())
    with django_assert_max_num_queries(24):
        ticks.tick(worker="celery@w1", clock=FakeClock())


# --- the tasks themselves ---------------------------------------------------------------------------------


def test_the_task_carries_out(cluster: Cluster) -> None:
    row = allowed(cluster, Eviction.QUEUED, pod_uid="u1", expires_at=at(10**9))
    fake = FakeCluster()
    fake.add_owner()
    fake.add(a_pod(uid="u1"))
    with using(fake):
        tasks.carry_out(cluster.pk)
    row.refresh_from_db()
    assert (fake.evicted, row.eviction) == (["u1"], Eviction.ACCEPTED)


def test_the_task_follows(cluster: Cluster) -> None:
    row = make_decision(cluster, expires_at=at(10**9))
    with using(FakeCluster()):
        tasks.follow(cluster.pk)
    row.refresh_from_db()
    assert row.verdict == Verdict.WITHDRAWN


def test_a_cycle_that_does_not_exist_is_nobodys_fault() -> None:
    tasks.run_cycle(4711)


def test_the_heartbeat_answers_the_probe_and_says_nothing_of_beat() -> None:
    tasks.heartbeat()
    assert heartbeats.last_answer("no worker") is not None
    assert heartbeats.last_seen() is None


@pytest.mark.parametrize("name", ["tick", "heartbeat", "run_cycle", "carry_out", "follow"])
def test_the_names_are_those_that_are_sent(name: str) -> None:
    assert f"decisions.tasks.{name}" in app.tasks


def test_messages_hold_ids(cluster: Cluster, queue: Any, django_capture_on_commit_callbacks: Any) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        nudge.carry_out(cluster.pk)
    assert messages(queue) == [("carry_out", [cluster.pk])]


# --- the probe --------------------------------------------------------------------------------------------


def test_the_probe_of_a_worker_that_takes_nothing_fails(db: None) -> None:
    with pytest.raises(
        CommandError, match=r"celery@nobody took no message within 0.1 s \(last answer: never\)"
    ):
        call_command("worker_probe", within=0.1, worker="celery@nobody")
