"""Create, update, patch and delete: conflicts, preconditions, dry runs, graces."""

import json

import pytest

from tests.truth.server import JSON_PATCH, MERGE, STRATEGIC, Api, Namespace

CONTAINERS = [{"name": "main", "image": "registry.example/app:1"}]
MODIFIED = (
    'Operation cannot be fulfilled on pods "cart": the object has been modified; please apply your changes to the '
    "latest version and try again"
)


def test_a_new_pod_gets_the_servers_defaults(ns: Namespace) -> None:
    pod = ns.pod("cart")
    assert (pod["status"]["phase"], pod["status"]["qosClass"]) == ("Pending", "BestEffort")
    assert (pod["spec"]["terminationGracePeriodSeconds"], pod["spec"]["priority"]) == (30, 0)
    assert (pod["spec"]["restartPolicy"], pod["spec"]["schedulerName"]) == ("Always", "default-scheduler")
    assert [t["key"] for t in pod["spec"]["tolerations"]] == [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ]


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}, "Burstable"),
    ],
)
def test_a_new_pod_has_a_qos_class(ns: Namespace, resources: dict[str, object], expected: str) -> None:
    container = CONTAINERS[0] | {"resources": resources}
    pod = ns.api.post(ns.pods, {"metadata": {"name": "cart"}, "spec": {"containers": [container]}})
    assert pod["status"]["qosClass"] == expected


def test_generated_names_differ_and_keep_their_beginning(ns: Namespace) -> None:
    names = {ns.pod()["metadata"]["name"] for _ in range(3)}
    assert len(names) == 3
    assert all(n.startswith("p-") and len(n) == 7 for n in names)


def test_a_priority_comes_from_its_class(ns: Namespace) -> None:
    assert ns.pod("cart", priorityClassName="system-node-critical")["spec"]["priority"] == 2000001000


def test_an_unknown_priority_class_is_forbidden(ns: Namespace) -> None:
    body = {"metadata": {"name": "cart"}, "spec": {"containers": CONTAINERS, "priorityClassName": "nope"}}
    answer = ns.api.call("POST", ns.pods, body)
    assert (answer.status, answer.body["reason"]) == (403, "Forbidden")
    assert answer.message == 'pods "cart" is forbidden: no PriorityClass with name nope was found'


def test_the_same_name_twice_already_exists(ns: Namespace) -> None:
    ns.pod("cart")
    answer = ns.api.call("POST", ns.pods, {"metadata": {"name": "cart"}, "spec": {"containers": CONTAINERS}})
    assert (answer.status, answer.body["reason"]) == (409, "AlreadyExists")
    assert answer.message == 'pods "cart" already exists'
    assert answer.body["details"] == {"name": "cart", "kind": "pods"}


def test_a_namespace_that_is_not_there_is_not_found(api: Api) -> None:
    answer = api.call(
        "POST",
        "/api/v1/namespaces/nope/pods",
        {"metadata": {"name": "p"}, "spec": {"containers": CONTAINERS}},
    )
    assert (answer.status, answer.message) == (404, 'namespaces "nope" not found')


def test_a_namespace_that_ends_takes_nothing_new(api: Api) -> None:
    ns = api.namespace()
    ns.running("holds-it-open")
    api.call("DELETE", f"/api/v1/namespaces/{ns.name}")
    answer = api.call("POST", ns.pods, {"metadata": {"name": "p"}, "spec": {"containers": CONTAINERS}})
    why = f"unable to create new content in namespace {ns.name} because it is being terminated"
    assert (answer.status, answer.message) == (403, f'pods "p" is forbidden: {why}')
    assert answer.body["details"]["causes"] == [
        {
            "reason": "NamespaceTerminating",
            "message": f"namespace {ns.name} is being terminated",
            "field": "metadata.namespace",
        }
    ]


def test_everything_wrong_is_said_at_once(ns: Namespace) -> None:
    answer = ns.api.call("POST", ns.pods, {"metadata": {"name": "Bad_Name"}, "spec": {}})
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    assert answer.message.startswith(
        'Pod "Bad_Name" is invalid: [metadata.name: Invalid value: "Bad_Name": a lowercase'
    )
    assert answer.message.endswith(", spec.containers: Required value]")
    assert [c["field"] for c in answer.body["details"]["causes"]] == ["metadata.name", "spec.containers"]


