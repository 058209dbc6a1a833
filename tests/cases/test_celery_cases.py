"""Cases from real reports about Celery and Redis, under their ids. With a real Redis: ``tests/real/test_redis.py``."""

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client

from decisions import tasks
from decisions.models import Cluster, Decision, Event, Eviction
from decisions.queries import workers
from decisions.services import carryout, evictions, heartbeats, verdicts
from decisions.services.actors import Actor
from decisions.services.clock import db_now
from deschedui import broker
from deschedui.celery import app
from tests.builders import NOW, at, make_decision
from tests.domain.fake_cluster import FakeClock, FakeCluster, a_pod, using
from tests.domain.test_races import race

UID = "3f6c1f0e-6a2b-4a54-9c1e-0d5b7b1a0001"


@pytest.fixture
def fake() -> Iterator[FakeCluster]:
    fake = FakeCluster()
    fake.add_owner()
    fake.add(a_pod(uid=UID))
    with using(fake):
        yield fake


def approved(cluster: Cluster, ada: User) -> Decision:
    row = make_decision(cluster, pod_uid=UID)
    return verdicts.approve(decision_id=row.pk, version=1, by=Actor.person(ada), undo_seconds=0, now=NOW)


@pytest.mark.django_db(transaction=True)
def test_cq01_delivered_twice_and_run_at_once_it_evicts_once(
    cluster: Cluster, ada: User, fake: FakeCluster
) -> None:
    row = approved(cluster, ada)
    clock = FakeClock()
    race(*[lambda: carryout.carry_out(cluster.pk, worker="w", clock=clock)] * 2)
    row.refresh_from_db()
    assert (fake.evicted, row.eviction) == ([UID], Eviction.ACCEPTED)
    assert row.events.filter(kind=Event.TRIED).count() == 1


@pytest.mark.django_db
def test_cq01_delivered_again_an_hour_later_it_does_nothing(
    cluster: Cluster, ada: User, fake: FakeCluster
) -> None:
    approved(cluster, ada)
    clock = FakeClock()
    carryout.carry_out(cluster.pk, worker="w", clock=clock)
    clock.advance(3600)
    assert carryout.carry_out(cluster.pk, worker="w", clock=clock) == 0
    assert fake.evicted == [UID]


def test_cq01_no_wait_is_longer_than_the_visibility_timeout() -> None:
    beat = app.conf.beat_schedule["tick"]
    assert beat["options"]["expires"] < 3600
    assert "countdown" not in beat["options"]
    assert app.conf.task_ignore_result


def test_a_worker_whose_clock_is_two_minutes_ahead_takes_what_is_sent() -> None:
    """Found by a campaign: ticks that expired after 10 s were thrown away by a worker with a wrong clock."""
    assert app.conf.beat_schedule["tick"]["options"]["expires"] > 240
    assert broker.MESSAGE_SECONDS > 240


def test_a_worker_waits_for_its_broker_as_long_as_it_takes() -> None:
    assert app.conf.broker_connection_max_retries is None


@pytest.mark.django_db
def test_cq01_long_waits_are_in_the_database(cluster: Cluster, ada: User, fake: FakeCluster) -> None:
    row = approved(cluster, ada)
    Decision.objects.filter(pk=row.pk).update(not_before=at(5400), expires_at=at(9000))
    assert carryout.due_clusters(now=at(5399)) == []
    assert carryout.due_clusters(now=at(5400)) == [cluster.pk]


@pytest.mark.django_db
def test_cq03_without_a_sign_of_life_there_is_a_bar_within_two_minutes() -> None:
    heartbeats.beat("celery@w1", now=NOW)
    last = workers.latest()
    assert last is not None
    assert (last.seen_at, workers.is_away(last, at(120))) == (NOW, True)


@pytest.mark.django_db
def test_cq03_the_probe_checks_a_round_trip_and_not_the_process() -> None:
    heartbeats.beat("celery@w1", now=db_now())
    with pytest.raises(CommandError, match="took no message within"):
        call_command("worker_probe", worker="celery@w1", within=0.1)


@pytest.mark.django_db
def test_cq03_a_round_trip_is_an_answer() -> None:
    tasks.heartbeat()
    assert heartbeats.last_answer("no worker") is not None


@pytest.mark.django_db
def test_cq03_web_stays_ready_without_a_worker(client: Client) -> None:
    heartbeats.beat("celery@w1", now=NOW)
    assert client.get("/healthz").status_code == 200


@pytest.mark.django_db
def test_cq03_what_was_approved_meanwhile_is_carried_out_once(
    cluster: Cluster, ada: User, fake: FakeCluster
) -> None:
    row = approved(cluster, ada)
    clock = FakeClock(at(600))
    evictions.queue_stranded(now=clock.now())
    for _ in range(3):
        carryout.carry_out(cluster.pk, worker="w", clock=clock)
    row.refresh_from_db()
    assert (fake.evicted, row.eviction) == ([UID], Eviction.ACCEPTED)
