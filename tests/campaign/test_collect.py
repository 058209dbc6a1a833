"""The accounts are read as they are written."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from decisions.models import Cluster
from decisions.services import carryout, verdicts
from decisions.services.actors import Actor
from deschedui.demo.controlplane import WORKER as WORKER_USER
from tests.builders import NOW, make_decision
from tests.campaign.accounts import WORKER, Call, Sent
from tests.campaign.collect import calls, sent
from tests.domain.fake_cluster import FakeClock, FakeCluster, a_pod, using


def entry(**changes: object) -> dict[str, object]:
    """An entry of the audit log."""
    return {
        "user": {"username": WORKER_USER},
        "objectRef": {"subresource": "eviction"},
        "requestObject": {"deleteOptions": {"preconditions": {"uid": "uid-1"}}},
        "responseStatus": {"code": 201},
        "requestReceivedTimestamp": "1970-01-01T00:00:05.250000Z",
        **changes,
    }


def test_an_eviction_of_the_audit_log_is_a_call_of_ours() -> None:
    assert list(calls([entry()])) == [Call("uid-1", WORKER, 5.25, 201)]


def test_an_eviction_without_a_uid_is_one_of_nobody_we_know() -> None:
    (call,) = calls([entry(requestObject=None, user={"username": "mallory"})])
    assert (call.uid, call.who) == ("", "mallory")


def test_an_eviction_whose_answer_is_missing_was_not_accepted() -> None:
    (call,) = calls([entry(responseStatus={})])
    assert not call.accepted


@pytest.mark.django_db
def test_the_worker_notes_its_last_test_before_each_call(
    cluster: Cluster, ada: User, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    fake, row = FakeCluster(), make_decision(cluster, pod_uid="uid-1")
    fake.add_owner()
    fake.add(a_pod(uid="uid-1"))
    verdicts.approve(decision_id=row.pk, version=1, by=Actor.person(ada), undo_seconds=0, now=NOW)
    with using(fake), caplog.at_level(logging.INFO, "decisions.services.carryout"):
        carryout.carry_out(cluster.pk, worker="w1", clock=FakeClock())
    (tmp_path / "worker.log").write_text("\n".join(caplog.messages))
    assert list(sent([tmp_path / "worker.log"])) == [Sent(row.pk, 1, NOW.timestamp())]
