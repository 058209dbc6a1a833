"""`pods/eviction`: what lets a pod go, what holds it, and in which words."""

import pytest
from kubernetes import client

from tests.truth.server import Api, Namespace

APP = {"app": "cart"}
BLOCKED = "Cannot evict pod as it would violate the pod's disruption budget."
SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def test_a_pod_without_a_budget_is_told_to_end(ns: Namespace) -> None:
    ns.running("cart")
    assert (ns.evict("cart").body, ns.evict("cart").status) == (SUCCESS, 201)
    pod = ns.get("cart")
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 30
    assert "deletionTimestamp" in pod["metadata"]


def test_the_pod_says_that_it_was_evicted(ns: Namespace) -> None:
    ns.running("cart")
    ns.evict("cart")
    told = ns.get("cart")["status"]["conditions"][-1]
    assert (told["type"], told["status"], told["reason"]) == (
        "DisruptionTarget",
        "True",
        "EvictionByEvictionAPI",
    )
    assert told["message"] == "Eviction API: evicting"


def test_the_grace_period_is_the_evictions(ns: Namespace) -> None:
    ns.running("cart")
    ns.evict("cart", gracePeriodSeconds=7)
    assert ns.get("cart")["metadata"]["deletionGracePeriodSeconds"] == 7
    ns.evict("cart", gracePeriodSeconds=3)
    assert ns.get("cart")["metadata"]["deletionGracePeriodSeconds"] == 3
    ns.evict("cart", gracePeriodSeconds=20)
    assert ns.get("cart")["metadata"]["deletionGracePeriodSeconds"] == 3


def test_a_pod_that_is_on_no_node_is_gone_at_once(ns: Namespace) -> None:
    ns.pod("cart", nodeSelector={"no": "node"})
    assert ns.evict("cart").status == 201
    assert ns.api.call("GET", f"{ns.pods}/cart").status == 404


def test_a_pod_that_is_not_there_is_not_found(ns: Namespace) -> None:
    answer = ns.evict("nope")
    assert (answer.status, answer.message) == (404, 'pods "nope" not found')
    assert answer.body["details"] == {"name": "nope", "kind": "pods"}


def test_another_uid_is_a_conflict_and_leaves_the_pod_alone(ns: Namespace) -> None:
    uid = ns.running("cart")["metadata"]["uid"]
    answer = ns.evict("cart", preconditions={"uid": "3f6c1f0e"})
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'Operation cannot be fulfilled on Pod "cart": the UID in the precondition (3f6c1f0e) does not match '
        f"the UID in record ({uid}). The object might have been deleted and then recreated",
        "reason": "Conflict",
        "details": {"name": "cart", "kind": "Pod"},
        "code": 409,
    }
    pod = ns.get("cart")
    assert "deletionTimestamp" not in pod["metadata"]
    assert len(pod["status"]["conditions"]) == 1


def test_the_right_uid_lets_it_go(ns: Namespace) -> None:
    uid = ns.running("cart")["metadata"]["uid"]
    assert ns.evict("cart", preconditions={"uid": uid}).status == 201


def test_an_old_resource_version_is_a_conflict(ns: Namespace) -> None:
    version = ns.running("cart")["metadata"]["resourceVersion"]
    answer = ns.evict("cart", preconditions={"resourceVersion": "1"})
    assert answer.status == 409
    assert answer.message == (
        'Operation cannot be fulfilled on Pod "cart": the ResourceVersion in the precondition (1) does not match the '
        f"ResourceVersion in record ({version}). The object might have been modified"
    )


@pytest.mark.parametrize(("query", "options"), [("?dryRun=All", {}), ("", {"dryRun": ["All"]})])
def test_a_dry_run_changes_nothing(ns: Namespace, query: str, options: dict[str, list[str]]) -> None:
    version = ns.running("cart")["metadata"]["resourceVersion"]
    assert ns.evict("cart", query, **options).body == SUCCESS
    assert ns.get("cart")["metadata"]["resourceVersion"] == version


