"""Real sockets: every way in which a connection can go wrong, and what is kept of one that goes well."""

import asyncio
import gzip
import socket
import threading
import time
from collections.abc import Sequence

import pytest

from deschedui.extender.client import ExtenderClient, PooledTransport
from deschedui.extender.network import FoundAddress, SystemResolver
from deschedui.extender.outcomes import Effect, ExtenderOutcome, FailureMode
from tests.extender.builders import args, ask_one, question
from tests.extender.servers import Behaviour, Call, answering, response, serving, silence, then_closing

MEBIBYTE = 1024 * 1024


def asked(behave: Behaviour, **overrides: object) -> ExtenderOutcome:
    """What comes of one question to a server that behaves so."""
    with serving(behave) as server, ExtenderClient([args(urlPrefix=server.url, **overrides)]) as client:
        return ask_one(client)


def test_an_answer_arrives() -> None:
    said = asked(answering(response(b'{"allow":false,"reason":"peak hours"}')))
    assert (said.effect, said.reason, said.failure_mode) == (Effect.DENY, "peak hours", None)


def test_the_question_goes_out_in_one_piece_with_its_length() -> None:
    with serving(answering()) as server, ExtenderClient([args(urlPrefix=f"{server.url}/api/")]) as client:
        ask_one(client)
    head = server.calls[0].head
    assert head.startswith(b"POST /api/evict HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n" % server.port)
    assert b"Accept-Encoding: identity\r\n" in head


