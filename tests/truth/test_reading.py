"""Lists with selectors and pages, single reads, and what a server says when it cannot."""

import base64
import json

import pytest

from tests.truth.server import Api, Namespace, names


@pytest.fixture
def three(ns: Namespace) -> Namespace:
    """Three pods: two of the shop, one of them a canary, and one of nobody."""
    ns.pod("cart", labels={"app": "shop", "tier": "web"}, node="ghost")
    ns.pod("cart-canary", labels={"app": "shop", "canary": ""}, node="ghost-2")
    ns.pod("other", labels={"weight": "7"}, schedulerName="nobody")
    return ns


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("app=shop", ["cart", "cart-canary"]),
        ("app==shop,tier=web", ["cart"]),
        ("app!=shop", ["other"]),
        ("tier in (web, api)", ["cart"]),
        ("tier notin (web)", ["cart-canary", "other"]),
        ("canary", ["cart-canary"]),
        ("!app", ["other"]),
        ("canary=", ["cart-canary"]),
        ("weight>5", ["other"]),
        ("weight<5", []),
    ],
)
def test_a_label_selector_names_pods(three: Namespace, selector: str, expected: list[str]) -> None:
    quoted = selector.replace(" ", "%20").replace("=", "%3D").replace("<", "%3C").replace(">", "%3E")
    assert three.names(f"?labelSelector={quoted}") == expected


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("metadata.name=cart", ["cart"]),
        ("spec.nodeName=ghost", ["cart"]),
        ("spec.nodeName=", ["other"]),
        ("spec.nodeName!=ghost", ["cart-canary", "other"]),
        ("status.phase=Pending,spec.nodeName==ghost-2", ["cart-canary"]),
        ("status.phase=Running", []),
    ],
)
def test_a_field_selector_names_pods(three: Namespace, selector: str, expected: list[str]) -> None:
    assert three.names(f"?fieldSelector={selector.replace('=', '%3D')}") == expected


@pytest.mark.parametrize(
    "query",
    [
        "labelSelector=a%20in%20(",
        "labelSelector=%3D%3Da",
        "labelSelector=a,",
        "labelSelector=a%20b",
        "labelSelector=a%3D%3D%3Db",
        "fieldSelector=spec.bogus%3Da",
        "fieldSelector=spec",
        "limit=abc",
        "resourceVersion=abc",
    ],
)
def test_a_bad_query_is_a_bad_request_in_the_servers_words(api: Api, query: str) -> None:
    said = {
        "labelSelector=a%20in%20(": "unable to parse requirement: found '', expected: ',', ')' or identifier",
        "labelSelector=%3D%3Da": "found '==', expected: !, identifier, or 'end of string'",
        "labelSelector=a,": "found '', expected: identifier after ','",
        "labelSelector=a%20b": "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
        "labelSelector=a%3D%3D%3Db": "unable to parse requirement: found '=', expected: identifier",
        "fieldSelector=spec.bogus%3Da": "field label not supported: spec.bogus",
        "fieldSelector=spec": "invalid selector: 'spec'; can't understand 'spec'",
        "limit=abc": 'strconv.ParseInt: parsing "abc": invalid syntax',
        "resourceVersion=abc": 'invalid resource version: resourceVersion: Invalid value: "abc": strconv.ParseUint: '
        'parsing "abc": invalid syntax',
    }
    answer = api.call("GET", f"/api/v1/pods?{query}")
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": said[query],
        "reason": "BadRequest",
        "code": 400,
    }


def test_pages_give_every_pod_once_in_order(three: Namespace) -> None:
    first = three.api.get(f"{three.pods}?limit=2")
    rest = three.api.get(f"{three.pods}?limit=2&continue={first['metadata']['continue']}")
    assert [p["metadata"]["name"] for p in first["items"] + rest["items"]] == ["cart", "cart-canary", "other"]
    assert first["metadata"]["remainingItemCount"] == 1
    assert "continue" not in rest["metadata"]


def test_a_page_with_a_selector_does_not_say_how_many_are_left(three: Namespace) -> None:
    meta = three.api.get(f"{three.pods}?limit=1&labelSelector=app%3Dshop")["metadata"]
    assert "continue" in meta
    assert "remainingItemCount" not in meta


def test_pages_show_one_moment(three: Namespace) -> None:
    first = three.api.get(f"{three.pods}?limit=1")["metadata"]
    three.pod("later")
    three.api.call("DELETE", f"{three.pods}/other")
    rest = three.api.get(f"{three.pods}?limit=9&continue={first['continue']}")
    assert [p["metadata"]["name"] for p in rest["items"]] == ["cart-canary", "other"]
    assert rest["metadata"]["resourceVersion"] == first["resourceVersion"]


def test_a_list_of_all_namespaces_pages_across_them(api: Api) -> None:
    one, two = sorted((api.namespace(), api.namespace()), key=lambda ns: ns.name)
    one.pod("same", labels={"of": one.name})
    two.pod("same", labels={"of": one.name})
    page = api.get(f"/api/v1/pods?limit=1&labelSelector=of%3D{one.name}")
    rest = api.get(
        f"/api/v1/pods?limit=1&labelSelector=of%3D{one.name}&continue={page['metadata']['continue']}"
    )
    assert [p["metadata"]["namespace"] for p in page["items"] + rest["items"]] == [one.name, two.name]


