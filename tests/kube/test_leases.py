"""The Lease on the wire: what is read of it, what is written, and over which version."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from deschedui.kube.errors import Conflict, Forbidden, InvalidAnswer
from deschedui.kube.leases import LeaseClaim, LeaseView, lease_view
from tests.kube.conftest import Connect
from tests.kube.server import Answer, serving, status

AT = datetime(2026, 11, 30, 3, tzinfo=UTC)
CLAIM = LeaseClaim("us", 8, AT)
SEEN = LeaseView("us", 7, "41", uid="u1", annotations={"theirs": "stays"}, labels={"team": "x"})


def lease(counter: str | None = "7", holder: str | None = "us") -> dict[str, Any]:
    annotations = {} if counter is None else {"deschedui/counter": counter}
    metadata = {"name": "deschedui", "resourceVersion": "41", "uid": "u1", "annotations": annotations}
    return {"metadata": metadata, "spec": {} if holder is None else {"holderIdentity": holder}}


def test_a_lease_gives_its_holder_and_its_counter(connect: Connect) -> None:
    with serving(Answer(body=lease())) as server:
        view = connect(server.url).read_lease("deschedui", "deschedui")
    assert view is not None
    assert (view.holder, view.counter, view.resource_version) == ("us", 7, "41")
    assert server.requests[0].path == "/apis/coordination.k8s.io/v1/namespaces/deschedui/leases/deschedui"


def test_a_lease_that_is_not_there_is_none(connect: Connect) -> None:
    with serving(status(404, "not found", "NotFound")) as server:
        assert connect(server.url).read_lease("deschedui", "deschedui") is None


@pytest.mark.parametrize("text", [None, "", "-1", "1.0", "seven", "9" * 16, "9" * 400, "٣"])
def test_a_counter_that_no_installation_writes_is_none(text: str | None) -> None:
    assert lease_view(json.dumps(lease(text)).encode()).counter is None


@pytest.mark.parametrize("body", [b"[]", b"<html>", b"{}", b'{"metadata": {"name": 3}}'])
def test_an_answer_that_is_no_lease_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidAnswer):
        lease_view(body)


def test_a_lease_without_a_holder_is_nobodys() -> None:
    assert lease_view(json.dumps(lease(holder=None)).encode()).holder == ""


def test_an_update_names_the_version_and_keeps_what_is_others(connect: Connect) -> None:
    with serving(Answer(body=lease("8"))) as server:
        connect(server.url).update_lease("deschedui", "deschedui", CLAIM, seen=SEEN)
    request = server.requests[0]
    sent = json.loads(request.body)
    assert (request.method, sent["spec"]["holderIdentity"]) == ("PUT", "us")
    assert sent["metadata"]["annotations"] == {"theirs": "stays", "deschedui/counter": "8"}
    assert (sent["metadata"]["resourceVersion"], sent["metadata"]["uid"]) == ("41", "u1")
    assert sent["metadata"]["labels"]["team"] == "x"
    assert sent["spec"]["renewTime"] == "2026-11-30T03:00:00.000000Z"


def test_an_update_over_another_version_is_a_conflict(connect: Connect) -> None:
    with serving(status(409, "the object has been modified", "Conflict")) as server, pytest.raises(Conflict):
        connect(server.url).update_lease("deschedui", "deschedui", CLAIM, seen=SEEN)


def test_a_missing_right_is_named(connect: Connect) -> None:
    text = 'User "w" cannot create resource "leases" in API group "coordination.k8s.io" in the namespace "deschedui"'
    with serving(status(403, text, "Forbidden")) as server, pytest.raises(Forbidden, match="grant create"):
        connect(server.url).create_lease("deschedui", "deschedui", CLAIM)
