"""`pods/binding`: a pod gets a node, once."""

from typing import Any

import pytest

from tests.truth.server import Answer, Namespace


def bind(ns: Namespace, pod: str, target: dict[str, str], *, named: str = "", query: str = "") -> Answer:
    body: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": named or pod},
        "target": target,
    }
    return ns.api.call("POST", f"{ns.pods}/{pod}/binding{query}", body)


def waiting(ns: Namespace) -> None:
    """A pod that no scheduler takes."""
    ns.pod("cart", schedulerName="nobody")


def test_a_pod_is_given_to_a_node(ns: Namespace) -> None:
    waiting(ns)
    answer = bind(ns, "cart", {"kind": "Node", "name": "ghost"})
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "code": 201,
    }
    pod = ns.get("cart")
    assert pod["spec"]["nodeName"] == "ghost"
    assert [(c["type"], c["status"]) for c in pod["status"]["conditions"]] == [("PodScheduled", "True")]


def test_a_pod_is_given_away_only_once(ns: Namespace) -> None:
    ns.pod("cart", node="ghost")
    answer = bind(ns, "cart", {"kind": "Node", "name": "other"})
    said = (
        'Operation cannot be fulfilled on pods/binding "cart": pod cart is already assigned to node "ghost"'
    )
    assert (answer.status, answer.message) == (409, said)
    assert answer.body["details"] == {"name": "cart", "kind": "pods/binding"}


def test_a_dry_binding_binds_nothing(ns: Namespace) -> None:
    waiting(ns)
    assert bind(ns, "cart", {"kind": "Node", "name": "ghost"}, query="?dryRun=All").status == 201
    assert "nodeName" not in ns.get("cart")["spec"]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ({}, "target.name: Required value"),
        (
            {"kind": "Pod", "name": "n"},
            'target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"',
        ),
    ],
)
def test_a_binding_goes_to_a_node(ns: Namespace, target: dict[str, str], message: str) -> None:
    waiting(ns)
    answer = bind(ns, "cart", target)
    assert (answer.status, answer.message) == (500, message)


def test_a_binding_is_for_the_pod_of_its_path(ns: Namespace) -> None:
    waiting(ns)
    answer = bind(ns, "cart", {"kind": "Node", "name": "ghost"}, named="other")
    assert (answer.status, answer.message) == (400, "name in URL does not match name in Binding object")


def test_a_pod_that_is_not_there_is_not_bound(ns: Namespace) -> None:
    answer = bind(ns, "nope", {"kind": "Node", "name": "ghost"})
    assert (answer.status, answer.message) == (404, 'pods "nope" not found')
