"""The pace: whose turn it is, whose owner is held, who is held no longer. Pure."""

from datetime import datetime, timedelta

from decisions.models import ClusterSettings
from decisions.services import pace
from decisions.services.pace import Flight, Queued, Rules
from tests.builders import NOW, at

RULES = Rules()


def flight(owner: str = "rs", *, eviction: str = "accepted", since: datetime | None = NOW) -> Flight:
    return Flight(owner=owner, pod="shop/web-1", eviction=eviction, since=since)


def test_everybody_goes_where_nobody_flies() -> None:
    assert pace.turn([Queued(1, "a"), Queued(2, "b")], [], RULES, NOW).go == (1, 2)


def test_of_one_owner_only_the_first_goes() -> None:
    assert pace.turn([Queued(1, "a"), Queued(2, "a"), Queued(3, "b")], [], RULES, NOW).go == (1, 3)


def test_an_owner_waits_for_its_replacement() -> None:
    assert pace.turn([Queued(1, "rs")], [flight(eviction="evicted")], RULES, NOW).go == ()


def test_two_at_a_time_where_the_setting_says_so() -> None:
    rules = Rules(per_owner=2)
    assert pace.turn([Queued(1, "rs"), Queued(2, "rs")], [flight()], rules, NOW).go == (1,)


def test_pods_without_an_owner_do_not_wait_for_each_other() -> None:
    assert pace.turn([Queued(1, ""), Queued(2, "")], [flight(owner="")], RULES, NOW).go == (1, 2)


def test_a_full_cluster_lets_nobody_go() -> None:
    flights = [flight(owner=f"o{number}") for number in range(10)]
    assert pace.turn([Queued(1, "a")], flights, RULES, NOW).go == ()


def test_an_evicted_pod_fills_its_owner_and_not_the_cluster() -> None:
    flights = [flight(owner=f"o{number}", eviction="evicted") for number in range(10)]
    assert pace.turn([Queued(1, "a"), Queued(2, "o1")], flights, RULES, NOW).go == (1,)


def test_what_is_said_to_be_stuck_fills_the_cluster_no_longer() -> None:
    flights = [flight(owner=f"o{number}", since=at(-601)) for number in range(10)]
    assert pace.turn([Queued(1, "a")], flights, RULES, NOW).go == (1,)


def test_what_is_not_due_is_passed_over() -> None:
    assert pace.turn([Queued(1, "a", due=False), Queued(2, "a")], [], RULES, NOW).go == (2,)


def test_after_ten_minutes_without_a_ready_replacement_the_rest_is_held() -> None:
    turn = pace.turn([Queued(1, "rs"), Queued(2, "other")], [flight(since=at(-600))], RULES, NOW)
    assert turn.hold == {1: "no Ready replacement for shop/web-1 within 10 min"}
    assert turn.go == (2,)


def test_before_that_nobody_is_held() -> None:
    assert pace.turn([Queued(1, "rs")], [flight(since=at(-599))], RULES, NOW).hold == {}


def test_who_is_held_already_is_not_held_again() -> None:
    held = Queued(1, "rs", held=True, held_for_pace=True)
    assert pace.turn([held], [flight(since=at(-600))], RULES, NOW) == pace.Turn()


def test_a_stuck_owner_lets_nobody_go_even_where_two_may_fly() -> None:
    rules = Rules(per_owner=2)
    assert pace.turn([Queued(1, "rs")], [flight(since=at(-600))], rules, NOW).go == ()


def test_a_ready_replacement_lets_the_held_go() -> None:
    held = Queued(1, "rs", held=True, held_for_pace=True)
    assert pace.turn([held], [], RULES, NOW) == pace.Turn(go=(1,), leave=(1,))


def test_who_is_held_for_a_missing_right_stays_held() -> None:
    assert pace.turn([Queued(1, "rs", held=True)], [], RULES, NOW) == pace.Turn()


def test_a_call_that_is_under_way_is_never_stuck() -> None:
    assert not flight(since=None).is_stuck(RULES, NOW)


def test_the_rules_are_the_clusters_settings() -> None:
    rules = Rules.of(ClusterSettings(in_flight_per_owner=3, replacement_seconds=60))
    assert (rules.per_owner, rules.replacement) == (3, timedelta(minutes=1))
