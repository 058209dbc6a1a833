"""The running policy, read again directly before an eviction: protections, and whether it changed for this pod."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User

from decisions.models import Cluster, Decision, Event, Eviction, PolicyVersion, Verdict
from decisions.models.fields import fit
from decisions.services import carryout, protections
from deschedui.descheduler.policy import load
from tests.builders import NOW, at
from tests.domain.fake_cluster import FakeClock, FakeCluster, a_pod, using
from tests.domain.test_carryout import UID, approved
from tests.engine.builders import build_pdb

pytestmark = pytest.mark.django_db

POLICY = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
maxNoOfPodsToEvictPerNamespace: {limit}
profiles:
- name: default
  pluginConfig:
  - name: DefaultEvictor
    args: {{{evictor}}}
  - name: PodLifeTime
    args: {{maxPodLifeTimeSeconds: {seconds}}}
  plugins:
    deschedule: {{enabled: [PodLifeTime]}}
"""


@pytest.fixture
def fake() -> Iterator[FakeCluster]:
    fake = FakeCluster()
    fake.add_owner()
    fake.add(a_pod(uid=UID))
    with using(fake):
        yield fake


def policy(
    cluster: Cluster, number: int = 1, *, limit: int = 10, evictor: str = "", seconds: int = 3600
) -> PolicyVersion:
    """One more version of the policy."""
    text = POLICY.format(limit=limit, evictor=evictor, seconds=seconds)
    return PolicyVersion.objects.create(
        cluster=cluster,
        number=number,
        text=text,
        digest=str(number),
        valid=True,
        source="test",
        created_at=NOW,
    )


def carried_out(row: Decision) -> Decision:
    carryout.carry_out(row.cluster_id, worker="w1", clock=FakeClock())
    row.refresh_from_db()
    return row


def changes_of(row: Decision) -> dict[str, Any]:
    changes: dict[str, Any] = row.events.get(kind=Event.BACK_TO_PENDING).detail["changes"]
    return changes


def test_what_the_policy_allows_goes(cluster: Cluster, ada: User, fake: FakeCluster) -> None:
    row = approved(cluster, ada, policy=policy(cluster))
    assert carried_out(row).eviction == Eviction.ACCEPTED


@pytest.mark.parametrize(
    ("pod", "evictor", "why"),
    [
        ({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}, "", "local storage"),
        ({"priority": 2_000_000_001}, "", "system-critical"),
        ({"owner": None}, "", "no owner"),
        ({"annotations": {"kubernetes.io/config.mirror": "x"}}, "", "is a mirror pod"),
        ({}, "labelSelector: {matchLabels: {app: other}}", "labelSelector does not select"),
        ({}, "podProtections: {extraEnabled: [PodsWithoutPDB]}", "covered by no PodDisruptionBudget"),
        ({}, "minReplicas: 4", "has 3 replicas; the policy evicts from 4 replicas on"),
    ],
)
def test_what_is_protected_now_asks_again_and_says_why(
    cluster: Cluster, ada: User, fake: FakeCluster, *, pod: dict[str, Any], evictor: str, why: str
) -> None:
    row = approved(cluster, ada, policy=policy(cluster, evictor=evictor))
    fake.add(a_pod(uid=UID, **pod))
    row = carried_out(row)
    assert (row.verdict, fake.sent) == (Verdict.PENDING, [])
    assert why in changes_of(row)["protection"][1]


def test_a_budget_that_is_there_protects_no_longer(cluster: Cluster, ada: User, fake: FakeCluster) -> None:
    version = policy(cluster, evictor="podProtections: {extraEnabled: [PodsWithoutPDB]}")
    fake.pdbs = [build_pdb(allowed=1)]
    assert carried_out(approved(cluster, ada, policy=version)).eviction == Eviction.ACCEPTED


def test_node_fit_is_the_cycles_business(cluster: Cluster, ada: User, fake: FakeCluster) -> None:
    row = approved(cluster, ada, policy=policy(cluster, evictor="nodeFit: true"))
    assert carried_out(row).eviction == Eviction.ACCEPTED


def test_volumes_do_not_change_in_the_life_of_a_pod(cluster: Cluster, ada: User, fake: FakeCluster) -> None:
    classes = "config: {PodsWithPVC: {protectedStorageClasses: [{name: fast}]}}"
    version = policy(cluster, evictor=f"podProtections: {{extraEnabled: [PodsWithPVC], {classes}}}")
    row = approved(cluster, ada, policy=version)
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    fake.add(a_pod(uid=UID, spec={"volumes": [volume]}))
    assert carried_out(row).eviction == Eviction.ACCEPTED


# --- another policy ---------------------------------------------------------------------------------------


def test_a_policy_that_says_something_else_for_this_pod_asks_again(
    cluster: Cluster, ada: User, fake: FakeCluster
) -> None:
    row = approved(cluster, ada, policy=policy(cluster))
    policy(cluster, 2, seconds=7200)
    row = carried_out(row)
    assert row.verdict == Verdict.PENDING
    assert changes_of(row) == {"policy": ["version 1", "version 2"]}


def test_a_policy_that_changed_elsewhere_does_not(cluster: Cluster, ada: User, fake: FakeCluster) -> None:
    row = approved(cluster, ada, policy=policy(cluster))
    policy(cluster, 2, limit=11)
    assert carried_out(row).eviction == Eviction.ACCEPTED


def test_a_profile_that_is_gone_asks_again(cluster: Cluster, ada: User, fake: FakeCluster) -> None:
    row = approved(cluster, ada, policy=policy(cluster), profile="weekend")
    policy(cluster, 2)
    assert carried_out(row).verdict == Verdict.PENDING


def test_nominated_by_a_cycle_of_the_new_policy_it_goes(
    cluster: Cluster, ada: User, fake: FakeCluster
) -> None:
    row = approved(cluster, ada, policy=policy(cluster))
    cycle = cluster.cycles.create(
        kind="scheduled",
        state="completed",
        policy=policy(cluster, 2, seconds=7200),
        started_at=NOW,
        deadline_at=at(600),
        heartbeat_at=NOW,
    )
    Decision.objects.filter(pk=row.pk).update(cycle=cycle)
    assert carried_out(row).eviction == Eviction.ACCEPTED


def test_the_limits_are_those_of_the_running_policy(cluster: Cluster, ada: User, fake: FakeCluster) -> None:
    version = policy(cluster, limit=0)
    cycle = cluster.cycles.create(
        kind="scheduled", state="completed", started_at=NOW, deadline_at=at(600), heartbeat_at=NOW
    )
    row = carried_out(approved(cluster, ada, policy=version, cycle=cycle))
    assert (row.eviction, fake.sent) == (Eviction.QUEUED, [])
    assert "over the limit of 0 evictions for namespace shop" in row.message


def test_a_profile_is_found_by_the_name_that_a_decision_has_room_for() -> None:
    text = POLICY.format(limit=1, evictor="", seconds=1).replace("name: default", f"name: {'p' * 300}")
    running = load(text).policy
    assert running is not None
    for name in ("p" * 300, fit("p" * 300, 253)):
        assert protections.profile_of(running, name) is running.profiles[0]
    assert protections.profile_of(running, "p") is None