def test_a_continue_token_takes_no_resource_version(three: Namespace) -> None:
    token = three.api.get(f"{three.pods}?limit=1")["metadata"]["continue"]
    answer = three.api.call("GET", f"{three.pods}?limit=1&continue={token}&resourceVersion=5")
    assert (answer.status, answer.message) == (
        400,
        "specifying resource version is not allowed when using continue",
    )


def test_nonsense_is_no_continue_token(three: Namespace) -> None:
    answer = three.api.call("GET", f"{three.pods}?limit=1&continue=abc")
    assert answer.status == 400
    assert answer.message.startswith("invalid continue token: continue key is not valid: ")


def test_an_old_page_has_expired_and_says_how_to_go_on(ns: Namespace) -> None:
    path = f"/api/v1/namespaces/{ns.name}/events"  # a real server keeps no cache of events that could still answer
    for name in ("a", "b"):
        about = {"kind": "Pod", "namespace": ns.name, "name": "cart"}
        ns.api.post(path, {"metadata": {"name": name}, "involvedObject": about})
    ns.api.forget_the_past()
    content = json.dumps({"v": "meta.k8s.io/v1", "rv": 1, "start": "/a\0"})
    token = base64.urlsafe_b64encode(content.encode()).decode().rstrip("=")
    answer = ns.api.call("GET", f"{path}?limit=1&continue={token}")
    assert (answer.status, answer.body["reason"], answer.body["code"]) == (410, "Expired", 410)
    said = "The provided continue parameter is too old to display a consistent list result."
    assert answer.message.startswith(said)
    restarted = ns.api.get(f"{path}?limit=1&continue={answer.body['metadata']['continue']}")
    assert [e["metadata"]["name"] for e in restarted["items"]] == ["b"]


def test_a_list_from_the_cache_ignores_the_limit(three: Namespace) -> None:
    three.api.wait(lambda: len(three.names("?limit=1&resourceVersion=0")) == 3, "all three in the cache")


def test_a_list_from_the_future_times_out(three: Namespace) -> None:
    answer = three.api.call("GET", f"{three.pods}?resourceVersion=99999999")
    current = answer.message.rpartition(" ")[2]
    assert answer.message == f"Timeout: Too large resource version: 99999999, current: {current}"
    assert (answer.status, answer.body["reason"], answer.headers["retry-after"]) == (504, "Timeout", "1")
    assert answer.body["details"]["causes"] == [
        {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    ]


def test_items_of_a_list_carry_no_kind_and_one_object_does(three: Namespace) -> None:
    listed = three.api.get(three.pods)
    assert (listed["kind"], listed["apiVersion"]) == ("PodList", "v1")
    assert "kind" not in listed["items"][0]
    assert three.get("cart")["kind"] == "Pod"


@pytest.mark.parametrize(
    ("path", "message", "details"),
    [
        ("/api/v1/namespaces/default/pods/nope", 'pods "nope" not found', {"name": "nope", "kind": "pods"}),
        (
            "/apis/apps/v1/namespaces/default/deployments/nope",
            'deployments.apps "nope" not found',
            {"name": "nope", "group": "apps", "kind": "deployments"},
        ),
        ("/api/v1/nodes/nope", 'nodes "nope" not found', {"name": "nope", "kind": "nodes"}),
        ("/api/v1/namespaces/default/nonsense", "the server could not find the requested resource", {}),
        ("/apis/apps/v1/namespaces/default/things", "the server could not find the requested resource", {}),
    ],
)
def test_what_is_not_there_is_a_404(api: Api, path: str, message: str, details: dict[str, str]) -> None:
    answer = api.call("GET", path)
    assert (answer.status, answer.message, answer.body["reason"]) == (404, message, "NotFound")
    assert answer.body["details"] == details


@pytest.mark.parametrize("path", ["/nonsense", "/apis/nonsense/v1/things"])
def test_a_path_outside_every_group_is_answered_in_plain_text(api: Api, path: str) -> None:
    answer = api.call("GET", path)
    assert (answer.status, answer.body) == (404, "404 page not found\n")


def test_a_method_that_a_resource_does_not_have_is_a_405(api: Api) -> None:
    answer = api.call("POST", "/api/v1/pods", {})
    assert (answer.status, answer.body["reason"]) == (405, "MethodNotAllowed")
    assert answer.message == "the server does not allow this method on the requested resource"


def test_the_official_client_reads_pages(three: Namespace) -> None:
    core = three.api.core()
    page = core.list_namespaced_pod(three.name, limit=2, label_selector="app=shop")
    assert names(page.items) == ["cart", "cart-canary"]
    assert page.metadata is not None


def test_kubectl_reads_with_selectors(three: Namespace) -> None:
    done = three.api.kubectl(
        "get", "pods", "-n", three.name, "-l", "app=shop", "--chunk-size=1", "-o", "name"
    )
    assert done.stdout.split() == ["pod/cart", "pod/cart-canary"]


def test_kubectl_says_that_a_pod_is_not_there(ns: Namespace) -> None:
    done = ns.api.kubectl("get", "pod", "nope", "-n", ns.name)
    assert done.stderr == 'Error from server (NotFound): pods "nope" not found\n'


@pytest.mark.parametrize(
    "kind",
    [
        "nodes",
        "namespaces",
        "pvc",
        "events",
        "deploy",
        "rs",
        "sts",
        "ds",
        "jobs",
        "pdb",
        "pc",
        "events.v1.events.k8s.io",
    ],
)
def test_kubectl_knows_each_kind_that_is_used(api: Api, kind: str) -> None:
    done = api.kubectl("get", kind, "-A", "-o", "name")
    assert (done.returncode, done.stderr) == (0, "")
