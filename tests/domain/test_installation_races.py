"""Workers of one installation that write its Lease at once, or stop in between: never foreign, never ahead."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import cast

import pytest

from decisions.models import Cluster, Eviction
from decisions.services import carryout, installation
from decisions.services.connections import LeaseGate
from deschedui.kube.client import ClusterClient
from deschedui.kube.errors import TimedOut
from deschedui.kube.leases import LeaseClaim, LeaseView
from tests.builders import NOW, make_cluster
from tests.domain.fake_cluster import FakeClock, FakeCluster, using
from tests.domain.test_installation import US, a_queued
from tests.domain.test_races import Killed, race

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def fake() -> Iterator[FakeCluster]:
    cluster = FakeCluster()
    cluster.add_owner()
    with using(cluster):
        yield cluster


@pytest.fixture
def cluster(db: None) -> Cluster:
    return make_cluster(lease_checked_at=None, lease_checked_by="", next_lease_at=None)


class Process:
    """A worker's process: what it knows of the Lease is its own."""

    def __init__(self, cluster: Cluster, fake: FakeCluster) -> None:
        self.cluster, self.client, self.gate = cluster, cast("ClusterClient", fake), LeaseGate()
        self.clock = FakeClock()

    def check(self, times: int = 1) -> None:
        for _ in range(times):
            self.clock.advance(1)
            installation.check(self.cluster, self.client, clock=self.clock, gate=self.gate)


def once(what: Callable[[], object]) -> Callable[[LeaseClaim], None]:
    """For ``at_lease_write``: do it in the middle of the next write, and in that one only."""
    todo = [what]

    def hook(_: LeaseClaim) -> None:
        if todo:
            todo.pop()()

    return hook


def counters(fake: FakeCluster) -> tuple[int | None, int, str]:
    """In the Lease, in the database, and what froze it."""
    row = Cluster.objects.get()
    return fake.leases["deschedui"].counter, row.lease_counter, row.stopped


def test_workers_at_once_look_neither_foreign_nor_ahead(cluster: Cluster, fake: FakeCluster) -> None:
    workers = [Process(cluster, fake) for _ in range(4)]
    results = race(*(partial(worker.check, 5) for worker in workers))
    assert [result for result in results if result is not None and not busy(result)] == []
    lease, stored, stopped = counters(fake)
    assert (fake.lease_writes, stopped) == (sorted(set(fake.lease_writes)), "")
    assert lease is not None
    assert lease <= stored


def busy(result: object) -> bool:
    return isinstance(result, installation.NotOurs) and "written by others all the time" in str(result)


def test_threads_of_one_process_share_a_write(cluster: Cluster, fake: FakeCluster) -> None:
    worker = Process(cluster, fake)
    assert set(race(*[worker.check] * 8)) == {None}
    assert len(fake.lease_writes) <= 8
    assert counters(fake)[2] == ""


def test_a_worker_that_slept_between_its_two_writes_never_lowers_the_lease(
    cluster: Cluster, fake: FakeCluster
) -> None:
    asleep, awake = Process(cluster, fake), Process(cluster, fake)
    asleep.check()
    fake.at_lease_write = once(partial(awake.check, 3))
    asleep.check()
    assert (fake.lease_writes, counters(fake)) == ([1, 3, 4, 5], (5, 5, ""))


def test_a_worker_that_died_between_its_two_writes_leaves_nothing_wrong(
    cluster: Cluster, fake: FakeCluster
) -> None:
    def die() -> None:
        raise Killed

    Process(cluster, fake).check()
    fake.at_lease_write = once(die)
    with pytest.raises(Killed):
        Process(cluster, fake).check()
    Process(cluster, fake).check(2)
    assert (fake.lease_writes, counters(fake)) == ([1, 3, 4], (4, 4, ""))


def test_a_write_whose_answer_was_lost_is_no_foreign_one(cluster: Cluster, fake: FakeCluster) -> None:
    worker = Process(cluster, fake)
    worker.check()
    fake.leases["deschedui"] = LeaseView(US, 2, "2")
    fake.lease_broken = TimedOut("update Lease: no complete answer within 10 s")
    with pytest.raises(installation.NotOurs, match="no complete answer"):
        worker.check()
    fake.lease_broken = None
    worker.check()
    assert counters(fake) == (3, 3, "")


def test_a_look_that_does_not_come_back_keeps_one_thread(cluster: Cluster, fake: FakeCluster) -> None:
    worker = Process(cluster, fake)
    refused: list[BaseException] = []

    def another_thread_asks() -> None:
        refused.extend(result for result in race(worker.check) if isinstance(result, Exception))

    worker.gate.patience = 0.01
    fake.at_lease_write = once(another_thread_asks)
    worker.check()
    assert [str(each) for each in refused] == [
        "another look at the Lease of this installation has not come back yet"
    ]


def test_a_look_that_broke_serves_nobody_who_waited_for_it(cluster: Cluster, fake: FakeCluster) -> None:
    def breaks() -> None:
        raise ZeroDivisionError

    worker = Process(cluster, fake)
    worker.check()
    fake.at_lease_write = once(breaks)
    with pytest.raises(ZeroDivisionError):
        worker.check()
    assert worker.gate.outcome == "another look at the Lease of this installation broke"


def test_two_first_contacts_at_once_make_one_lease(cluster: Cluster, fake: FakeCluster) -> None:
    first, second = Process(cluster, fake), Process(cluster, fake)
    fake.at_lease_write = once(second.check)
    first.check()
    assert (fake.lease_writes, counters(fake)) == ([2], (2, 2, ""))


def test_a_worker_that_slept_over_a_restored_database_does_not_hide_it(
    cluster: Cluster, fake: FakeCluster
) -> None:
    asleep, awake = Process(cluster, fake), Process(cluster, fake)
    asleep.check(2)
    dumped = Cluster.objects.get().lease_counter

    def go_on_and_restore() -> None:
        awake.check(3)
        Cluster.objects.update(lease_counter=dumped)

    fake.at_lease_write = once(go_on_and_restore)
    with pytest.raises(installation.NotOurs, match="ahead of the database"):
        asleep.check()
    assert counters(fake)[2] == "ahead"


def test_a_worker_that_slept_while_another_installation_took_over_sees_it(
    cluster: Cluster, fake: FakeCluster
) -> None:
    def take_over() -> None:
        fake.leases["deschedui"] = LeaseView("another-installation-0001", 90, "77")

    asleep = Process(cluster, fake)
    asleep.check()
    fake.at_lease_write = once(take_over)
    with pytest.raises(installation.NotOurs, match="another installation"):
        asleep.check()
    assert fake.leases["deschedui"].counter == 90


def test_a_worker_that_slept_after_its_check_does_not_claim_on_it(
    cluster: Cluster, fake: FakeCluster
) -> None:
    row, clock = a_queued(cluster, fake), FakeClock()
    fake.at_lease_write = once(lambda: clock.advance(60))
    assert carryout.carry_out(cluster.pk, worker="w1", clock=clock) == 0
    row.refresh_from_db()
    assert (row.eviction, row.attempt, Cluster.objects.get().lease_checked_at) == (Eviction.QUEUED, 0, NOW)
