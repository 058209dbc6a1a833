"""Leases: made once, written over exactly the version that was read, never made anew by an update."""

from typing import Any

from tests.truth.server import Answer, Json, Namespace

MICRO = "2026-11-30T15:00:00.000000Z"
MODIFIED = (
    'Operation cannot be fulfilled on leases.coordination.k8s.io "deschedui": the object has been modified; '
    "please apply your changes to the latest version and try again"
)


def leases(ns: Namespace) -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/{ns.name}/leases"


def lease(counter: int = 1, **metadata: Any) -> Json:
    meta = {"name": "deschedui", "annotations": {"deschedui/counter": str(counter)}, **metadata}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": meta,
        "spec": {"holderIdentity": "us", "leaseDurationSeconds": 15, "renewTime": MICRO},
    }


def version(found: Json) -> Json:
    return {"resourceVersion": found["metadata"]["resourceVersion"], "uid": found["metadata"]["uid"]}


def put(ns: Namespace, body: Json) -> Answer:
    return ns.api.call("PUT", f"{leases(ns)}/deschedui", body)


def test_a_lease_is_made_and_read(ns: Namespace) -> None:
    made = ns.api.post(leases(ns), lease())
    found = ns.api.get(f"{leases(ns)}/deschedui")
    assert found == made
    assert found["spec"] == {"holderIdentity": "us", "leaseDurationSeconds": 15, "renewTime": MICRO}
    assert found["metadata"]["annotations"] == {"deschedui/counter": "1"}


def test_a_lease_is_made_once(ns: Namespace) -> None:
    ns.api.post(leases(ns), lease())
    answer = ns.api.call("POST", leases(ns), lease(2))
    assert (answer.status, answer.body["reason"]) == (409, "AlreadyExists")


def test_a_lease_that_is_not_there_is_not_found(ns: Namespace) -> None:
    answer = ns.api.call("GET", f"{leases(ns)}/deschedui")
    assert (answer.status, answer.body["reason"]) == (404, "NotFound")
    assert answer.message == 'leases.coordination.k8s.io "deschedui" not found'


def test_a_lease_in_a_namespace_that_is_not_there_is_not_found(ns: Namespace) -> None:
    answer = ns.api.call("POST", "/apis/coordination.k8s.io/v1/namespaces/nope/leases", lease())
    assert (answer.status, answer.message) == (404, 'namespaces "nope" not found')


def test_a_lease_is_written_over_the_version_that_was_read(ns: Namespace) -> None:
    made = ns.api.post(leases(ns), lease())
    answer = put(ns, lease(2, **version(made)))
    assert (answer.status, answer.body["metadata"]["annotations"]) == (200, {"deschedui/counter": "2"})
    assert answer.body["metadata"]["resourceVersion"] != made["metadata"]["resourceVersion"]


def test_a_lease_is_not_written_over_another_version(ns: Namespace) -> None:
    made = ns.api.post(leases(ns), lease())
    put(ns, lease(2, **version(made)))
    answer = put(ns, lease(3, **version(made)))
    assert (answer.status, answer.body["reason"], answer.message) == (409, "Conflict", MODIFIED)
    assert ns.api.get(f"{leases(ns)}/deschedui")["metadata"]["annotations"] == {"deschedui/counter": "2"}


def test_a_lease_is_not_written_without_a_version(ns: Namespace) -> None:
    ns.api.post(leases(ns), lease())
    answer = put(ns, lease(2))
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    assert "must be specified for an update" in answer.message


def test_a_lease_that_was_deleted_is_not_made_anew_by_an_update(ns: Namespace) -> None:
    made = ns.api.post(leases(ns), lease())
    ns.api.done("DELETE", f"{leases(ns)}/deschedui")
    answer = put(ns, lease(2, **version(made)))
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")
    assert ns.api.call("GET", f"{leases(ns)}/deschedui").status == 404


def test_a_lease_that_was_made_again_is_another_one(ns: Namespace) -> None:
    made = ns.api.post(leases(ns), lease())
    ns.api.done("DELETE", f"{leases(ns)}/deschedui")
    again = ns.api.post(leases(ns), lease())
    answer = put(ns, lease(2, **(version(again) | {"uid": made["metadata"]["uid"]})))
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")
