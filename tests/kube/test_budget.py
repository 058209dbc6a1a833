"""The budget of a cluster: pace, flights, waiting that ends. Time is a number here."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from deschedui.kube.budget import Budget, Lane, TokenBucket
from deschedui.kube.errors import BudgetExhausted, Throttled
from deschedui.kube.eviction import EvictionRequest
from tests.kube.conftest import Connect
from tests.kube.server import Answer, Request, serving


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def time() -> Time:
    return Time()


def budget(time: Time, **overrides: float) -> Budget:
    return Budget(clock=time.clock, sleep=time.sleep, **overrides)  # type: ignore[arg-type]


def test_a_second_of_requests_goes_at_once_and_the_next_waits(time: Time) -> None:
    bucket = TokenBucket(20, clock=time.clock, sleep=time.sleep)
    for _ in range(20):
        bucket.take(deadline=time.now)
    assert time.slept == []
    bucket.take(deadline=time.now + 1)
    assert time.slept == [pytest.approx(1 / 20)]


def test_in_the_long_run_the_rate_holds(time: Time) -> None:
    bucket = TokenBucket(20, clock=time.clock, sleep=time.sleep)
    for _ in range(220):
        bucket.take(deadline=time.now + 60)
    assert time.now - 1000 == pytest.approx(10)


def test_a_pause_does_not_save_up_more_than_a_second(time: Time) -> None:
    bucket = TokenBucket(20, clock=time.clock, sleep=time.sleep)
    time.now += 3600
    for _ in range(21):
        bucket.take(deadline=time.now + 60)
    assert len(time.slept) == 1


def test_no_room_before_the_deadline_takes_nothing(time: Time) -> None:
    bucket = TokenBucket(1, clock=time.clock, sleep=time.sleep)
    bucket.take(deadline=time.now)
    with pytest.raises(BudgetExhausted, match="nothing was sent"):
        bucket.take(deadline=time.now + 0.5)
    bucket.take(deadline=time.now + 1)
    assert time.slept == [pytest.approx(1)]


@pytest.mark.parametrize("rate", [0, -1])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="positive"):
        TokenBucket(rate)


def test_doors_do_not_wait_for_cycles(time: Time) -> None:
    shared = budget(time, requests_per_second=1)
    shared.take(Lane.WORK, deadline=time.now)
    for _ in range(200):
        shared.take(Lane.LOOKUP, deadline=time.now)
    assert time.slept == []


def test_a_throttling_server_slows_the_work_and_not_the_doors(time: Time) -> None:
    shared = budget(time)
    shared.slow_down(5)
    shared.take(Lane.LOOKUP, deadline=time.now)
    assert time.slept == []
    shared.take(Lane.WORK, deadline=time.now + 10)
    assert time.slept == [pytest.approx(5)]


def test_slowing_down_twice_waits_for_the_longer_one(time: Time) -> None:
    shared = budget(time)
    shared.slow_down(10)
    shared.slow_down(1)
    shared.take(Lane.WORK, deadline=time.now + 20)
    assert time.slept == [pytest.approx(10)]


def test_only_so_many_evictions_are_in_flight(time: Time) -> None:
    shared = budget(time, evictions_in_flight=2)
    one, two, three = (shared.eviction(deadline=time.now) for _ in range(3))
    with one, two, pytest.raises(BudgetExhausted, match="in flight"), three:
        pass
    with shared.eviction(deadline=time.now):
        pass


def test_many_threads_share_one_pace(time: Time) -> None:
    bucket = TokenBucket(50, clock=time.clock, sleep=lambda _: None)
    results: list[bool] = []

    def take() -> None:
        try:
            bucket.take(deadline=1000.5)
        except BudgetExhausted:
            results.append(False)
        else:
            results.append(True)

    threads = [threading.Thread(target=take) for _ in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results.count(True) == 75


def test_an_eviction_that_gets_no_turn_is_not_sent(connect: Connect, time: Time) -> None:
    used_up = budget(time, requests_per_second=1)
    used_up.take(Lane.WORK, deadline=time.now)
    with serving(Answer(201)) as server:
        client = connect(server.url, budget=used_up, budget_seconds=0.5)
        with pytest.raises(BudgetExhausted):
            client.evict(EvictionRequest("shop", "cart-0", "old"))
        assert server.requests == []


def test_a_throttled_eviction_slows_the_cluster_down(connect: Connect, time: Time) -> None:
    shared = budget(time)
    throttling = Answer(429, b"Too many requests", {"Retry-After": "7", "Content-Type": "text/plain"})
    with serving(throttling, Answer(201)) as server:
        client = connect(server.url, budget=shared)
        client.evict(EvictionRequest("shop", "cart-0", "old"))
        client.evict(EvictionRequest("shop", "cart-1", "other"))
    assert time.slept == [pytest.approx(7)]


def test_a_throttled_read_of_a_cycle_slows_the_cluster_down(connect: Connect, time: Time) -> None:
    throttling = Answer(429, b"Too many requests", {"Retry-After": "7"})
    with serving(throttling, Answer(body={"gitVersion": "v1.37.2"})) as server:
        client = connect(server.url, budget=budget(time))
        with pytest.raises(Throttled):
            client.read_pod("shop", "cart-0")
        client.check()
    assert time.slept == [pytest.approx(7)]


def test_evictions_of_many_threads_are_four_in_flight(connect: Connect) -> None:
    lock, now, most = threading.Lock(), [0], [0]

    def slow(_: Request) -> Answer:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        threading.Event().wait(0.02)
        with lock:
            now[0] -= 1
        return Answer(201, {"kind": "Status"})

    with serving(slow) as server:
        client = connect(server.url, budget=Budget(requests_per_second=1000))
        requests = [EvictionRequest("shop", f"cart-{number}", f"uid-{number}") for number in range(16)]
        with ThreadPoolExecutor(16) as pool:
            results = list(pool.map(client.evict, requests))
    assert {result.status for result in results} == {"accepted"}
    assert most[0] == 4
