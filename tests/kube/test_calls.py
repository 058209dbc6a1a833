"""One call and its end: timeouts that hold, nothing sent twice, nothing secret in what is said."""

from __future__ import annotations

import logging
import socket
import time
from datetime import UTC, datetime

import pytest

from deschedui.kube.budget import Lane
from deschedui.kube.client import ClusterClient, Timeouts
from deschedui.kube.errors import (
    ConfigError,
    Forbidden,
    InvalidAnswer,
    InvalidName,
    KubeError,
    NotFound,
    ServerError,
    Throttled,
    TimedOut,
    Unauthorized,
    Unreachable,
)
from deschedui.kube.events import EventRequest
from deschedui.kube.eviction import EvictionCause, EvictionRequest
from tests.kube.conftest import TOKEN, Connect
from tests.kube.server import Answer, serving, status

QUICK = Timeouts(connect=0.2, read=0.2, page=0.2, write=0.2, eviction=0.2)
POD = {"metadata": {"name": "cart-0", "namespace": "shop", "uid": "old"}}
ENDING = {"metadata": {**POD["metadata"], "deletionTimestamp": "2026-11-30T10:00:00Z"}}
EVICTION = EvictionRequest("shop", "cart-0", "old", grace_period_seconds=5, annotations={"reason": "x"})


def test_a_pod_is_read_by_name(connect: Connect) -> None:
    with serving(Answer(body=POD)) as server:
        view = connect(server.url).read_pod("shop", "cart-0")

    assert view is not None
    assert view.look.uid == "old"
    assert server.requests[0].target == "/api/v1/namespaces/shop/pods/cart-0"
    assert server.requests[0].headers["authorization"] == f"Bearer {TOKEN}"


def test_a_pod_that_is_not_there_is_none(connect: Connect) -> None:
    with serving(status(404, 'pods "cart-0" not found', "NotFound")) as server:
        assert connect(server.url).read_pod("shop", "cart-0") is None


def test_a_404_of_something_else_does_not_mean_that_the_pod_is_gone(connect: Connect) -> None:
    with serving(Answer(404, b"404 page not found")) as server, pytest.raises(InvalidAnswer):
        connect(server.url).read_pod("shop", "cart-0")


@pytest.mark.parametrize("name", ["", "..", "a/b", "../../nodes", "a%2fb"])
def test_a_name_that_points_elsewhere_is_never_sent(connect: Connect, name: str) -> None:
    with serving(Answer()) as server:
        with pytest.raises(InvalidName, match="not a Kubernetes name"):
            connect(server.url).read_pod("shop", name)
        assert server.requests == []


def test_a_config_map_gives_its_texts(connect: Connect) -> None:
    with serving(Answer(body={"data": {"policy.yaml": "x"}}), Answer(body={"data": None})) as server:
        client = connect(server.url)
        assert client.read_config_map("deschedui", "policy") == {"policy.yaml": "x"}
        assert client.read_config_map("deschedui", "policy") == {}


def test_a_config_map_that_is_not_there_is_named(connect: Connect) -> None:
    answer = status(404, 'configmaps "policy" not found', "NotFound")
    with serving(answer) as server, pytest.raises(NotFound, match="deschedui/policy"):
        connect(server.url).read_config_map("deschedui", "policy")


# ---- the end of a call

SLOW = {
    "silent": Answer(silent=True),
    "dripping body": Answer(body=b"x" * 1000, drip=0.02),
    "dripping headers": Answer(raw=b"HTTP/1.1 200 OK\r\nX: " + b"y" * 1000, drip=0.02),
    "endless headers": Answer(raw=b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 500, drip=0.02),
}


@pytest.mark.parametrize("slow", SLOW.values(), ids=SLOW)
def test_a_slow_answer_ends_with_the_total_time(connect: Connect, slow: Answer) -> None:
    with serving(slow) as server:
        started = time.monotonic()
        with pytest.raises(TimedOut):
            connect(server.url, timeouts=QUICK).read_pod("shop", "cart-0")
        assert time.monotonic() - started < 5


def test_a_server_that_accepts_and_never_shakes_hands_ends_with_the_total_time(connect: Connect) -> None:
    with serving(Answer(silent=True)) as server:
        started = time.monotonic()
        with pytest.raises(Unreachable):
            connect(server.url.replace("http:", "https:"), timeouts=QUICK).check()
        assert time.monotonic() - started < 5


def test_a_look_of_a_door_gives_up_sooner(connect: Connect) -> None:
    door = connect("http://127.0.0.1:9", lane=Lane.LOOKUP, timeouts=None)
    work = connect("http://127.0.0.1:9", lane=Lane.WORK, timeouts=None)
    assert door.timeouts.read <= 2 < work.timeouts.read
    assert door.timeouts.eviction >= 30


