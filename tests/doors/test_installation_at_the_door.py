"""A yes at the extender door rests on the Lease: on a cluster that is not for certain ours, callers hear no."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import override_settings
from django.utils import timezone

from decisions.models import Cluster, Decision, Eviction, Executor, Verdict
from decisions.models.enums import Stop
from decisions.services import installation
from tests.builders import NOW, at, make_decision
from tests.doors.edges import UID, ask, register

pytestmark = pytest.mark.django_db


@pytest.fixture
def token(cluster: Cluster) -> str:
    return register(cluster)[1]


def approved(cluster: Cluster, **fields: Any) -> Decision:
    caller = cluster.callers.get()
    defaults = {"verdict": Verdict.ALLOWED, "executor": Executor.ASKER, "decided_by_name": "ada"}
    names = {"asker": caller.asker, "caller": caller, "pod_name": "cart-0", "owner_uid": ""}
    return make_decision(cluster, pod_uid=UID, expires_at=at(900), **{**defaults, **names, **fields})


def checked(seconds_ago: float) -> None:
    Cluster.objects.update(lease_checked_at=timezone.now() - timedelta(seconds=seconds_ago))


def test_a_check_a_moment_ago_is_enough_for_a_yes(cluster: Cluster, token: str) -> None:
    approved(cluster)
    checked(20)
    assert ask(token)["allow"] is True


def test_an_old_check_is_none(cluster: Cluster, token: str) -> None:
    row = approved(cluster)
    checked(26)
    answer = ask(token)
    assert (answer["allow"], answer["state"], answer["decision"]) == (False, "unchecked", row.pk)
    assert "was not checked within the last 25 s" in answer["reason"]
    row.refresh_from_db()
    assert (row.verdict, row.eviction, row.told_count) == (Verdict.ALLOWED, Eviction.NONE, 0)


def test_an_old_check_is_none_for_a_repeat_either(cluster: Cluster, token: str) -> None:
    approved(cluster)
    assert ask(token)["allow"] is True
    checked(26)
    assert ask(token)["allow"] is False


def test_a_lease_that_cannot_be_read_is_named(cluster: Cluster, token: str) -> None:
    approved(cluster)
    checked(60)
    Cluster.objects.update(lease_problem="read Lease deschedui/deschedui: no answer")
    assert "read Lease deschedui/deschedui: no answer" in ask(token)["reason"]


def test_a_copy_says_no_although_the_other_one_checked_a_moment_ago(cluster: Cluster, token: str) -> None:
    approved(cluster)
    checked(1)
    with override_settings(INSTALLATION_ID="another-installation-0001"):
        answer = ask(token)
    assert (answer["allow"], answer["state"]) == (False, "unchecked")


def test_where_the_cluster_froze_itself_all_hear_why(cluster: Cluster, token: str) -> None:
    approved(cluster, eviction=Eviction.DELEGATED, told_at=NOW)
    installation.stop(cluster.pk, kind=Stop.FOREIGN, why="names another", now=NOW)
    answer = ask(token)
    assert (answer["allow"], answer["state"]) == (False, "frozen")
    assert answer["reason"] == (
        "Cluster prod is frozen by itself: the Lease names another installation. "
        "An admin has to confirm this installation first."
    )


def test_nothing_is_recorded_then(cluster: Cluster, token: str) -> None:
    installation.stop(cluster.pk, kind=Stop.AHEAD, why="older", now=NOW)
    assert (ask(token)["state"], Decision.objects.count()) == ("frozen", 0)


def test_questions_are_recorded_while_nobody_can_check(cluster: Cluster, token: str) -> None:
    """Only a yes needs the Lease: people may decide meanwhile."""
    checked(3600)
    assert (ask(token)["state"], Decision.objects.get().verdict) == ("pending", Verdict.PENDING)