def test_a_dry_run_knows_only_all(ns: Namespace) -> None:
    ns.running("cart")
    answer = ns.evict("cart", "?dryRun=Some")
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    assert answer.message == (
        'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"'
    )


def test_dry_runs_that_differ_do_not_match(ns: Namespace) -> None:
    ns.running("cart")
    answer = ns.evict("cart", "?dryRun=All", dryRun=["Some"])
    assert (answer.status, answer.message) == (
        500,
        "Non-matching dry-run options in request and content: [All] and [Some]",
    )


@pytest.mark.parametrize("body", [{}, {"metadata": {"name": "other"}}])
def test_the_name_must_be_the_one_of_the_path(ns: Namespace, body: dict[str, object]) -> None:
    ns.running("cart")
    answer = ns.api.call(
        "POST", f"{ns.pods}/cart/eviction", {"apiVersion": "policy/v1", "kind": "Eviction"} | body
    )
    assert (answer.status, answer.message) == (400, "name in URL does not match name in Eviction object")


def test_only_an_eviction_is_taken(ns: Namespace) -> None:
    body = {"apiVersion": "policy/v1", "kind": "Pod", "metadata": {"name": "cart"}}
    answer = ns.api.call("POST", f"{ns.pods}/cart/eviction", body)
    assert answer.status == 400
    assert answer.message.startswith(
        'Pod in version "v1" cannot be handled as a Eviction: no kind "Pod" is registered'
    )


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_an_eviction_can_only_be_posted(ns: Namespace, method: str) -> None:
    assert ns.api.call(method, f"{ns.pods}/cart/eviction", {} if method == "PUT" else None).status == 405


def test_a_budget_that_allows_nothing_holds_the_pod(ns: Namespace) -> None:
    ns.running("cart", labels=APP)
    ns.budget("cart", APP, minAvailable=1)
    answer = ns.evict("cart")
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": BLOCKED,
        "reason": "TooManyRequests",
        "details": {
            "causes": [
                {
                    "reason": "DisruptionBudget",
                    "message": "The disruption budget cart needs 1 healthy pods and has 1 currently",
                }
            ]
        },
        "code": 429,
    }
    assert "retry-after" not in answer.headers
    assert answer.status == 429


def test_a_dry_run_is_held_too(ns: Namespace) -> None:
    ns.running("cart", labels=APP)
    ns.budget("cart", APP, minAvailable=1)
    assert ns.evict("cart", "?dryRun=All").status == 429


def test_the_budget_is_asked_before_the_uid(ns: Namespace) -> None:
    ns.running("cart", labels=APP)
    ns.budget("cart", APP, minAvailable=1)
    assert ns.evict("cart", preconditions={"uid": "3f6c1f0e"}).status == 429


def test_a_budget_that_was_not_looked_at_yet_says_when_to_come_back(ns: Namespace) -> None:
    ns.running("cart", labels=APP)
    for number in range(100):  # the real controller is quick: somewhere in a hundred we are quicker
        ns.budget(f"cart-{number}", APP, counted=False, minAvailable=1)
        answer = ns.evict("cart")
        ns.api.call("DELETE", f"{ns.budgets}/cart-{number}")
        if "retry-after" in answer.headers:
            break
    assert (answer.status, answer.headers["retry-after"], answer.message) == (429, "10", BLOCKED)
    assert answer.body["details"] == {
        "causes": [
            {
                "reason": "DisruptionBudget",
                "message": f"The disruption budget cart-{number} is still being processed by the server.",
            }
        ],
        "retryAfterSeconds": 10,
    }


def test_a_budget_lets_one_go_and_then_no_other(ns: Namespace) -> None:
    for name in ("cart-1", "cart-2"):
        ns.running(name, labels=APP)
    ns.budget("cart", APP, minAvailable=1)
    assert ns.allowance("cart")["disruptionsAllowed"] == 1
    assert ns.evict("cart-1").status == 201
    answer = ns.evict("cart-2")
    assert answer.status == 429
    assert answer.cause() in {
        "The disruption budget cart needs 1 healthy pods and has 1 currently",
        "The disruption budget cart does not allow evicting pods currently",
    }


