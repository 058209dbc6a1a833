"""Events, in both of their forms."""

from typing import Any

import pytest
from kubernetes import client

from tests.truth.server import Api, Namespace

WHEN = "2026-11-30T15:00:00.000000Z"


def about(ns: Namespace, **changes: Any) -> dict[str, Any]:
    """An event of ours about a pod."""
    return {
        "metadata": {"generateName": "cart-"},
        "eventTime": WHEN,
        "reportingController": "deschedui.io/worker",
        "reportingInstance": "worker-1",
        "action": "Evict",
        "reason": "Denied",
        "regarding": {"kind": "Pod", "namespace": ns.name, "name": "cart", "apiVersion": "v1"},
        "note": "not before six",
        "type": "Normal",
    } | changes


def new_events(ns: Namespace) -> str:
    return f"/apis/events.k8s.io/v1/namespaces/{ns.name}/events"


def old_events(ns: Namespace) -> str:
    return f"/api/v1/namespaces/{ns.name}/events"


def test_an_event_is_read_in_both_forms(ns: Namespace) -> None:
    ns.api.post(new_events(ns), about(ns))
    core = ns.api.get(old_events(ns))["items"][0]
    assert (core["message"], core["involvedObject"]["name"]) == ("not before six", "cart")
    assert (core["reportingComponent"], core["source"], core["firstTimestamp"]) == (
        "deschedui.io/worker",
        {},
        None,
    )
    assert ns.api.get(new_events(ns))["items"][0]["note"] == "not before six"


def test_an_old_event_is_read_in_the_new_form(ns: Namespace) -> None:
    involved = {"kind": "Pod", "namespace": ns.name, "name": "cart"}
    body = {
        "metadata": {"name": "e"},
        "involvedObject": involved,
        "reason": "R",
        "message": "hello",
        "type": "Normal",
    }
    ns.api.post(old_events(ns), body)
    event = ns.api.get(f"{new_events(ns)}/e")
    assert (event["note"], event["regarding"], event["eventTime"]) == ("hello", involved, None)
    assert "reportingController" not in event


@pytest.mark.parametrize(
    ("path", "selector", "count"),
    [
        (new_events, "regarding.name%3Dcart", 1),
        (new_events, "regarding.name%3Dother", 0),
        (old_events, "involvedObject.name%3Dcart,reason%3DDenied", 1),
        (old_events, "involvedObject.kind%3DNode", 0),
        (old_events, "type%3DNormal", 1),
    ],
)
def test_events_are_found_by_what_they_are_about(ns: Namespace, path: Any, selector: str, count: int) -> None:
    ns.api.post(new_events(ns), about(ns))
    assert len(ns.api.get(f"{path(ns)}?fieldSelector={selector}")["items"]) == count


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"eventTime": None}, "eventTime: Required value"),
        ({"type": "Bad"}, 'type: Invalid value: "": has invalid value: Bad'),
    ],
)
def test_a_bad_event_is_invalid(ns: Namespace, changes: dict[str, Any], told: str) -> None:
    answer = ns.api.call("POST", new_events(ns), about(ns, metadata={"name": "e"}, **changes))
    assert (answer.status, answer.message) == (422, f'Event "e" is invalid: {told}')


def test_an_events_time_has_microseconds(ns: Namespace) -> None:
    answer = ns.api.call("POST", new_events(ns), about(ns, eventTime="2026-11-30T15:00:00+00:00"))
    layout, moment = "2006-01-02T15:04:05.000000Z07:00", "2026-11-30T15:00:00+00:00"
    why = f'parsing time "{moment}" as "{layout}": cannot parse "+00:00" as ".000000"'
    assert (answer.status, answer.message) == (
        400,
        f'Event in version "v1" cannot be handled as a Event: {why}',
    )


def test_an_event_about_another_namespace_is_invalid(ns: Namespace) -> None:
    body = {"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "namespace": "other", "name": "x"}}
    answer = ns.api.call("POST", old_events(ns), body)
    told = 'involvedObject.namespace: Invalid value: "other": does not match event.namespace'
    assert (answer.status, answer.message) == (422, f'Event "e" is invalid: {told}')


def test_the_official_client_writes_events(ns: Namespace) -> None:
    api = client.EventsV1Api(ns.api.official())
    event: Any = about(ns, eventTime="2026-11-30T15:00:00.000001Z")
    api.create_namespaced_event(ns.name, event)
    assert api.list_namespaced_event(ns.name).items[0].note == "not before six"


def test_kubectl_shows_the_events_of_a_pod(ns: Namespace) -> None:
    pod = ns.pod("cart", node="ghost")
    meant = about(ns)["regarding"] | {"uid": pod["metadata"]["uid"]}
    ns.api.post(new_events(ns), about(ns, regarding=meant))
    assert "not before six" in ns.api.kubectl("describe", "pod", "cart", "-n", ns.name).stdout


def test_an_event_in_a_namespace_that_is_not_there_is_not_found(api: Api) -> None:
    answer = api.call("POST", "/apis/events.k8s.io/v1/namespaces/nope/events", {"metadata": {"name": "e"}})
    assert (answer.status, answer.message) == (404, 'namespaces "nope" not found')
