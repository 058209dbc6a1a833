"""Owners of pods: how many replicas they want and have."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kube.conftest import Connect
from tests.kube.server import Answer, serving, status


def owner(spec: dict[str, Any], state: dict[str, Any], *above: dict[str, Any]) -> Answer:
    metadata = {"name": "cart", "namespace": "shop", "uid": "o1", "ownerReferences": list(above)}
    return Answer(body={"metadata": metadata, "spec": spec, "status": state})


@pytest.mark.parametrize(
    ("kind", "api_version", "answer", "numbers"),
    [
        ("ReplicaSet", "apps/v1", owner({"replicas": 3}, {"readyReplicas": 2}), (3, 2)),
        ("StatefulSet", "apps/v1", owner({}, {"readyReplicas": 1}), (1, 1)),
        ("DaemonSet", "", owner({}, {"desiredNumberScheduled": 5, "numberReady": 4}), (5, 4)),
        ("Job", "batch/v1", owner({"parallelism": 4}, {"ready": 3}), (4, 3)),
        ("ReplicationController", "v1", owner({"replicas": 0}, {}), (0, 0)),
    ],
)
def test_replicas_are_read_where_each_kind_has_them(
    connect: Connect, kind: str, api_version: str, answer: Answer, numbers: tuple[int, int]
) -> None:
    with serving(answer) as server:
        view = connect(server.url).read_owner("shop", kind, "cart", api_version=api_version)
    assert (view.desired, view.ready) == numbers
    assert view.known
    assert server.requests[0].path.endswith(f"/namespaces/shop/{kind.lower()}s/cart")


def test_a_replica_set_names_its_deployment(connect: Connect) -> None:
    above = {"kind": "Deployment", "name": "shop-cart", "uid": "d1", "controller": True}
    with serving(owner({"replicas": 1}, {}, above)) as server:
        assert connect(server.url).read_owner("shop", "ReplicaSet", "cart").deployment == "shop-cart"


@pytest.mark.parametrize(
    ("kind", "api_version"),
    [
        ("Rollout", "argoproj.io/v1alpha1"),
        ("Job", "batch.volcano.sh/v1"),
        ("StatefulSet", "apps.kruise.io/v1"),
        ("", ""),
    ],
)
def test_kinds_of_others_are_not_read_and_say_why(connect: Connect, kind: str, api_version: str) -> None:
    with serving(Answer()) as server:
        view = connect(server.url).read_owner("shop", kind, "cart", api_version=api_version)
        assert server.requests == []
    assert (view.desired, view.ready, view.known) == (None, None, False)
    assert "not known" in view.reason


def test_an_owner_that_is_gone_says_so(connect: Connect) -> None:
    with serving(status(404, "not found", "NotFound")) as server:
        view = connect(server.url).read_owner("shop", "ReplicaSet", "cart")
    assert (view.known, view.reason) == (False, "ReplicaSet cart does not exist any more")