def test_a_dry_run_spends_nothing_of_the_budget(ns: Namespace) -> None:
    for name in ("cart-1", "cart-2"):
        ns.running(name, labels=APP)
    ns.budget("cart", APP, minAvailable=1)
    assert ns.evict("cart-1", "?dryRun=All").status == 201
    assert ns.allowance("cart")["disruptionsAllowed"] == 1


def test_two_budgets_are_one_too_many(ns: Namespace) -> None:
    ns.running("cart", labels=APP)
    ns.budget("cart-a", APP, minAvailable=0)
    ns.budget("cart-b", APP, minAvailable=0)
    assert ns.evict("cart").body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
        "code": 500,
    }


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_asks_no_budget_and_goes_at_once(ns: Namespace, phase: str) -> None:
    ns.running("cart", labels=APP)
    ns.api.merge(f"{ns.pods}/cart/status", {"status": {"phase": phase}})
    ns.budget("cart", APP, minAvailable=1)
    assert ns.evict("cart").status == 201
    assert ns.api.call("GET", f"{ns.pods}/cart").status == 404


def test_a_pending_pod_asks_no_budget(ns: Namespace) -> None:
    ns.pod("cart", labels=APP, nodeSelector={"no": "node"})
    ns.budget("cart", APP, minAvailable=1)
    assert ns.evict("cart").status == 201


def test_an_ending_pod_asks_no_budget(ns: Namespace) -> None:
    ns.running("cart", labels=APP)
    ns.evict("cart")
    ns.budget("cart", APP, minAvailable=1)
    assert ns.evict("cart").status == 201


def test_an_unready_pod_is_held_while_its_budget_is_short(ns: Namespace) -> None:
    ns.running("cart", labels=APP, ready=False)
    ns.budget("cart", APP, minAvailable=1)
    assert ns.evict("cart").cause() == "The disruption budget cart needs 1 healthy pods and has 0 currently"


def test_an_unready_pod_may_go_while_enough_others_are_healthy(ns: Namespace) -> None:
    ns.running("cart-1", labels=APP)
    ns.running("cart-2", labels=APP, ready=False)
    ns.budget("cart", APP, minAvailable=1)
    assert ns.evict("cart-2").status == 201


def test_an_unready_pod_may_always_go_where_the_budget_says_so(ns: Namespace) -> None:
    ns.running("cart", labels=APP, ready=False)
    ns.budget("cart", APP, minAvailable=1, unhealthyPodEvictionPolicy="AlwaysAllow")
    assert ns.evict("cart").status == 201


def test_a_budget_over_everything_covers_pods_without_labels(ns: Namespace) -> None:
    ns.running("cart")
    ns.api.post(ns.budgets, {"metadata": {"name": "all"}, "spec": {"selector": {}, "minAvailable": 1}})
    ns.api.wait(lambda: "observedGeneration" in ns.allowance("all"))
    assert ns.evict("cart").status == 429


def test_a_budget_of_another_namespace_covers_nothing_here(api: Api) -> None:
    here, there = api.namespace(), api.namespace()
    here.running("cart", labels=APP)
    there.budget("cart", APP, minAvailable=1)
    assert here.evict("cart").status == 201


def test_the_official_client_evicts(ns: Namespace) -> None:
    uid = ns.running("cart")["metadata"]["uid"]
    options = client.V1DeleteOptions(preconditions=client.V1Preconditions(uid=uid))
    eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name="cart"), delete_options=options)
    answer = ns.api.core().create_namespaced_pod_eviction("cart", ns.name, eviction)
    assert answer.kind == "Status"
    assert "deletionTimestamp" in ns.get("cart")["metadata"]


def test_the_official_client_is_refused(ns: Namespace) -> None:
    ns.running("cart", labels=APP)
    ns.budget("cart", APP, minAvailable=1)
    eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name="cart"))
    with pytest.raises(client.ApiException) as refused:
        ns.api.core().create_namespaced_pod_eviction("cart", ns.name, eviction)
    assert (refused.value.status, refused.value.reason) == (429, "Too Many Requests")