def test_a_pod_needs_a_name(ns: Namespace) -> None:
    answer = ns.api.call("POST", ns.pods, {"metadata": {}, "spec": {"containers": CONTAINERS}})
    assert (
        answer.message == 'Pod "" is invalid: metadata.name: Required value: name or generateName is required'
    )
    assert answer.body["details"]["kind"] == "Pod"


def test_another_kind_is_refused(ns: Namespace) -> None:
    answer = ns.api.call("POST", ns.pods, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "x"}})
    said = 'Node in version "v1" cannot be handled as a Pod: converting (v1.Node) to (core.Pod): unknown conversion'
    assert (answer.status, answer.message) == (400, said)


def test_another_namespace_is_refused(ns: Namespace) -> None:
    body = {"metadata": {"name": "p", "namespace": "other"}, "spec": {"containers": CONTAINERS}}
    answer = ns.api.call("POST", ns.pods, body)
    said = "the namespace of the provided object does not match the namespace sent on the request"
    assert (answer.status, answer.message) == (400, said)


@pytest.mark.parametrize("body", ["{bad", "", "xx"])
def test_a_body_that_is_not_json_is_refused(ns: Namespace, body: str) -> None:
    answer = ns.api.call("POST", ns.pods, body)
    assert answer.status == 400
    assert answer.message.startswith(
        "the object provided is unrecognized (must be of type Pod): couldn't get version/kind"
    )


def test_another_media_type_is_refused(ns: Namespace) -> None:
    answer = ns.api.call("POST", ns.pods, "{}", media="text/plain")
    assert (answer.status, answer.body["reason"]) == (415, "UnsupportedMediaType")
    assert answer.message == (
        "the body of the request was in an unknown format - accepted media types include: application/json, "
        "application/yaml, application/vnd.kubernetes.protobuf"
    )


def test_a_dry_run_creates_nothing(ns: Namespace) -> None:
    body = {"metadata": {"name": "cart"}, "spec": {"containers": CONTAINERS}}
    answer = ns.api.call("POST", f"{ns.pods}?dryRun=All", body)
    assert (answer.status, answer.body["status"]["phase"]) == (201, "Pending")
    assert "resourceVersion" not in answer.body["metadata"]
    assert ns.names() == []


def test_an_update_of_an_old_version_is_a_conflict(ns: Namespace) -> None:
    pod = ns.pod("cart")
    ns.api.merge(f"{ns.pods}/cart", {"metadata": {"labels": {"seen": "yes"}}})
    answer = ns.api.call("PUT", f"{ns.pods}/cart", pod)
    assert (answer.status, answer.message, answer.body["reason"]) == (409, MODIFIED, "Conflict")
    assert answer.body["details"] == {"name": "cart", "kind": "pods"}


def test_an_update_of_the_newest_version_counts_it_on(ns: Namespace) -> None:
    pod = ns.pod("cart", nodeSelector={"no": "node"})
    ns.api.wait(lambda: ns.get("cart")["status"].get("conditions"), "the scheduler's look")
    pod = ns.get("cart")
    pod["metadata"]["labels"] = {"new": "label"}
    changed = ns.api.call("PUT", f"{ns.pods}/cart", pod).body
    assert changed["metadata"]["labels"] == {"new": "label"}
    assert int(changed["metadata"]["resourceVersion"]) > int(pod["metadata"]["resourceVersion"])


def test_an_update_that_changes_nothing_keeps_the_version(ns: Namespace) -> None:
    pod = ns.running("cart")
    assert (
        ns.api.call("PUT", f"{ns.pods}/cart", pod).body["metadata"]["resourceVersion"]
        == pod["metadata"]["resourceVersion"]
    )


def test_an_update_goes_to_the_name_of_its_path(ns: Namespace) -> None:
    ns.pod("cart")
    answer = ns.api.call(
        "PUT", f"{ns.pods}/cart", {"metadata": {"name": "b"}, "spec": {"containers": CONTAINERS}}
    )
    assert (answer.status, answer.message) == (
        400,
        "the name of the object (b) does not match the name on the URL (cart)",
    )


def test_the_status_is_not_changed_by_the_way(ns: Namespace) -> None:
    ns.running("cart")
    ns.api.merge(f"{ns.pods}/cart", {"status": {"phase": "Failed"}})
    assert ns.get("cart")["status"]["phase"] == "Running"


