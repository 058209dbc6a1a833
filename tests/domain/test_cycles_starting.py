"""Starting cycles, one at a time for a cluster; and what happens when a worker dies."""

import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import connection

from decisions.models import Cluster, Cycle, CycleKind, CycleState, Decision
from decisions.services import clusters, cycles
from decisions.services.actors import Actor
from decisions.services.cycle_row import CycleRow, Lost
from decisions.services.errors import AlreadyRuns
from tests.builders import NOW, at, make_cluster
from tests.domain.cycle_world import Runs, old_pod, policy_text

ROOT = Actor(name="root")


@pytest.fixture
def runs(cluster: Cluster, tmp_path: Path) -> Runs:
    made = Runs(cluster, tmp_path)
    made.policy(policy_text())
    return made


def due(now_seconds: float = 0, jitter: float = 0.5) -> list[int]:
    return cycles.start_due(now=at(now_seconds), jitter=lambda: jitter)


# --- one at a time ----------------------------------------------------------------------------------------


def test_a_second_manual_cycle_is_refused_and_hears_which_one_runs(runs: Runs) -> None:
    first = runs.start()
    with pytest.raises(AlreadyRuns, match=f"Cycle {first.pk} runs on prod since 03:00:00 UTC") as refused:
        runs.start()
    assert refused.value.cycle_id == first.pk


def test_a_tick_that_finds_one_running_is_recorded_as_skipped(runs: Runs) -> None:
    first = runs.start()
    second = runs.start(CycleKind.SCHEDULED)
    assert (second.state, second.kind) == (CycleState.SKIPPED, CycleKind.SCHEDULED)
    assert f"Cycle {first.pk}" in second.error


def test_a_dry_run_waits_for_nobody(runs: Runs) -> None:
    runs.start()
    assert runs.run(CycleKind.DRY_RUN).state == CycleState.COMPLETED
    assert runs.start(CycleKind.DRY_RUN).state == CycleState.RUNNING


def test_another_clusters_cycle_is_not_in_the_way(runs: Runs) -> None:
    runs.start()
    other = make_cluster("other")
    assert cycles.start(cluster_id=other.pk, kind=CycleKind.MANUAL, now=NOW).state == CycleState.RUNNING


def test_observing_by_time_is_one_at_a_time_too(runs: Runs) -> None:
    Cluster.objects.update(armed=False)
    runs.start(CycleKind.SCHEDULED)
    assert runs.start(CycleKind.SCHEDULED).state == CycleState.SKIPPED


def test_a_manual_cycle_of_a_cluster_that_only_observes_is_a_dry_run(runs: Runs, ada: User) -> None:
    Cluster.objects.update(armed=False)
    assert runs.start(by=Actor.person(ada)).kind == CycleKind.DRY_RUN


# --- by time ----------------------------------------------------------------------------------------------


def test_a_new_cluster_is_due_at_once_and_then_after_its_interval(runs: Runs) -> None:
    (first,) = due()
    runs.finish(Cycle.objects.get(pk=first))
    assert Cluster.objects.get().next_cycle_at == at(300)
    assert due(299) == []
    assert len(due(300)) == 1


def test_starts_are_jittered(runs: Runs) -> None:
    due(jitter=1.0)
    assert Cluster.objects.get().next_cycle_at == at(315)


def test_a_due_time_is_won_by_one_of_two_beats(runs: Runs) -> None:
    assert len(due()) == 1
    assert due() == []


def test_a_paused_cluster_starts_nothing_by_time(runs: Runs) -> None:
    clusters.pause(cluster=runs.cluster, by=ROOT, now=NOW)
    assert due() == []
    assert runs.start().state == CycleState.RUNNING


def test_a_cluster_without_a_policy_starts_nothing_by_time(cluster: Cluster) -> None:
    assert due() == []


def test_a_cluster_that_is_not_armed_observes_by_time(runs: Runs) -> None:
    Cluster.objects.update(armed=False)
    (started,) = due()
    assert Cycle.objects.get(pk=started).dry


def test_a_cycle_that_no_worker_took_is_handed_out_again(runs: Runs) -> None:
    cycle = runs.start()
    Cluster.objects.update(next_cycle_at=at(300))
    assert due(4) == []
    assert due(6) == [cycle.pk]


# --- the worker -------------------------------------------------------------------------------------------


def test_a_cycle_is_run_by_one_worker(runs: Runs) -> None:
    cycle = runs.start()
    assert CycleRow.claim(cycle.pk, runs.clock) is not None
    runs.finish(cycle)
    assert runs.world.listed == 0


def test_a_dead_workers_cycle_is_freed(runs: Runs) -> None:
    cycle = runs.start()
    CycleRow.claim(cycle.pk, runs.clock)
    assert cycles.free_dead(now=at(59)) == 0
    assert cycles.free_dead(now=at(60)) == 1
    cycle.refresh_from_db()
    assert (cycle.state, cycle.error) == (CycleState.FAILED, "Its worker died.")
    assert runs.start().state == CycleState.RUNNING


