"""The client over a swapped transport: what it sends, and how it makes outcomes of what happens."""

import asyncio
import json
import socket
import ssl
import threading
import time
from collections.abc import AsyncIterator

import httpx
import pytest

from deschedui.extender.breaker import Breakers
from deschedui.extender.client import ExtenderClient
from deschedui.extender.outcomes import Effect, FailureMode
from tests.extender.builders import Script, answer_of, args, ask_one, outcome, question, says

YES = says('{"allow":true}')


def test_a_question_is_posted_with_pod_and_node() -> None:
    def script(request: httpx.Request) -> httpx.Response:
        assert (request.method, str(request.url)) == ("POST", "http://ext.test/evict")
        assert set(json.loads(request.content)) == {"pod", "node"}
        return YES(request)

    assert answer_of(script).effect is Effect.ALLOW


def test_a_reference_alone_is_sent_where_the_policy_wants_it() -> None:
    def echo(request: httpx.Request) -> httpx.Response:
        return httpx.Response(500, content=request.content)

    said = answer_of(echo, podReferenceOnly=True)
    assert said.detail == 'HTTP 500: {"podName":"web-1","podNamespace":"shop"}'


def test_headers_are_those_of_the_policy_and_what_frames_a_question() -> None:
    def echo(request: httpx.Request) -> httpx.Response:
        assert request.headers["x-key"] == "k"
        assert request.headers["user-agent"] == "sre"
        assert request.headers["content-type"] == "application/json"
        assert request.headers["accept-encoding"] == "identity"
        assert request.headers["host"] == "ext.test"
        assert int(request.headers["content-length"]) == len(request.content)
        return httpx.Response(200, content=b'{"allow":true}')

    assert answer_of(echo, httpHeaders={"X-Key": "k", "User-Agent": "sre"}).effect is Effect.ALLOW


def test_an_outcome_says_who_was_asked_and_under_which_rules() -> None:
    said = answer_of(YES, ignorable=True, failPolicy="Ignore")
    assert (said.url, said.ignorable, said.fail_policy, said.http_status) == (
        "http://ext.test/evict",
        True,
        "Ignore",
        200,
    )


