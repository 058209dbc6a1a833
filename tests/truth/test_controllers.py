"""What the controllers of a cluster do about an eviction."""

from typing import Any

import pytest

from tests.truth.server import RESERVED, Api, Namespace

APP = {"app": "cart"}


def workload(ns: Namespace, kind: str, node: str, **spec: Any) -> str:
    """A workload whose pods run on one node; the path of its collection."""
    template = {
        "metadata": {"labels": APP},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": node},
            "tolerations": [{"key": RESERVED["key"], "operator": "Exists"}],
            "containers": [{"name": "main", "image": "registry.example/app:1"}],
        },
    }
    path = f"/apis/apps/v1/namespaces/{ns.name}/{kind}"
    ns.api.post(
        path,
        {
            "metadata": {"name": "cart"},
            "spec": {"selector": {"matchLabels": APP}, "template": template, **spec},
        },
    )
    return path


def ready(ns: Namespace) -> list[dict[str, Any]]:
    """The pods that are ready and not ending."""
    pods = ns.api.get(ns.pods)["items"]
    conditions = {p["metadata"]["name"]: p["status"].get("conditions", ()) for p in pods}
    up = {n for n, cs in conditions.items() if any((c["type"], c["status"]) == ("Ready", "True") for c in cs)}
    return [p for p in pods if p["metadata"]["name"] in up and "deletionTimestamp" not in p["metadata"]]


def test_an_evicted_pod_of_a_deployment_comes_back_under_another_name(ns: Namespace, node: str) -> None:
    workload(ns, "deployments", node, replicas=2)
    ns.api.wait(lambda: len(ready(ns)) == 2, "two ready pods")
    first = ready(ns)[0]["metadata"]["name"]
    assert ns.evict(first).status == 201
    ns.api.wait(lambda: first not in ns.names() and len(ready(ns)) == 2, "its replacement")


def test_an_evicted_pod_of_a_stateful_set_comes_back_under_its_name(ns: Namespace, node: str) -> None:
    workload(ns, "statefulsets", node, replicas=1, serviceName="cart")
    ns.api.wait(lambda: len(ready(ns)) == 1, "a ready pod")
    uid = ready(ns)[0]["metadata"]["uid"]
    ns.evict("cart-0")
    ns.api.wait(lambda: [p for p in ready(ns) if p["metadata"]["uid"] != uid], "its replacement")
    assert ready(ns)[0]["metadata"]["name"] == "cart-0"
    assert ns.evict("cart-0", preconditions={"uid": uid}).status == 409


def test_owners_are_named_from_the_pod_up(ns: Namespace, node: str) -> None:
    workload(ns, "deployments", node, replicas=1)
    ns.api.wait(lambda: len(ready(ns)) == 1, "a ready pod")
    owner = ready(ns)[0]["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["controller"]) == ("ReplicaSet", True)
    above = ns.api.get(f"/apis/apps/v1/namespaces/{ns.name}/replicasets/{owner['name']}")["metadata"][
        "ownerReferences"
    ][0]
    assert (above["kind"], above["name"]) == ("Deployment", "cart")


@pytest.mark.parametrize("kind", ["deployments", "statefulsets"])
def test_a_workload_counts_what_is_ready(ns: Namespace, node: str, kind: str) -> None:
    path = workload(ns, kind, node, replicas=2)
    ns.api.wait(lambda: ns.api.get(f"{path}/cart")["status"].get("readyReplicas") == 2, "two ready")


def test_a_budget_counts_and_follows_its_pods(ns: Namespace, node: str) -> None:
    workload(ns, "deployments", node, replicas=3)
    ns.budget("cart", APP, maxUnavailable="34%")
    ns.api.wait(lambda: ns.allowance("cart")["currentHealthy"] == 3, "three healthy")
    status = ns.allowance("cart")
    assert (status["expectedPods"], status["desiredHealthy"], status["disruptionsAllowed"]) == (3, 1, 2)
    assert [(c["type"], c["status"], c["reason"]) for c in status["conditions"]] == [
        ("DisruptionAllowed", "True", "SufficientPods")
    ]


def test_the_controllers_pods_go_with_their_owner(ns: Namespace, node: str) -> None:
    path = workload(ns, "deployments", node, replicas=1)
    ns.api.wait(lambda: len(ready(ns)) == 1, "a ready pod")
    ns.api.call("DELETE", f"{path}/cart", {"propagationPolicy": "Background"})
    ns.api.wait(lambda: ns.names() == [], "the pods' end")


def test_a_pod_that_no_node_takes_says_why(ns: Namespace, node: str) -> None:
    ns.pod("cart", nodeSelector={"no": "node"})
    ns.api.wait(lambda: ns.get("cart")["status"].get("conditions"), "the scheduler's look")
    told = ns.get("cart")["status"]["conditions"][0]
    assert (told["type"], told["status"], told["reason"]) == ("PodScheduled", "False", "Unschedulable")
    assert "didn't match Pod's node affinity/selector" in told["message"]


def test_kubectl_drains_a_node(api: Api) -> None:
    ns, node = api.namespace(), api.node(reserved=True)
    workload(ns, "deployments", node, replicas=2)
    ns.api.wait(lambda: len(ready(ns)) == 2, "two ready pods")
    done = api.kubectl("drain", node, "--ignore-daemonsets", "--timeout=40s")
    assert f"node/{node} drained" in done.stdout
    assert api.get(f"/api/v1/nodes/{node}")["spec"]["unschedulable"] is True


def test_kubectl_drain_says_what_a_budget_holds(api: Api) -> None:
    ns, node = api.namespace(), api.node(reserved=True)
    workload(ns, "deployments", node, replicas=1)
    ns.api.wait(lambda: len(ready(ns)) == 1, "a ready pod")
    ns.budget("cart", APP, maxUnavailable=0)
    done = api.kubectl("drain", node, "--ignore-daemonsets", "--timeout=1s")
    assert "Cannot evict pod as it would violate the pod's disruption budget." in done.stderr