def test_packets_that_are_swallowed_end_with_the_connect_time(connect: Connect) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        address = full.getsockname()
        waiting = [socket.socket() for _ in range(4)]
        for client in waiting:
            client.setblocking(False)
            client.connect_ex(address)
        started = time.monotonic()
        with pytest.raises(Unreachable):
            connect(f"http://127.0.0.1:{address[1]}", timeouts=QUICK).check()
        assert time.monotonic() - started < 5
        for client in waiting:
            client.close()


def test_credentials_that_never_come_end_with_the_total_time(connect: Connect) -> None:
    hanging = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "sleep", "args": ["8"]}}
    with serving(Answer()) as server:
        started = time.monotonic()
        with pytest.raises(TimedOut):
            connect(server.url, timeouts=QUICK, user=hanging).check()
        assert time.monotonic() - started < 5
        assert server.requests == []


def test_refused_connections_are_unreachable(connect: Connect) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(Unreachable, match="refused"):
        connect(f"http://127.0.0.1:{port}").check()


def test_a_name_that_does_not_resolve_is_unreachable(connect: Connect) -> None:
    with pytest.raises(Unreachable):
        connect("http://no-such-host.invalid").check()


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}",
        b"nonsense\r\n\r\n",
        b"\x15\x03\x01\x00\x02\x02\x46",
    ],
)
def test_an_answer_that_breaks_off_is_no_answer(connect: Connect, raw: bytes) -> None:
    with serving(Answer(raw=raw)) as server, pytest.raises(Unreachable):
        connect(server.url).read_pod("shop", "cart-0")


def test_an_answer_without_an_end_is_cut(connect: Connect) -> None:
    huge = b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n" + b"x" * (9 * 1024 * 1024)
    with serving(Answer(raw=huge)) as server, pytest.raises(InvalidAnswer, match="larger"):
        connect(server.url).read_pod("shop", "cart-0")


# ---- nothing twice


@pytest.mark.parametrize("code", [429, 500, 503])
def test_a_read_is_not_repeated_silently(connect: Connect, code: int) -> None:
    with serving(status(code, "later", headers={"Retry-After": "1"})) as server:
        with pytest.raises((Throttled, ServerError)):
            connect(server.url).read_pod("shop", "cart-0")
        assert len(server.requests) == 1


@pytest.mark.parametrize("code", [429, 500, 502, 503, 504])
def test_an_eviction_is_sent_once(connect: Connect, code: int) -> None:
    with serving(status(code, "later", headers={"Retry-After": "1"})) as server:
        connect(server.url).evict(EVICTION)
        assert [request.method for request in server.requests].count("POST") == 1


def test_a_redirect_is_not_followed(connect: Connect) -> None:
    with serving(Answer(307, headers={"Location": "/api/v1/namespaces/shop/pods/other/eviction"})) as server:
        connect(server.url).evict(EVICTION, look=False)
        assert len(server.requests) == 1


# ---- evictions


def test_an_eviction_says_what_it_must(connect: Connect) -> None:
    with serving(Answer(201, {"kind": "Status", "status": "Success"})) as server:
        assert connect(server.url).evict(EVICTION).status == "accepted"

    (request,) = server.requests
    assert (request.method, request.target) == ("POST", "/api/v1/namespaces/shop/pods/cart-0/eviction")
    assert request.json == {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "cart-0", "namespace": "shop", "annotations": {"reason": "x"}},
        "deleteOptions": {"preconditions": {"uid": "old"}, "gracePeriodSeconds": 5},
    }


def test_a_dry_run_says_so_twice(connect: Connect) -> None:
    with serving(Answer(201, {"kind": "Status"})) as server:
        connect(server.url).evict(EvictionRequest("shop", "cart-0", "old", dry_run=True))
    assert server.requests[0].target.endswith("/eviction?dryRun=All")
    assert server.requests[0].json["deleteOptions"]["dryRun"] == ["All"]


@pytest.mark.parametrize(
    ("look", "expected"),
    [
        (status(404, "not found", "NotFound"), "evicted"),
        (Answer(body=ENDING), "accepted"),
        (Answer(body=POD), "queued"),
        (status(503, "also away"), "unknown"),
    ],
)
def test_an_eviction_without_an_answer_looks_at_the_pod(
    connect: Connect, look: Answer, expected: str
) -> None:
    with serving(status(504, "Timeout"), look) as server:
        result = connect(server.url).evict(EVICTION)
    assert (result.status, result.code) == (expected, EvictionCause.NO_ANSWER)


