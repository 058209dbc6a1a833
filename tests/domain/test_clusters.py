"""Clusters: made, set up, armed and paused, each change audited."""

from typing import Any

import pytest

from decisions.models import AuditEntry, Cluster, Decision, Eviction, Verdict
from decisions.queries.installation import in_order
from decisions.services import clusters
from decisions.services.actors import Actor
from decisions.services.errors import Invalid
from tests.builders import NOW, at, make_cluster, make_decision

pytestmark = pytest.mark.django_db
ROOT = Actor(name="root")


def test_a_new_cluster_only_observes() -> None:
    row = clusters.create(name="prod", policy_file="/etc/policy.yaml", by=ROOT, now=NOW)
    assert not row.armed
    assert AuditEntry.objects.get().what == "cluster added"


def test_a_second_cluster_of_the_name_is_refused(cluster: Cluster) -> None:
    with pytest.raises(Invalid, match="There is a cluster prod already"):
        clusters.create(name="prod", by=ROOT, now=NOW)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": "Prod!"}, "name"),
        ({"name": "x" * 64}, "name"),
        ({"interval_seconds": 1}, "interval_seconds"),
        ({"in_cluster": True, "context": "kind"}, "in_cluster"),
        ({"policy_file": "/p", "policy_configmap": "a/b/c"}, "policy_configmap"),
        ({"policy_configmap": "just-a-name"}, "policy_configmap"),
        ({"policy_file": "/" + "p" * 500}, "policy_file"),
        ({"settings": {"unattended": "always"}}, "unattended"),
        ({"settings": {"colour": "red"}}, "colour"),
    ],
)
def test_a_cluster_that_cannot_be_is_refused_with_the_field(fields: dict[str, object], field: str) -> None:
    with pytest.raises(Invalid) as refused:
        clusters.create(**{"name": "new", **fields}, by=ROOT, now=NOW)  # type: ignore[arg-type]
    assert refused.value.field == field


def test_arming_says_who_and_since_when() -> None:
    row = clusters.arm(cluster=make_cluster(armed=False), by=ROOT, now=NOW)
    assert (row.armed, row.armed_by, row.armed_at) == (True, "root", NOW)


def test_arming_what_is_armed_is_not_audited_again(cluster: Cluster) -> None:
    clusters.arm(cluster=cluster, by=ROOT, now=NOW)
    assert not AuditEntry.objects.exists()


def test_disarming_withdraws_what_waits(cluster: Cluster) -> None:
    row = make_decision(cluster)
    clusters.disarm(cluster=cluster, by=ROOT, now=NOW)
    row.refresh_from_db()
    assert row.verdict == Verdict.WITHDRAWN
    assert row.events.get().reason == "root disarmed the cluster"


@pytest.mark.parametrize("status", [Eviction.EVICTING, Eviction.ACCEPTED, Eviction.IN_BACKGROUND])
def test_disarming_leaves_what_is_being_evicted(cluster: Cluster, status: str) -> None:
    row = make_decision(cluster, verdict=Verdict.ALLOWED, eviction=status, lease_until=at(60))
    clusters.disarm(cluster=cluster, by=ROOT, now=NOW)
    assert Decision.objects.get(pk=row.pk).eviction == status


def test_disarming_takes_a_queued_eviction_off_the_queue(cluster: Cluster) -> None:
    row = make_decision(cluster, verdict=Verdict.ALLOWED, eviction=Eviction.QUEUED)
    clusters.disarm(cluster=cluster, by=ROOT, now=NOW)
    row.refresh_from_db()
    assert (row.verdict, row.eviction) == (Verdict.WITHDRAWN, Eviction.NONE)


def test_disarming_withdraws_a_yes_that_a_caller_heard(cluster: Cluster) -> None:
    told = {"verdict": Verdict.ALLOWED, "eviction": Eviction.DELEGATED, "executor": "asker"}
    row = make_decision(cluster, asker="caller:7", **told)
    clusters.disarm(cluster=cluster, by=ROOT, now=NOW)
    row.refresh_from_db()
    assert (row.verdict, row.eviction) == (Verdict.WITHDRAWN, Eviction.NONE)
    assert row.events.get().detail == {"caller_may_have_acted": True}


