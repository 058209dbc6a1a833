"""An approval's moment against now. Pure."""

import pytest

from decisions.services import moment
from decisions.services.moment import Now
from tests.builders import NOW

SHOWN = {"ready": 3, "desired": 3}


@pytest.mark.parametrize(
    "now",
    [
        Now(ready=3, desired=3),
        Now(ready=4, desired=4),
        Now(ready=2, desired=3, moved=1),
        Now(ready=None, why_unknown=""),
    ],
)
def test_an_approval_holds(now: Now) -> None:
    assert moment.differences(SHOWN, now) == {}


def test_fewer_ready_replicas_are_a_difference() -> None:
    changes = moment.differences(SHOWN, Now(ready=2, desired=3))
    assert changes == {"ready replicas": ("3 of 3", "2 of 3")}


def test_more_lost_than_moved_is_a_difference() -> None:
    changes = moment.differences(SHOWN, Now(ready=1, desired=3, moved=1))
    assert changes == {"ready replicas": ("3 of 3", "1 of 3, 1 moved by their own decision")}


def test_replicas_that_nobody_could_count_then_are_not_missed_now() -> None:
    assert moment.differences({"ready": None}, Now(why_unknown="replicas of kind Foo are not known")) == {}


def test_replicas_that_can_no_longer_be_counted_are_a_difference() -> None:
    changes = moment.differences(SHOWN, Now(why_unknown="ReplicaSet web does not exist any more"))
    assert changes == {"ready replicas": ("3 of 3", "ReplicaSet web does not exist any more")}


def test_another_policy_and_a_new_protection_are_differences() -> None:
    now = Now(ready=3, policy=("version 1", "version 2"), protections=("is a mirror pod",))
    assert moment.differences(SHOWN, now) == {
        "policy": ("version 1", "version 2"),
        "protection": ("", "is a mirror pod"),
    }


def test_who_looks_again_is_shown_the_numbers_of_now() -> None:
    forecast = {
        "ready": 5,
        "desired": 6,
        "ready_after": 4,
        "owner_ready": 3,
        "owner_desired": 4,
        "fits_on": [],
    }
    shown = moment.shown_again(forecast, Now(ready=1, desired=4, policy=("1", "2"), policy_id=2), NOW)
    assert (shown["ready"], shown["ready_after"], shown["owner_ready"]) == (3, 2, 1)
    assert (shown["policy"], shown["read_at"], shown["fits_on"]) == (2, NOW.isoformat(), [])


def test_what_cannot_be_counted_now_leaves_the_numbers_as_they_were() -> None:
    assert moment.shown_again(SHOWN, Now(why_unknown="no answer"), NOW)["ready"] == 3


def test_the_differences_read_as_a_sentence() -> None:
    changes = {"ready replicas": ("3 of 3", "2 of 3"), "protection": ("", "is a mirror pod")}
    assert (
        moment.sentence(changes) == "ready replicas: 3 of 3 before, 2 of 3 now; protection: is a mirror pod"
    )