def test_an_eviction_whose_time_is_over_is_unknown_and_looked_at(connect: Connect) -> None:
    with serving(Answer(silent=True), Answer(body=ENDING)) as server:
        result = connect(server.url, timeouts=Timeouts(eviction=0.2)).evict(EVICTION)
    assert (result.status, result.unconfirmed) == ("accepted", True)


def test_what_is_checked_before_the_call_can_stop_it(connect: Connect) -> None:
    class FrozenError(Exception):
        pass

    def frozen() -> None:
        raise FrozenError

    with serving(Answer(201)) as server:
        with pytest.raises(FrozenError):
            connect(server.url).evict(EVICTION, before_send=frozen)
        assert server.requests == []


# ---- what is said


@pytest.mark.parametrize(
    "user",
    [
        {"token": f"{TOKEN}\r\nX-Injected: yes"},
        {"token": f"{TOKEN}\x00"},
        {"username": TOKEN, "password": TOKEN},
        {"token": TOKEN},
    ],
)
def test_no_error_and_no_log_shows_a_token(
    connect: Connect, caplog: pytest.LogCaptureFixture, user: dict[str, str]
) -> None:
    caplog.set_level(logging.DEBUG)
    with serving(status(401, "Unauthorized", "Unauthorized")) as server, pytest.raises(KubeError) as caught:
        connect(server.url, user=user).check()

    assert TOKEN not in caplog.text
    assert TOKEN not in str(caught.value)
    assert TOKEN not in repr(caught.value.__dict__)
    assert all("x-injected" not in request.headers for request in server.requests)


def test_a_token_with_a_line_break_is_a_config_error(connect: Connect) -> None:
    with serving(Answer()) as server, pytest.raises(ConfigError, match="no header can carry"):
        connect(server.url, user={"token": "a\nb"}).check()


def test_a_missing_right_is_named(connect: Connect) -> None:
    text = 'pods is forbidden: User "web" cannot list resource "pods" in API group "" at the cluster scope'
    with serving(status(403, text, "Forbidden")) as server, pytest.raises(Forbidden) as refused:
        connect(server.url).list_pods_brief()
    assert (refused.value.verb, refused.value.resource) == ("list", "pods")
    assert "grant list on pods" in str(refused.value)


def test_throttling_says_how_long(connect: Connect) -> None:
    answer = Answer(429, b"Too many requests", {"Retry-After": "3"})
    with serving(answer) as server, pytest.raises(Throttled) as refused:
        connect(server.url).read_pod("shop", "cart-0")
    assert (refused.value.retry_after, refused.value.retryable) == (3, True)


def test_refused_credentials_say_so(connect: Connect) -> None:
    with serving(status(401, "Unauthorized")) as server, pytest.raises(Unauthorized, match="refused"):
        connect(server.url).check()


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"{}", b'{"gitVersion": 5}', b"\xff"])
def test_what_is_no_api_server_is_not_taken_for_one(connect: Connect, body: bytes) -> None:
    with serving(Answer(body=body)) as server, pytest.raises(InvalidAnswer):
        connect(server.url).check()


def test_hostile_error_texts_are_bounded_and_masked(connect: Connect) -> None:
    text = "see https://user:pw@host/doors/s3cret/x\x1b[31m\u202e" + "y" * 100_000
    with serving(status(500, text)) as server, pytest.raises(ServerError) as refused:
        connect(server.url).read_pod("shop", "cart-0")
    message = str(refused.value)
    assert len(message) < 700
    assert message.isprintable()
    assert "s3cret" not in message
    assert "pw" not in message


def test_an_event_stays_within_the_servers_bounds(connect: Connect) -> None:
    at = datetime(2026, 11, 30, 10, 0, tzinfo=UTC)
    event = EventRequest("shop", "c" * 253, "old", "Eviction Approved!", "", "ä" * 5000, at, key="D_7/x")
    with serving(Answer(201)) as server:
        connect(server.url).post_event(event)

    body = server.requests[0].json
    assert len(body["note"].encode()) <= 1024
    assert len(body["metadata"]["name"]) <= 253
    assert body["metadata"]["name"].endswith(".d7x")
    assert (body["reason"], body["action"]) == ("EvictionApproved", "Evict")
    assert body["eventTime"] == "2026-11-30T10:00:00.000000Z"


def test_a_client_is_closed_at_the_end_of_its_block(connect: Connect) -> None:
    with serving(Answer(body={"gitVersion": "v1.37.2"})) as server, connect(server.url) as client:
        assert isinstance(client, ClusterClient)
        assert client.check() == "v1.37.2"
