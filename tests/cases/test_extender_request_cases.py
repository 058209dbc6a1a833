"""Cases EQ-*: what callers really send to the extender door."""

import json

import pytest

from decisions.models import Cluster, Decision, Verdict
from decisions.services import snapshots
from tests.doors.edges import UNREACHABLE, FakePod, ask, pod_body, register
from tests.doors.test_doors_over_http import post

pytestmark = pytest.mark.django_db


def test_eq_01_a_pod_that_is_not_scheduled_has_no_node(cluster: Cluster) -> None:
    _, token = register(cluster)
    answer = ask(token, pod_body(node=None, phase="Pending"), pod=FakePod(UNREACHABLE))
    assert answer["allow"] is False
    assert {"allow", "reason"} <= set(answer)
    assert Decision.objects.get().node == ""


def test_eq_02_not_decided_yet_is_a_quick_no_with_one_decision(cluster: Cluster) -> None:
    _, token = register(cluster)
    first, second = ask(token), ask(token)
    row = Decision.objects.get(verdict=Verdict.PENDING)
    assert first["reason"] == f"waiting for approval, see http://testserver/d/{row.pk}/"
    assert second["decision"] == first["decision"] == row.pk


@pytest.mark.django_db(transaction=True)
def test_eq_04_a_megabyte_of_annotations_is_never_an_error(cluster: Cluster) -> None:
    _, token = register(cluster)
    env = [{"name": "PASSWORD", "value": "hunter2"}]
    body = json.loads(pod_body(annotations={"big": "x" * 1_048_576}, managedFields=[{"m": "y" * 200_000}]))
    body["pod"]["spec"]["containers"] = [{"name": "app", "image": "cart:1", "env": env}]
    response = post("/doors/evict", json.dumps(body).encode(), authorization=f"Bearer {token}")
    record = json.dumps(snapshots.read(Decision.objects.get().pod_snapshot))
    assert (response.status_code, response.json()["allow"]) == (200, False)
    assert len(record) <= 64 * 1024
    assert "hunter2" not in record
    assert "managedFields" not in record