def test_disarming_withdraws_all_who_wait_for_one_pod(cluster: Cluster) -> None:
    first = make_decision(cluster, pod_uid="u1", verdict=Verdict.ALLOWED, eviction=Eviction.QUEUED)
    waits = {"verdict": Verdict.ALLOWED, "waits_for": first}
    for asker in ("caller:7", "caller:8"):
        make_decision(cluster, pod_uid="u1", asker=asker, **waits)
    clusters.disarm(cluster=cluster, by=ROOT, now=NOW)
    assert set(Decision.objects.values_list("verdict", "eviction")) == {(Verdict.WITHDRAWN, Eviction.NONE)}


def test_disarming_leaves_other_clusters_alone(cluster: Cluster) -> None:
    row = make_decision(make_cluster("other"))
    clusters.disarm(cluster=cluster, by=ROOT, now=NOW)
    assert Decision.objects.get(pk=row.pk).verdict == Verdict.PENDING


def test_pausing_and_resuming_are_audited(cluster: Cluster) -> None:
    assert clusters.pause(cluster=cluster, by=ROOT, now=NOW).paused
    assert not clusters.resume(cluster=cluster, by=ROOT, now=NOW).paused
    assert [entry.what for entry in AuditEntry.objects.order_by("id")] == ["paused", "resumed"]


def test_a_changed_setting_is_audited_with_before_and_after(cluster: Cluster) -> None:
    row = clusters.change_settings(cluster=cluster, changes={"unattended": "answers"}, by=ROOT, now=NOW)
    assert row.settings.unattended == "answers"
    assert AuditEntry.objects.get().detail == {"unattended": ["off", "answers"]}


def test_only_what_differs_from_the_defaults_is_stored(cluster: Cluster) -> None:
    clusters.change_settings(cluster=cluster, changes={"max_waiting": 5, "undo_seconds": 5}, by=ROOT, now=NOW)
    assert Cluster.objects.get().overrides == {"max_waiting": 5}


def test_none_sets_a_setting_back(cluster: Cluster) -> None:
    clusters.change_settings(cluster=cluster, changes={"max_waiting": 5}, by=ROOT, now=NOW)
    clusters.change_settings(cluster=cluster, changes={"max_waiting": None}, by=ROOT, now=NOW)
    assert Cluster.objects.get().overrides == {}


def test_a_setting_out_of_range_is_refused_by_its_label(cluster: Cluster) -> None:
    with pytest.raises(Invalid, match="Waiting at a time: Input should be"):
        clusters.change_settings(cluster=cluster, changes={"max_waiting": 0}, by=ROOT, now=NOW)


def test_a_shorter_interval_brings_the_next_cycle_forward(cluster: Cluster) -> None:
    Cluster.objects.update(next_cycle_at=at(300))
    row = clusters.change(cluster=cluster, interval_seconds=60, by=ROOT, now=NOW)
    assert row.next_cycle_at == at(60)


def test_changing_nothing_is_not_audited(cluster: Cluster) -> None:
    clusters.change(cluster=cluster, interval_seconds=300, by=ROOT, now=NOW)
    assert not AuditEntry.objects.exists()


def test_an_unknown_field_is_refused(cluster: Cluster) -> None:
    with pytest.raises(Invalid, match="no field armed"):
        clusters.change(cluster=cluster, armed=True, by=ROOT, now=NOW)


@pytest.mark.parametrize(
    ("fields", "holds"), [({"context": "elsewhere"}, False), ({"interval_seconds": 60}, True)]
)
def test_a_check_of_the_lease_holds_for_the_cluster_that_was_asked(
    cluster: Cluster, fields: dict[str, Any], holds: bool
) -> None:
    clusters.change(cluster=cluster, by=ROOT, now=NOW, **fields)
    assert Cluster.objects.filter(in_order(NOW), pk=cluster.pk).exists() is holds