@pytest.mark.parametrize(
    "pieces",
    [
        [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"5\r\n{\"all\r\n", b"9\r\now\":true}\r\n0\r\n\r\n"],
        [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", response()],
        [bytes([byte]) for byte in response()],
    ],
)  # fmt: skip
def test_an_answer_may_come_in_pieces(pieces: list[bytes]) -> None:
    assert asked(answering(*pieces)).effect is Effect.ALLOW


@pytest.mark.parametrize("head", [b"HTTP/1.0 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_an_answer_may_end_with_the_connection(head: bytes) -> None:
    assert asked(then_closing(head + b'{"allow":true}')).effect is Effect.ALLOW


def test_connections_are_kept() -> None:
    with (
        serving(answering()) as server,
        ExtenderClient([args(urlPrefix=server.url)], concurrency=4) as client,
    ):
        client.ask([question()] * 40, deadline_seconds=30)
        client.ask([question()] * 40, deadline_seconds=30)
    assert (len(server.calls), server.connections) == (80, 4)


def test_a_connection_that_the_server_has_closed_is_not_used_again() -> None:
    said = []
    with serving(then_closing(response())) as server, ExtenderClient([args(urlPrefix=server.url)]) as client:
        for _ in range(3):
            said.append(ask_one(client).effect)
            server.closed.acquire(timeout=5)
    assert said == [Effect.ALLOW] * 3
    assert server.connections == 3


def test_connection_close_is_honoured() -> None:
    behave = answering(response(b'{"allow":true}', "200 OK", "Connection: close"))
    with serving(behave) as server, ExtenderClient([args(urlPrefix=server.url)], concurrency=1) as client:
        client.ask([question()] * 3, deadline_seconds=30)
    assert server.connections == 3


def test_idle_connections_are_given_up_after_a_while() -> None:
    transport = PooledTransport(kept_seconds=0)
    with serving(answering()) as server:
        with ExtenderClient([args(urlPrefix=server.url)], concurrency=1, transport=transport) as client:
            client.ask([question()] * 3, deadline_seconds=30)
        assert server.connections == 3


def test_an_answer_to_a_question_that_nobody_asked_is_not_the_next_ones() -> None:
    two = response(b'{"allow":true,"reason":"first"}') + response(b'{"allow":true,"reason":"smuggled"}')
    with (
        serving(answering(two)) as server,
        ExtenderClient([args(urlPrefix=server.url)], concurrency=1) as client,
    ):
        answers = client.ask([question()] * 2, deadline_seconds=30)
    assert [answer and answer[0].reason for answer in answers] == ["first", "first"]
    assert server.connections == 2


def test_a_late_answer_is_not_the_next_ones() -> None:
    late = {"web-1": 0.15, "web-2": 0.0}

    async def behave(call: Call) -> None:
        name = "web-1" if b"web-1" in call.body else "web-2"
        await asyncio.sleep(late[name])
        await call.send(response(b'{"allow":%b}' % (b"true" if name == "web-1" else b"false")))

    with serving(behave) as server:
        given = args(urlPrefix=server.url, httpTimeout="100ms")
        with ExtenderClient([given], concurrency=1) as client:
            first, second = client.ask([question("web-1"), question("web-2")], deadline_seconds=30)
    assert first is not None
    assert second is not None
    assert first[0].failure_mode is FailureMode.TIMEOUT
    assert second[0].effect is Effect.DENY
    assert second[0].failure_mode is None


# Time


@pytest.mark.parametrize(
    ("behave", "stage"),
    [
        (
            answering(b"HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n", *[b"x"] * 14, every=0.03),
            "reading the body",
        ),
        (answering(*[bytes([byte]) for byte in response()], every=0.03), "waiting for the answer"),
        (answering(*[b"HTTP/1.1 103 Early Hints\r\n\r\n"] * 50, every=0.03), "waiting for the answer"),
        (silence, "waiting for the answer"),
    ],
)
def test_the_whole_exchange_ends_at_the_limit(behave: Behaviour, stage: str) -> None:
    started = time.monotonic()
    said = asked(behave, httpTimeout="150ms")
    assert time.monotonic() - started < 1
    assert said.failure_mode is FailureMode.TIMEOUT
    assert said.detail.startswith(stage)
    assert said.detail.endswith("the limit is httpTimeout 150ms")


def test_a_name_server_that_does_not_answer_counts_too() -> None:
    def stuck(host: str, port: int) -> Sequence[FoundAddress]:
        time.sleep(1)
        return []

    started = time.monotonic()
    given = args(httpTimeout="100ms")
    with ExtenderClient([given], resolver=SystemResolver(stuck)) as client:
        said = ask_one(client)
    assert said.failure_mode is FailureMode.TIMEOUT
    assert said.detail.startswith("resolving ext.test")
    assert time.monotonic() - started < 0.8


def test_a_server_that_does_not_take_the_connection_counts_too() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        fillers = [_connecting(port) for _ in range(4)]
        with ExtenderClient([args(urlPrefix=f"http://127.0.0.1:{port}", httpTimeout="100ms")]) as client:
            said = ask_one(client)
        for filler in fillers:
            filler.close()
    assert said.failure_mode is FailureMode.TIMEOUT
    assert said.detail.startswith("connecting to 127.0.0.1")


def _connecting(port: int) -> socket.socket:
    sock = socket.socket()
    sock.setblocking(False)
    sock.connect_ex(("127.0.0.1", port))
    return sock


# Connections that end


def test_nobody_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with ExtenderClient([args(urlPrefix=f"http://127.0.0.1:{port}")]) as client:
            said = ask_one(client)
    assert said.failure_mode is FailureMode.CONNECTION
    assert said.detail == f"127.0.0.1 port {port}: connection refused"


async def resetting(call: Call) -> None:
    await call.send(b"HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{")
    sock = call.writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    call.reset()


@pytest.mark.parametrize(
    ("behave", "detail"),
    [
        (then_closing(b""), "closed early, without an answer"),
        (then_closing(b"HTTP/1.1 200 OK\r\nContent-"), "closed early, in the middle of the headers"),
        (
            then_closing(b"HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{"),
            "closed early, in the middle of the body",
        ),
        (then_closing(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"), "closed early"),
        (resetting, "connection reset by peer"),
    ],
)
def test_a_connection_that_ends_early(behave: Behaviour, detail: str) -> None:
    said = asked(behave)
    assert said.failure_mode is FailureMode.CONNECTION
    assert said.detail.lower().startswith(detail)


def test_a_status_counts_even_if_its_body_never_comes() -> None:
    said = asked(then_closing(b"HTTP/1.1 503 Away\r\nContent-Length: 100\r\n\r\nmainte"))
    assert (said.failure_mode, said.detail) == (FailureMode.HTTP_STATUS, "HTTP 503: mainte")


@pytest.mark.parametrize(
    "noise",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"\x15\x03\x01\x00\x02\x02\x16\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nBroken\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 99_999,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}",
    ],
)
def test_what_is_not_http_is_malformed_and_no_absence(noise: bytes) -> None:
    said = asked(answering(noise), ignorable=True)
    assert (said.failure_mode, said.effect) == (FailureMode.INVALID_RESPONSE, Effect.DENY)


# Bodies


def test_204_has_no_answer_in_it() -> None:
    said = asked(answering(b"HTTP/1.1 204 No Content\r\n\r\n"))
    assert (said.failure_mode, said.http_status) == (FailureMode.HTTP_STATUS, 204)


def test_a_redirect_is_not_followed() -> None:
    with serving(answering(response(b"", "307 Temporary Redirect", "Location: /elsewhere"))) as server:
        with ExtenderClient([args(urlPrefix=server.url)]) as client:
            said = ask_one(client)
        assert len(server.calls) == 1
    assert (said.failure_mode, said.http_status) == (FailureMode.HTTP_STATUS, 307)


def test_101_is_no_answer() -> None:
    said = asked(
        answering(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n")
    )
    assert (said.failure_mode, said.http_status) == (FailureMode.HTTP_STATUS, 101)


@pytest.mark.parametrize(("size", "mode"), [(MEBIBYTE, None), (MEBIBYTE + 1, FailureMode.INVALID_RESPONSE)])
def test_answers_are_read_up_to_one_mebibyte(size: int, mode: FailureMode | None) -> None:
    body = b'{"allow":true}'.ljust(size)
    assert asked(answering(response(body))).failure_mode is mode


def test_a_compressed_bomb_is_not_opened() -> None:
    bomb = gzip.compress(b'{"allow":true}'.ljust(64 * MEBIBYTE))
    said = asked(answering(response(bomb, "200 OK", "Content-Encoding: gzip")), ignorable=True)
    assert (said.failure_mode, said.effect) == (FailureMode.INVALID_RESPONSE, Effect.DENY)


def test_an_answer_before_the_question_was_read_is_an_answer() -> None:
    huge: dict[str, object] = {"metadata": {"name": "web-1", "labels": {"x": "y" * 5_000_000}}}
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        with ExtenderClient([args(urlPrefix=f"http://127.0.0.1:{port}", httpTimeout="5s")]) as client:
            said = _answered_at_once(listening, client, huge)
    assert said.http_status == 413


def _answered_at_once(
    listening: socket.socket, client: ExtenderClient, pod: dict[str, object]
) -> ExtenderOutcome:
    def serve() -> None:
        taken, _ = listening.accept()
        taken.sendall(response(b"too large", "413 Payload Too Large"))
        time.sleep(0.2)
        taken.close()

    thread = threading.Thread(target=serve)
    thread.start()
    said = ask_one(client, question(pod=pod))
    thread.join()
    return said


# Names and addresses


def resolving(*addresses: str, port: int) -> SystemResolver:
    family = {True: socket.AF_INET6, False: socket.AF_INET}
    found = [(family[":" in each], (each, port)) for each in addresses]
    return SystemResolver(lambda host, port: found)


def test_a_name_that_does_not_resolve() -> None:
    def unknown(host: str, port: int) -> Sequence[FoundAddress]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with ExtenderClient([args()], resolver=SystemResolver(unknown)) as client:
        said = ask_one(client)
    assert said.failure_mode is FailureMode.DNS
    assert said.detail == '"ext.test" does not resolve: Name or service not known'


def test_a_name_without_an_address_does_not_resolve() -> None:
    with ExtenderClient([args()], resolver=resolving(port=80)) as client:
        assert ask_one(client).failure_mode is FailureMode.DNS


def test_one_look_up_serves_all_who_wait_for_it() -> None:
    looked_up: list[str] = []

    def slowly(host: str, port: int) -> Sequence[FoundAddress]:
        looked_up.append(host)
        time.sleep(0.05)
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with ExtenderClient([args()], resolver=SystemResolver(slowly)) as client:
        client.ask([question()] * 32, deadline_seconds=30)
    assert looked_up == ["ext.test"]


@pytest.mark.parametrize(
    "address",
    ["169.254.169.254", "fe80::1", "fe80::1%1", "::ffff:169.254.169.254", "febf::1", "64:ff9b::a9fe:a9fe"],
)
def test_a_name_that_leads_to_a_link_local_address_is_refused(address: str) -> None:
    with ExtenderClient([args()], resolver=resolving(address, port=80)) as client:
        said = ask_one(client)
    assert said.failure_mode is FailureMode.CONNECTION
    assert said.detail == f'"ext.test" is the link-local address {address}: such addresses are refused'


def test_a_name_that_changes_its_address_gains_nothing() -> None:
    with serving(answering(response(b'{"allow":true}', "200 OK", "Connection: close"))) as server:
        answers = iter(["127.0.0.1", "169.254.169.254", "127.0.0.1"])
        resolver = SystemResolver(lambda host, port: [(socket.AF_INET, (next(answers), server.port))])
        with ExtenderClient([args()], resolver=resolver, concurrency=1) as client:
            said = [ask_one(client).failure_mode for _ in range(3)]
    assert said == [None, FailureMode.CONNECTION, None]


def test_the_next_address_is_tried_where_the_first_refuses() -> None:
    with serving(answering()) as server:
        resolver = resolving("::1", "127.0.0.1", port=server.port)
        with ExtenderClient([args()], resolver=resolver) as client:
            assert ask_one(client).effect is Effect.ALLOW


def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert asked(answering()).effect is Effect.ALLOW


def test_questions_wait_for_no_one_else() -> None:
    async def behave(call: Call) -> None:
        await asyncio.sleep(0.02)
        await call.send(response())

    with serving(behave) as server, ExtenderClient([args(urlPrefix=server.url)], concurrency=8) as client:
        client.ask([question()] * 24, deadline_seconds=30)
    assert server.most_at_once == 8
