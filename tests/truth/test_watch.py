"""Watches: what changes, in order, from a moment on."""

from typing import Any

from kubernetes import client, watch

from tests.truth.server import Api, Namespace, names


def test_a_watch_tells_each_change_in_order(ns: Namespace) -> None:
    start = ns.api.get(ns.pods)["metadata"]["resourceVersion"]
    ns.pod("cart", node="ghost")
    ns.api.merge(f"{ns.pods}/cart", {"metadata": {"labels": {"a": "1"}}})
    ns.api.call("DELETE", f"{ns.pods}/cart?gracePeriodSeconds=0")
    with ns.api.watching(f"{ns.pods}?watch=1&resourceVersion={start}&timeoutSeconds=1") as events:
        seen = [(e["type"], e["object"]["metadata"]["name"]) for e in events]
    marked_for_its_end = ("MODIFIED", "cart")
    assert seen == [("ADDED", "cart"), ("MODIFIED", "cart"), marked_for_its_end, ("DELETED", "cart")]


def test_a_pod_on_no_node_is_marked_too_before_it_is_gone(ns: Namespace) -> None:
    start = ns.pod("cart", schedulerName="nobody")["metadata"]["resourceVersion"]
    ns.api.call("DELETE", f"{ns.pods}/cart")
    with ns.api.watching(f"{ns.pods}?watch=1&resourceVersion={start}&timeoutSeconds=1") as events:
        assert [e["type"] for e in events] == ["MODIFIED", "DELETED"]


def test_a_watch_without_a_version_starts_with_what_is_there(ns: Namespace) -> None:
    ns.pod("cart", node="ghost")
    with ns.api.watching(f"{ns.pods}?watch=1&timeoutSeconds=1") as events:
        assert [(e["type"], e["object"]["kind"]) for e in events] == [("ADDED", "Pod")]


def test_a_watch_hears_what_happens_while_it_runs(ns: Namespace) -> None:
    start = ns.api.get(ns.pods)["metadata"]["resourceVersion"]
    with ns.api.watching(f"{ns.pods}?watch=true&resourceVersion={start}&timeoutSeconds=20") as events:
        ns.pod("cart", node="ghost")
        assert next(events)["object"]["metadata"]["name"] == "cart"


def test_an_object_that_leaves_the_selection_is_deleted_for_it(ns: Namespace) -> None:
    start = ns.api.get(ns.pods)["metadata"]["resourceVersion"]
    ns.pod("cart", labels={"app": "x"}, node="ghost")
    ns.api.merge(f"{ns.pods}/cart", {"metadata": {"labels": {"app": "y"}}})
    query = f"watch=1&resourceVersion={start}&timeoutSeconds=1&labelSelector=app%3Dx"
    with ns.api.watching(f"{ns.pods}?{query}") as events:
        assert [e["type"] for e in events] == ["ADDED", "DELETED"]


def test_a_field_selector_narrows_a_watch(ns: Namespace) -> None:
    start = ns.api.get(ns.pods)["metadata"]["resourceVersion"]
    ns.pod("cart", node="ghost")
    ns.pod("other", node="ghost")
    query = f"watch=1&resourceVersion={start}&timeoutSeconds=1&fieldSelector=metadata.name%3Dother"
    with ns.api.watching(f"{ns.pods}?{query}") as events:
        assert [e["object"]["metadata"]["name"] for e in events] == ["other"]


def test_a_watch_that_replaces_a_list_says_where_the_list_ends(ns: Namespace) -> None:
    ns.pod("cart", node="ghost")
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=2"
    with ns.api.watching(f"{ns.pods}?{query}") as events:
        first, end = next(events), next(events)
    assert (first["type"], end["type"]) == ("ADDED", "BOOKMARK")
    assert end["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_a_watch_of_a_version_that_is_none_is_refused(ns: Namespace) -> None:
    answer = ns.api.call("GET", f"{ns.pods}?watch=1&resourceVersion=abc")
    said = 'resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax'
    assert (answer.status, answer.message, answer.body["code"]) == (500, said, 500)


def test_the_official_client_watches(ns: Namespace) -> None:
    ns.pod("cart", node="ghost")
    watcher: Any = watch.Watch
    stream = watcher().stream(ns.api.core().list_namespaced_pod, ns.name, timeout_seconds=1)
    assert [(e["type"], e["object"].metadata.name) for e in stream] == [("ADDED", "cart")]


def test_kubectl_waits_for_what_a_watch_tells_it(ns: Namespace, node: str) -> None:
    ns.pod("cart", node=node)
    done = ns.api.kubectl("wait", "-n", ns.name, "pod/cart", "--for=condition=Ready", "--timeout=20s")
    assert done.stdout == "pod/cart condition met\n"


def test_the_official_client_finds_a_node(api: Api, node: str) -> None:
    nodes = client.CoreV1Api(api.official()).list_node(field_selector=f"metadata.name={node}").items
    assert names(nodes) == [node]
