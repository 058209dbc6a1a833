"""Freezes: set by whoever decides, lifted by an admin, and seen by everybody who waits."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from decisions.models import AuditEntry, Cluster, Eviction, Executor, Freeze, Verdict
from decisions.services import freezes
from decisions.services.actors import SYSTEM, Actor
from decisions.services.errors import Invalid
from tests.builders import NOW, at, make_cluster, make_decision

pytestmark = pytest.mark.django_db
GRACE = Actor(name="grace")


def freeze(cluster: Cluster | None, reason: str = "incident") -> Freeze:
    return freezes.freeze(cluster=cluster, by=GRACE, reason=reason, now=NOW)


def test_a_freeze_says_by_whom_and_why_and_is_audited(cluster: Cluster) -> None:
    freeze(cluster)
    held = freezes.active(cluster.pk)
    assert held is not None
    assert (held.set_by, held.reason, held.set_at) == ("grace", "incident", NOW)
    assert AuditEntry.objects.get().what == "frozen"


def test_a_clusters_own_freeze_is_named_before_one_of_everything(cluster: Cluster) -> None:
    everything, own = freeze(None), freeze(cluster)
    assert freezes.active(cluster.pk) == own
    freezes.lift(freeze_id=own.pk, by=GRACE, now=at(1))
    assert freezes.active(cluster.pk) == everything


def test_another_clusters_freeze_holds_nothing_here(cluster: Cluster) -> None:
    freeze(make_cluster("staging"))
    assert freezes.active(cluster.pk) is None


@pytest.mark.parametrize("everything", [True, False])
def test_freezing_twice_is_one_freeze(cluster: Cluster, *, everything: bool) -> None:
    what = None if everything else cluster
    assert freeze(what) == freeze(what, "again")
    assert Freeze.objects.count() == 1


def test_it_can_be_set_again_once_it_was_lifted(cluster: Cluster) -> None:
    assert freezes.lift(freeze_id=freeze(cluster).pk, by=GRACE, now=at(1))
    assert freeze(cluster, "again").reason == "again"


def test_it_is_lifted_once(cluster: Cluster) -> None:
    row = freeze(cluster)
    assert freezes.lift(freeze_id=row.pk, by=GRACE, now=at(1))
    assert not freezes.lift(freeze_id=row.pk, by=SYSTEM, now=at(2))
    row.refresh_from_db()
    assert (row.lifted_by, row.lifted_at) == ("grace", at(1))


def test_it_says_what_could_not_be_called_back(cluster: Cluster) -> None:
    allowed = {"verdict": Verdict.ALLOWED, "lease_until": at(9)}
    make_decision(cluster, eviction=Eviction.EVICTING, **allowed)
    make_decision(cluster, eviction=Eviction.DELEGATED, executor=Executor.ASKER, **allowed)
    make_decision(make_cluster("staging"), eviction=Eviction.EVICTING, **allowed)
    row = freeze(cluster)
    assert (row.calls_in_flight, row.callers_told) == (1, 1)
    assert freeze(None).calls_in_flight == 2


def test_a_freeze_without_a_reason_is_refused(cluster: Cluster) -> None:
    with pytest.raises(Invalid, match="Say why"):
        freeze(cluster, " ")


# --- manage.py freeze -------------------------------------------------------------------------------------


def manage(*arguments: str) -> str:
    out = StringIO()
    call_command("freeze", *arguments, stdout=out)
    return out.getvalue()


def test_the_command_line_freezes_everything(cluster: Cluster) -> None:
    assert "0 eviction calls were already in flight" in manage("--reason", "incident")
    held = freezes.active(cluster.pk)
    assert held is not None
    assert held.set_by.endswith("(command line)")


def test_it_lifts_one_and_says_what_still_holds(cluster: Cluster) -> None:
    freeze(None, "black friday")
    manage("prod", "--reason", "incident")
    assert "still held by the freeze of all clusters: black friday" in manage("prod", "--lift")
    assert "there is no freeze to lift" in manage("prod", "--lift")


def test_a_name_that_is_none_is_refused_with_those_there_are(cluster: Cluster) -> None:
    with pytest.raises(CommandError, match="There is no cluster prd; there are: prod"):
        manage("prd", "--reason", "incident")