def test_a_pods_node_is_not_changed_by_an_update(ns: Namespace) -> None:
    ns.running("cart")
    answer = ns.api.call("PATCH", f"{ns.pods}/cart", {"spec": {"nodeName": "other"}}, media=MERGE)
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    assert answer.message.startswith(
        'Pod "cart" is invalid: spec: Forbidden: pod updates may not change fields other than '
        "`spec.containers[*].image`,`spec.initContainers[*].image`"
    )


def test_a_merge_patch_sets_and_removes(ns: Namespace) -> None:
    ns.running("cart", labels={"a": "1", "b": "2"})
    patched = ns.api.merge(f"{ns.pods}/cart", {"metadata": {"labels": {"a": None, "c": "3"}}})
    assert patched["metadata"]["labels"] == {"b": "2", "c": "3"}


def test_a_strategic_patch_merges_conditions_by_type(ns: Namespace) -> None:
    ns.running("cart")
    patch = {"status": {"conditions": [{"type": "Mine", "status": "True"}]}}
    patched = ns.api.call("PATCH", f"{ns.pods}/cart/status", patch, media=STRATEGIC).body
    assert [c["type"] for c in patched["status"]["conditions"]] == ["Mine", "Ready"]


def test_a_strategic_patch_sets_and_removes_annotations(ns: Namespace) -> None:
    ns.running("cart", labels={"a": "1"})
    patch = {"metadata": {"labels": {"a": None}, "annotations": {"why": "test"}}}
    meta = ns.api.call("PATCH", f"{ns.pods}/cart", patch, media=STRATEGIC).body["metadata"]
    assert (meta.get("labels"), meta["annotations"]) == (None, {"why": "test"})


def test_a_json_patch_adds_and_removes(ns: Namespace) -> None:
    ns.running("cart", labels={"a": "1"})
    operations = [
        {"op": "test", "path": "/metadata/labels/a", "value": "1"},
        {"op": "add", "path": "/metadata/labels/x~1y", "value": "2"},
        {"op": "remove", "path": "/metadata/labels/a"},
    ]
    patched = ns.api.call("PATCH", f"{ns.pods}/cart", operations, media=JSON_PATCH)
    assert patched.body["metadata"]["labels"] == {"x/y": "2"}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/metadata/labels/a", "value": "2"},
        {"op": "remove", "path": "/metadata/labels/nope"},
        {"op": "bogus", "path": "/metadata/labels/a"},
    ],
)
def test_a_json_patch_that_does_not_apply_is_rejected(ns: Namespace, operation: dict[str, str]) -> None:
    ns.running("cart", labels={"a": "1"})
    answer = ns.api.call("PATCH", f"{ns.pods}/cart", [operation], media=JSON_PATCH)
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    assert answer.message == "the server rejected our request due to an error in our request"