@pytest.mark.parametrize("status", [201, 204, 301, 302, 307, 308, 404, 500, 503])
def test_a_status_is_a_failure_and_a_redirect_is_not_followed(status: int) -> None:
    asked: list[str] = []

    def script(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        return httpx.Response(status, headers={"Location": "http://other.test/"})

    said = answer_of(script)
    assert (said.failure_mode, said.http_status) == (FailureMode.HTTP_STATUS, status)
    assert asked == ["http://ext.test/evict"]


def raising(error: Exception, cause: Exception | None = None) -> Script:
    def script(request: httpx.Request) -> httpx.Response:
        raise error from cause

    return script


@pytest.mark.parametrize(
    ("error", "cause", "mode"),
    [
        (httpx.ConnectError("All connection attempts failed"), ConnectionRefusedError(), "connection"),
        (httpx.ConnectError("x"), socket.gaierror(-2, "Name or service not known"), "dns"),
        (httpx.ConnectError("x"), ssl.SSLCertVerificationError("bad"), "tls"),
        (httpx.ReadError(""), None, "connection"),
        (httpx.ReadTimeout(""), None, "timeout"),
        (httpx.RemoteProtocolError("Server disconnected without sending a response."), None, "connection"),
        (httpx.RemoteProtocolError("illegal status line"), None, "invalid_response"),
        (OSError(113, "No route to host"), None, "connection"),
        (TimeoutError(110, "Connection timed out"), None, "connection"),
    ],
)
def test_a_foreign_transports_errors_have_a_mode(
    error: Exception, cause: Exception | None, mode: str
) -> None:
    said = answer_of(raising(error, cause))
    assert said.failure_mode == mode
    assert said.detail


class Slow(httpx.AsyncBaseTransport):
    """Answers yes after a while; says how many it had at once."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.now = self.most = self.asked = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.asked += 1
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.now -= 1
        return httpx.Response(200, content=b'{"allow":true}')


def test_the_limit_covers_the_whole_exchange() -> None:
    with ExtenderClient([args(httpTimeout="50ms")], transport=Slow(30)) as client:
        said = ask_one(client)
    assert said.failure_mode is FailureMode.TIMEOUT
    assert said.detail.endswith("the limit is httpTimeout 50ms")
    assert 50 <= said.latency_ms < 1_000


def test_at_most_32_calls_are_in_flight() -> None:
    slow = Slow(0.001)
    with ExtenderClient([args()], transport=slow) as client:
        client.ask([question()] * 200, deadline_seconds=30)
    assert (slow.most, slow.asked) == (32, 200)


def test_the_bound_holds_for_all_threads_together() -> None:
    slow = Slow(0.002)
    with ExtenderClient([args()], transport=slow, concurrency=4) as client:
        threads = [
            threading.Thread(target=lambda: client.ask([question()] * 20, deadline_seconds=30))
            for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (slow.most, slow.asked) == (4, 60)


def test_outcomes_come_in_the_order_of_the_questions() -> None:
    def script(request: httpx.Request) -> httpx.Response:
        name = json.loads(request.content)["podName"]
        return httpx.Response(200, json={"allow": True, "reason": name})

    names = [f"web-{number}" for number in range(50)]
    with ExtenderClient([args(podReferenceOnly=True)], transport=httpx.MockTransport(script)) as client:
        answers = client.ask([question(name) for name in names], deadline_seconds=30)
    assert [answer and answer[0].reason for answer in answers] == names


def test_every_extender_is_asked_even_after_a_no() -> None:
    def script(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"allow": request.url.host == "b.test"})

    both = [args(urlPrefix="http://a.test"), args(urlPrefix="http://b.test")]
    with ExtenderClient(both, transport=httpx.MockTransport(script)) as client:
        [answers] = client.ask([question()], deadline_seconds=30)
    assert answers is not None
    assert [each.effect for each in answers] == [Effect.DENY, Effect.ALLOW]


def test_what_was_not_answered_by_the_deadline_is_no_failure() -> None:
    slow = Slow(0.02)
    with ExtenderClient([args()], transport=slow, concurrency=1) as client:
        answers = client.ask([question()] * 50, deadline_seconds=0.1)
    assert answers[0] is not None
    assert answers[-1] is None
    assert slow.asked < 50


def test_after_the_deadline_nobody_is_asked() -> None:
    slow = Slow(0)
    with ExtenderClient([args()], transport=slow) as client:
        assert client.ask([question()] * 3, deadline_seconds=0) == [None] * 3
    assert slow.asked == 0


def test_a_stop_ends_what_is_under_way() -> None:
    started = time.monotonic()
    with ExtenderClient([args(httpTimeout="1h")], transport=Slow(30)) as client:
        assert client.ask([question()] * 3, deadline_seconds=600, should_stop=lambda: True) == [None] * 3
    assert time.monotonic() - started < 5


def test_a_stop_is_asked_for_in_the_callers_thread() -> None:
    asked_in: set[int] = set()

    def should_stop() -> bool:
        asked_in.add(threading.get_ident())
        return True

    with ExtenderClient([args(httpTimeout="1h")], transport=Slow(30)) as client:
        client.ask([question()], deadline_seconds=600, should_stop=should_stop)
    assert asked_in == {threading.get_ident()}


def test_an_extender_whose_circuit_is_open_is_not_called() -> None:
    slow = Slow(0)
    failed = outcome(Effect.DENY, FailureMode.TIMEOUT)
    breakers = Breakers.closed(1).after([(failed,)] * 5)
    with ExtenderClient([args(ignorable=True)], transport=slow) as client:
        [answers] = client.ask([question()], deadline_seconds=30, breakers=breakers)
    assert answers is not None
    assert (answers[0].failure_mode, answers[0].effect) == (FailureMode.CIRCUIT_OPEN, Effect.ALLOW)
    assert answers[0].always_needs_human
    assert slow.asked == 0


def test_with_one_circuit_open_the_others_are_still_asked() -> None:
    slow = Slow(0)
    failed = outcome(Effect.DENY, FailureMode.TIMEOUT)
    breakers = Breakers.closed(2, limit=1).after([(failed, outcome())])
    with ExtenderClient([args(), args()], transport=slow) as client:
        [answers] = client.ask([question()], deadline_seconds=30, breakers=breakers)
    assert answers is not None
    assert [each.failure_mode for each in answers] == [FailureMode.CIRCUIT_OPEN, None]


def test_no_questions_need_no_answers() -> None:
    with ExtenderClient([args()], transport=Slow(30)) as client:
        assert client.ask([], deadline_seconds=30) == []


def test_a_bug_is_raised_and_not_taken_for_an_answer() -> None:
    with ExtenderClient([args()], transport=httpx.MockTransport(raising(KeyError("bug")))) as client:
        with pytest.raises(KeyError):
            client.ask([question()], deadline_seconds=30)
        with pytest.raises(KeyError):
            client.ask([question()] * 100, deadline_seconds=30)


def test_a_closed_client_leaves_no_thread_behind() -> None:
    with ExtenderClient([args()], transport=Slow(0)) as client:
        ask_one(client)
    client.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "extender-client"]


def test_it_can_be_asked_from_an_event_loop() -> None:
    client = ExtenderClient([args()], transport=httpx.MockTransport(YES))
    [answers] = asyncio.run(client.aask([question()], deadline_seconds=30))
    assert answers is not None
    assert answers[0].effect is Effect.ALLOW


class Endless(httpx.AsyncByteStream):
    """A body without an end; counts what is taken of it."""

    taken = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            self.taken += 1
            yield b"x" * 65_536


@pytest.mark.parametrize(("status", "mode", "most"), [(200, "invalid_response", 17), (500, "http_status", 2)])
def test_an_endless_body_is_left_at_one_mebibyte(status: int, mode: str, most: int) -> None:
    body = Endless()
    said = answer_of(lambda request: httpx.Response(status, stream=body))
    assert said.failure_mode == mode
    assert body.taken <= most