def test_a_heartbeat_keeps_a_cycle(runs: Runs) -> None:
    row = CycleRow.claim(runs.start().pk, runs.clock)
    assert row is not None
    runs.clock.forward(seconds=50)
    row.beat("listing")
    assert cycles.free_dead(now=at(100)) == 0


def test_progress_is_written_once_a_second_at_most(runs: Runs) -> None:
    cycle = runs.start()
    row = CycleRow.claim(cycle.pk, runs.clock)
    assert row is not None
    row.beat("one")
    runs.clock.forward(seconds=1)
    row.beat("two")
    row.beat("three")
    cycle.refresh_from_db()
    assert cycle.progress == "two"


def test_a_cycle_that_no_worker_ever_took_is_given_up(runs: Runs) -> None:
    cycle = runs.start()
    assert cycles.free_dead(now=at(599)) == 0
    assert cycles.free_dead(now=at(600)) == 1
    cycle.refresh_from_db()
    assert "No worker took it" in cycle.error


def test_a_worker_that_was_declared_dead_records_nothing_more(runs: Runs) -> None:
    runs.world.pods = [old_pod(f"web-{number}") for number in range(3)]
    cycle = runs.start()
    runs.clock.tick = timedelta(seconds=2)
    freed: list[int] = []

    def freeing_clock() -> object:
        if Decision.objects.count() == 1 and not freed:
            freed.append(cycles.free_dead(now=at(9_999)))
        return runs.clock()

    cycles.run(cycle.pk, client=runs.world, extender_client_factory=runs.extender.factory, now=freeing_clock)  # type: ignore[arg-type]
    cycle.refresh_from_db()
    assert (cycle.state, Decision.objects.count()) == (CycleState.FAILED, 1)


def test_a_row_that_was_lost_takes_no_write(runs: Runs) -> None:
    row = CycleRow.claim(runs.start().pk, runs.clock)
    assert row is not None
    cycles.free_dead(now=at(60))
    with pytest.raises(Lost):
        row.write(progress="still here")
    with pytest.raises(Lost):
        row.end(CycleState.COMPLETED)


# --- races ------------------------------------------------------------------------------------------------


def at_once(*calls: Callable[[], object]) -> list[object]:
    """Call these in threads of their own, at the same moment; what each returned or raised."""
    results: list[object] = [None] * len(calls)
    barrier = threading.Barrier(len(calls))

    def work(place: int) -> None:
        try:
            barrier.wait()
            results[place] = calls[place]()
        except Exception as error:  # noqa: BLE001 - a test looks at it
            results[place] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=(place,)) for place in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@pytest.mark.django_db(transaction=True)
def test_two_ticks_at_once_run_one_and_record_the_other_as_skipped() -> None:
    cluster = make_cluster()

    def start() -> str:
        return cycles.start(cluster_id=cluster.pk, kind=CycleKind.SCHEDULED, now=NOW).state

    assert sorted(map(str, at_once(start, start))) == ["running", "skipped"]


@pytest.mark.django_db(transaction=True)
def test_two_clicks_at_once_start_one_and_refuse_the_other() -> None:
    cluster = make_cluster()

    def start() -> str:
        return cycles.start(cluster_id=cluster.pk, kind=CycleKind.MANUAL, now=NOW).state

    results = at_once(start, start)
    assert sum(isinstance(result, AlreadyRuns) for result in results) == 1
    assert Cycle.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_workers_at_once_run_a_cycle_once(tmp_path: Path) -> None:
    runs = Runs(make_cluster(), tmp_path)
    runs.policy(policy_text())
    cycle = runs.start()
    at_once(
        lambda: runs.finish(Cycle.objects.get(pk=cycle.pk)),
        lambda: runs.finish(Cycle.objects.get(pk=cycle.pk)),
    )
    assert (runs.world.listed, Decision.objects.count()) == (1, 1)


@pytest.mark.django_db(transaction=True)
def test_two_beats_at_once_start_a_due_cycle_once(tmp_path: Path) -> None:
    Runs(make_cluster(), tmp_path).policy(policy_text())
    at_once(due, due)
    assert list(Cycle.objects.values_list("state", flat=True)) == ["running"]


@pytest.mark.django_db(transaction=True)
def test_disarming_during_a_cycle_leaves_nothing_open(tmp_path: Path) -> None:
    runs = Runs(make_cluster(), tmp_path)
    runs.policy(policy_text())
    Cluster.objects.update(overrides={"max_waiting_per_owner": 100})
    runs.world.pods = [old_pod(f"web-{number}") for number in range(12)]
    cycle = runs.start()
    at_once(lambda: runs.finish(cycle), lambda: clusters.disarm(cluster=runs.cluster, by=ROOT, now=NOW))
    assert not Decision.objects.filter(verdict="pending").exists()