@pytest.mark.parametrize(
    ("media", "body", "status", "message"),
    [
        (MERGE, "{bad", 400, "invalid JSON patch"),
        (
            MERGE,
            "[]",
            400,
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
        (
            JSON_PATCH,
            "{}",
            400,
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
        ),
        ("application/json", "{}", 415, "415: Unsupported Media Type"),
    ],
)
def test_a_patch_that_is_none_is_refused(
    ns: Namespace, media: str, body: str, status: int, message: str
) -> None:
    ns.running("cart")
    answer = ns.api.call("PATCH", f"{ns.pods}/cart", body, media=media)
    assert (answer.status, answer.message) == (status, message)


@pytest.mark.parametrize(
    ("patch", "status", "message"),
    [
        ({"name": "b"}, 400, "the name of the object (b) does not match the name on the URL (cart)"),
        ({"uid": "b"}, 422, 'Pod "cart" is invalid: metadata.uid: Invalid value: "b": field is immutable'),
        ({"resourceVersion": "1"}, 409, MODIFIED),
    ],
)
def test_a_patch_keeps_who_it_is(ns: Namespace, patch: dict[str, str], status: int, message: str) -> None:
    ns.running("cart")
    answer = ns.api.call("PATCH", f"{ns.pods}/cart", {"metadata": patch}, media=MERGE)
    assert (answer.status, answer.message) == (status, message)


def test_a_dry_patch_shows_and_changes_nothing(ns: Namespace) -> None:
    ns.running("cart")
    shown = ns.api.merge(f"{ns.pods}/cart?dryRun=All", {"metadata": {"labels": {"a": "1"}}})
    assert shown["metadata"]["labels"] == {"a": "1"}
    assert "labels" not in ns.get("cart")["metadata"]


def test_a_deletion_of_another_uid_is_a_conflict(ns: Namespace) -> None:
    uid = ns.running("cart")["metadata"]["uid"]
    answer = ns.api.call("DELETE", f"{ns.pods}/cart", {"preconditions": {"uid": "abc"}})
    assert answer.message == (
        'Operation cannot be fulfilled on Pod "cart": the UID in the precondition (abc) does not match '
        f"the UID in record ({uid}). The object might have been deleted and then recreated"
    )
    assert (answer.status, answer.body["details"]) == (409, {"name": "cart", "kind": "Pod"})


def test_a_deletion_waits_for_the_grace_period(ns: Namespace) -> None:
    ns.running("cart", terminationGracePeriodSeconds=40)
    answer = ns.api.call("DELETE", f"{ns.pods}/cart")
    assert (answer.status, answer.body["kind"]) == (200, "Pod")
    assert answer.body["metadata"]["deletionGracePeriodSeconds"] == 40
    assert ns.get("cart")["metadata"]["generation"] == 2


def test_a_second_deletion_can_only_shorten_the_first(ns: Namespace) -> None:
    ns.running("cart")
    ns.api.call("DELETE", f"{ns.pods}/cart", {"gracePeriodSeconds": 10})
    ns.api.call("DELETE", f"{ns.pods}/cart", {"gracePeriodSeconds": 20})
    assert ns.get("cart")["metadata"]["deletionGracePeriodSeconds"] == 10
    ns.api.call("DELETE", f"{ns.pods}/cart?gracePeriodSeconds=0")
    assert ns.api.call("GET", f"{ns.pods}/cart").status == 404


def test_a_dry_deletion_deletes_nothing(ns: Namespace) -> None:
    ns.running("cart")
    assert ns.api.call("DELETE", f"{ns.pods}/cart?dryRun=All").status == 200
    assert "deletionTimestamp" not in ns.get("cart")["metadata"]


def test_a_collection_is_deleted_by_selector(ns: Namespace) -> None:
    ns.pod("a", labels={"app": "x"}, nodeSelector={"no": "node"})
    ns.pod("b", labels={"app": "y"}, nodeSelector={"no": "node"})
    answer = ns.api.call("DELETE", f"{ns.pods}?labelSelector=app%3Dx")
    assert (answer.status, answer.body["kind"]) == (200, "PodList")
    assert ns.names() == ["b"]


def test_what_is_not_a_pod_is_answered_with_its_end(ns: Namespace) -> None:
    ns.budget("cart", {"app": "x"}, minAvailable=1)
    uid = ns.api.get(f"{ns.budgets}/cart")["metadata"]["uid"]
    answer = ns.api.call("DELETE", f"{ns.budgets}/cart")
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {"name": "cart", "group": "policy", "kind": "poddisruptionbudgets", "uid": uid},
    }


def test_a_finalizer_holds_an_object_until_it_is_taken_off(ns: Namespace) -> None:
    ns.running("cart")
    ns.api.merge(f"{ns.pods}/cart", {"metadata": {"finalizers": ["truth.example/hold"]}})
    ns.api.call("DELETE", f"{ns.pods}/cart?gracePeriodSeconds=0")
    assert "deletionTimestamp" in ns.get("cart")["metadata"]
    ns.api.call("PATCH", f"{ns.pods}/cart", {"metadata": {"finalizers": None}}, media=MERGE)
    assert ns.api.call("GET", f"{ns.pods}/cart").status == 404


def test_kubectl_creates_labels_annotates_and_deletes(ns: Namespace) -> None:
    manifest = json.dumps(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "cart"}, "spec": {"containers": CONTAINERS}}
    )
    assert ns.api.kubectl("create", "-n", ns.name, "-f", "-", stdin=manifest).stdout == "pod/cart created\n"
    assert ns.api.kubectl("label", "-n", ns.name, "pod", "cart", "a=1").stdout == "pod/cart labeled\n"
    assert ns.api.kubectl("annotate", "-n", ns.name, "pod", "cart", "b=2").stdout == "pod/cart annotated\n"
    assert ns.get("cart")["metadata"]["labels"] == {"a": "1"}
    done = ns.api.kubectl("delete", "-n", ns.name, "pod", "cart", "--timeout=20s")
    assert done.stdout.startswith('pod "cart" deleted')
