"""Lists: pages, a state that is forgotten in the middle, and what is decoded of the items."""

from __future__ import annotations

from urllib.parse import parse_qs

import pytest

from deschedui.kube.errors import Expired, InvalidAnswer, Stopped, Unreachable
from tests.kube.conftest import Connect
from tests.kube.server import Answer, Request, page, serving, status

GONE = status(410, "The provided continue parameter is too old", "Expired")


def query(request: Request) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(request.target.partition("?")[2]).items()}


def names(connect: Connect, url: str) -> list[str]:
    return [pod.name for pod in connect(url).list_pods_brief()]


def test_pages_are_joined_in_order(connect: Connect) -> None:
    with serving(page("a", "b", following="t/1"), page("c", following="t&2"), page("d")) as server:
        assert names(connect, server.url) == ["a", "b", "c", "d"]
    assert [query(request) for request in server.requests] == [
        {"limit": "500"},
        {"limit": "500", "continue": "t/1"},
        {"limit": "500", "continue": "t&2"},
    ]


def test_a_state_that_was_forgotten_starts_the_list_again(connect: Connect) -> None:
    with serving(page("old", following="t"), GONE, page("new", following="t"), page("er")) as server:
        assert names(connect, server.url) == ["new", "er"]


def test_a_list_that_never_ends_up_whole_is_given_up(connect: Connect) -> None:
    def script(request: Request) -> Answer:
        return GONE if "continue" in request.target else page("a", following="t")

    with serving(script) as server:
        with pytest.raises(Expired):
            names(connect, server.url)
        assert len(server.requests) == 8


def test_a_page_that_points_to_itself_is_no_list(connect: Connect) -> None:
    with serving(page("a", following="t")) as server, pytest.raises(InvalidAnswer, match="itself"):
        names(connect, server.url)


def test_a_list_stops_between_two_pages(connect: Connect) -> None:
    with serving(page("a", following="t"), page("b")) as server:
        answers = iter([False, True])
        with pytest.raises(Stopped):
            connect(server.url).list_pods_brief(should_stop=lambda: next(answers))
        assert len(server.requests) == 1


def test_a_connection_that_breaks_between_two_pages_ends_the_list(connect: Connect) -> None:
    with serving(page("a", following="t"), Answer(raw=b"")) as server, pytest.raises(Unreachable):
        names(connect, server.url)


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b"<html>", b'{"items": 5}', b'{"items": [5]}', b"\xff\xfe"]
)
def test_what_is_no_list_is_refused(connect: Connect, body: bytes) -> None:
    with serving(Answer(body=body)) as server, pytest.raises(InvalidAnswer):
        names(connect, server.url)


@pytest.mark.parametrize("body", [b'{"items": null}', b'{"metadata": {}}', b"{}"])
def test_an_empty_list_may_be_written_as_null(connect: Connect, body: bytes) -> None:
    with serving(Answer(body=body)) as server:
        assert names(connect, server.url) == []


def test_each_namespace_is_listed_once(connect: Connect) -> None:
    with serving(page("a")) as server:
        connect(server.url).list_pods_brief(["shop", "till", "shop"], label_selector="app=x")
    assert [request.path for request in server.requests] == [
        "/api/v1/namespaces/shop/pods",
        "/api/v1/namespaces/till/pods",
    ]
    assert query(server.requests[0])["labelSelector"] == "app=x"


def test_no_namespaces_are_no_calls(connect: Connect) -> None:
    with serving(page("a")) as server:
        assert connect(server.url).list_pods_brief([]) == []
        assert server.requests == []


def test_a_brief_says_what_is_followed(connect: Connect) -> None:
    item = {
        "metadata": {
            "name": "cart-0",
            "namespace": "shop",
            "uid": "u1",
            "deletionTimestamp": "2026-11-30T10:00:00Z",
            "annotations": {"descheduler.alpha.kubernetes.io/eviction-in-progress": ""},
            "ownerReferences": [
                {"kind": "Other", "name": "o", "uid": "o1"},
                {"kind": "ReplicaSet", "name": "rs", "uid": "o2", "controller": True},
            ],
        },
        "spec": {"nodeName": "node-a", "containers": [{"name": "x"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }
    with serving(Answer(body={"items": [item]})) as server:
        (brief,) = connect(server.url).list_pods_brief()
    assert (brief.uid, brief.node_name, brief.phase, brief.ready) == ("u1", "node-a", "Running", True)
    assert (brief.owner_kind, brief.owner_uid) == ("ReplicaSet", "o2")
    assert brief.eviction_in_progress == "true"
    assert brief.deletion_timestamp is not None


# ---- a snapshot's lists


def by_path(request: Request) -> Answer:
    return page("cart-0") if request.path.endswith(("/pods", "/nodes")) else Answer(body={"items": []})


def test_a_snapshot_reads_each_list_once_and_the_freshest_state(connect: Connect) -> None:
    with serving(by_path) as server:
        lists = connect(server.url).snapshot_lists()

    assert sorted(request.path for request in server.requests) == [
        "/api/v1/namespaces",
        "/api/v1/nodes",
        "/api/v1/persistentvolumeclaims",
        "/api/v1/pods",
        "/apis/apps/v1/replicasets",
        "/apis/apps/v1/statefulsets",
        "/apis/policy/v1/poddisruptionbudgets",
        "/apis/scheduling.k8s.io/v1/priorityclasses",
    ]
    assert all("resourceVersion" not in query(request) for request in server.requests)
    assert [pod.metadata.name for pod in lists.pods] == ["cart-0"]
    assert lists.resource_versions["pods"] == "7"
    assert lists.raw_pods == {}


def test_a_snapshot_keeps_the_bytes_of_pods_and_nodes_when_asked(connect: Connect) -> None:
    with serving(by_path) as server:
        lists = connect(server.url).snapshot_lists(keep_raw=True)
    assert [pod.metadata.name for pod in lists.pods] == ["cart-0"]
    assert b'"uid-cart-0"' in bytes(lists.raw_pods["uid-cart-0"])
    assert b'"uid-cart-0"' in bytes(lists.raw_nodes["uid-cart-0"])


def test_a_snapshot_stops_when_asked(connect: Connect) -> None:
    with serving(by_path) as server, pytest.raises(Stopped):
        connect(server.url).snapshot_lists(lambda: True)
