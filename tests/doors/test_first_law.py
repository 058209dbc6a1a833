"""The first law over real HTTP: whatever a caller with ``ignorable: true`` sends, however broken, it evicts nothing.

The server is the process that ``manage.py serve`` starts; its API server cannot be reached, nobody approves anything.
"""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from tests.doors.edges import pod_body
from tests.doors.ignorable import CALLER_SECONDS, Heard, chunked, hear, judge, question, said, said_first
from tests.doors.installed import Web, environment_of, install

MB = 1024 * 1024
BODY = pod_body()


class Tarpit:
    """An API server that takes connections and says nothing."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=200)
        self._taken: list[socket.socket] = []
        threading.Thread(target=self._take, daemon=True).start()

    @property
    def kubeconfig(self) -> str:
        """How it is reached."""
        server = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        return json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "x",
                "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
                "clusters": [{"name": "x", "cluster": {"server": server}}],
                "users": [{"name": "x", "user": {"token": "x"}}],
            }
        )

    def _take(self) -> None:
        with suppress(OSError):
            while True:
                self._taken.append(self._listener.accept()[0])

    def close(self) -> None:
        for each in [*self._taken, self._listener]:
            each.close()


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, str]]]:
    """A folder with a database, and the tokens of the callers in it."""
    folder, tarpit = tmp_path_factory.mktemp("first-law"), Tarpit()
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(tarpit.kubeconfig, encoding="utf-8")
    yield folder, install(environment_of(folder), silent_kubeconfig=str(kubeconfig))
    tarpit.close()


@pytest.fixture(scope="module")
def served(installed: tuple[Path, dict[str, str]]) -> Iterator[tuple[Web, dict[str, str]]]:
    """A web process and its callers' tokens."""
    folder, tokens = installed
    with Web(folder, environment_of(folder)) as web:
        yield web, tokens


@pytest.fixture
def port(served: tuple[Web, dict[str, str]]) -> int:
    return served[0].port


@pytest.fixture
def token(served: tuple[Web, dict[str, str]]) -> str:
    return served[1]["plain"]


def stays(heard: Heard, *words: str) -> None:
    """It leaves the pod alone, in time, and for the reason that is meant."""
    assert not heard.evicts, heard
    assert all(word in heard.why for word in words), heard


# --- the client itself


@pytest.mark.parametrize(
    ("status", "body", "evicts"),
    [
        (200, b'{"allow": false, "reason": "no"}', False),
        (200, b'{"allow": true}', True),
        (200, b"{}", True),
        (200, b'{"allow": "false"}', True),
        (200, b"[]", True),
        (503, b'{"allow": false}', True),
    ],
)
def test_the_caller_takes_everything_but_a_no_for_permission(status: int, body: bytes, evicts: bool) -> None:
    assert judge(status, body)[0] is evicts


def test_the_caller_evicts_where_nobody_listens_or_nobody_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        assert said(port, question(BODY)).evicts
    assert said(port, question(BODY)).evicts


# --- who asks


def test_a_question_is_answered_and_becomes_a_decision(port: int, token: str) -> None:
    stays(said(port, question(BODY, token=token)), "waiting for approval")


@pytest.mark.parametrize(
    ("name", "words"), [("revoked", "revoked"), ("expired", "expired"), ("", "unknown token")]
)
def test_a_token_that_does_not_count(
    served: tuple[Web, dict[str, str]], port: int, name: str, words: str
) -> None:
    stays(said(port, question(BODY, token=served[1].get(name, "nobody"))), words)


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ([], "no token"),
        (["Authorization:"], "no token"),
        (["Authorization: Bearer"], "no token"),
        (["Authorization: Bearer "], "no token"),
        (["Authorization: Basic YTpi"], "no token"),
        (["Authorization: Bearer a b"], "unknown token"),
        (["Authorization: Bearer \xe9\xff"], "unknown token"),
        (["Authorization: Bearer a", "Authorization: Bearer b"], "two different Authorization"),
        (["Cookie: sessionid=x; csrftoken=y"], "no token"),
        (["X-Forwarded-For: 10.0.0.1, evil\x01"], ""),
        (["X-Forwarded-Proto: https"], "no token"),
    ],
    ids=str,
)
def test_headers_that_are_no_pass(port: int, headers: list[str], words: str) -> None:
    stays(said(port, question(BODY, headers=headers)), words)


def test_two_headers_with_the_right_token_and_another(port: int, token: str) -> None:
    stays(
        said(port, question(BODY, token=token, headers=["Authorization: Bearer other"])),
        "two different Authorization",
    )


def test_a_token_in_a_wrong_place(served: tuple[Web, dict[str, str]], port: int) -> None:
    plain, allowed = served[1]["plain"], served[1]["path"]
    stays(said(port, question(BODY, path=f"/doors/{plain}/evict")), "may not stand in the path")
    stays(said(port, question(BODY, path=f"/doors/evict/{allowed}")), "unknown token")
    stays(said(port, question(BODY, path=f"/doors/evict?token={allowed}")), "no token")
    stays(said(port, question(BODY, path=f"//doors//{allowed}//evict//")), "waiting for approval")


# --- the address


@pytest.mark.parametrize(
    "path",
    [
        *(
            "/doors",
            "/doors/",
            "//doors//evict/",
            "/doors/evict/",
            "///doors///evict///",
            "/doors/evict?x=%00",
        ),
        *(
            "/doors/evict/../evict",
            "/x/../doors/evict",
            "/doors/../doors/evict",
            "/./doors/./evict",
            "/doors/..",
        ),
        *("/%64oors/evict", "/doors%2Fevict", "/doors/%65vict", "/doors/%00", "/doors/%ff%fe", "/doors/%"),
        *(
            "/Doors/evict",
            "/DOORS/EVICT",
            "/doors/evict#x",
            "/doors/evict;a=b",
            "/doors/evict\\..",
            "/doors/a/b/c",
        ),
        *("/doors/deny", "/doors/admission", "/doors/" + "x" * 5_000, "/doors/" + "x/" * 5_000),
        *("http://localhost/doors/evict", "https://elsewhere/doors/evict", "http:///doors/evict"),
        "/doors/" + "x" * 200_000,
        "/doors/evict?" + "q" * 200_000,
        "/doors/ev ict",
        "/doors/évict",
        "/doors/ev\x00ict",
    ],
    ids=lambda path: path[:30].encode("unicode-escape").decode(),
)
def test_every_address_of_a_door_is_answered_by_it(port: int, token: str, path: str) -> None:
    stays(said(port, question(BODY, token=token, path=path)))


@pytest.mark.parametrize("path", ["/", "/evict", "/door/evict", "/x/doors/evict", "/login/", "/static/evict"])
def test_a_caller_that_is_set_up_with_a_wrong_address_hears_so(port: int, token: str, path: str) -> None:
    stays(said(port, question(BODY, path=path)), "this address is no door")


@pytest.mark.parametrize(
    "host", ["evil.example", "", "localhost:99999", "[::1", "a b", "x" * 300, "127.0.0.1@x"]
)
def test_a_wrong_host(port: int, token: str, host: str) -> None:
    stays(said(port, question(BODY, token=token, host=host)))


def test_no_host_and_two(port: int, token: str) -> None:
    stays(said(port, question(BODY, token=token, host=None)), "no HTTP request that can be read")
    stays(
        said(port, question(BODY, token=token, headers=["Host: other"])), "no HTTP request that can be read"
    )
    stays(said(port, question(BODY, token=token, host=None, version="1.0")), "host name")


@pytest.mark.parametrize(
    "method",
    [
        "GET",
        "PUT",
        "OPTIONS",
        "HEAD",
        "DELETE",
        "PATCH",
        "TRACE",
        "post",
        "PRI",
        "X" * 100,
        "P(ST",
        "P\x00ST",
    ],
)
def test_a_wrong_method(port: int, token: str, method: str) -> None:
    stays(said(port, question(BODY, token=token, method=method), method=method))


# --- how it is sent


@pytest.mark.parametrize("version", ["1.0", "0.9", "2.0", "1.2", "9.9", "x"])
def test_another_version_of_http(port: int, token: str, version: str) -> None:
    stays(said(port, question(BODY, token=token, version=version)))


@pytest.mark.parametrize(
    "headers",
    [
        ["Expect: 100-continue"],
        ["Expect: the-spanish-inquisition"],
        ["Connection: close"],
        [
            "Connection: keep-alive, Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: x",
        ],
        ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"],
        ["Accept: text/html", "Accept-Encoding: gzip, br"],
        ["Content-Type: text/plain"],
        ["X-HTTP-Method-Override: DELETE"],
        ["X-Long: " + "x" * 30_000],
        ["X-Long: " + "x" * 500_000],
        [f"X-{number}: y" for number in range(2_000)],
        ["no colon"],
        ["X-Control: \x01"],
        [": empty"],
        [" folded: first"],
        ["X-Folded: a\r\n b"],
        ["Content-Length: 7"],
        ["Transfer-Encoding: gzip, chunked"],
        ["Transfer-Encoding: identity"],
    ],
    ids=lambda headers: headers[0][:40].encode("unicode-escape").decode(),
)
def test_odd_headers(port: int, token: str, headers: list[str]) -> None:
    stays(said(port, question(BODY, token=token, headers=headers)))


@pytest.mark.parametrize("length", ["-1", "abc", "1e3", "0x10", "9" * 30, "", "+5", "1,1", "²"])
def test_a_length_that_is_none(port: int, token: str, length: str) -> None:
    asked = question(BODY, token=token, length=None, headers=[f"Content-Length: {length}"])
    stays(said(port, asked))


def test_less_than_was_announced(port: int, token: str) -> None:
    asked = question(BODY, token=token, length=len(BODY) + 100)
    stays(said(port, asked), "in time")
    stays(said(port, asked, half_close=True), "ended before the body did")


def test_more_than_was_announced(port: int, token: str) -> None:
    stays(said(port, question(BODY, token=token, length=len(BODY) - 10)), "not understood")
    stays(said(port, question(BODY, token=token, length=0)), "not understood")


def test_a_caller_that_closes_its_half_still_hears_the_answer(port: int, token: str) -> None:
    stays(said(port, question(BODY, token=token), half_close=True), "waiting for approval")
    stays(
        said(port, b"POST /doors/evict HTTP/1.1\r\nHost: loc", half_close=True),
        "ended before the request did",
    )


def test_a_head_that_does_not_come_to_an_end(port: int) -> None:
    stays(said(port, b"POST /doors/evict HTTP/1.1\r\nHost: loc"), "did not arrive in time")
    stays(said(port, b"POST /doors/evict"), "did not arrive in time")


def test_slow_senders(port: int, token: str) -> None:
    asked = question(BODY, token=token)
    drops = [piece for at in range(0, len(asked), 40) for piece in (asked[at : at + 40], 0.005)]
    stays(said(port, *drops), "waiting for approval")
    head, body = (
        question(token=token, length=len(BODY)),
        [piece for byte in BODY for piece in (bytes([byte]), 0.05)],
    )
    stays(said(port, head, *body), "in time")


@pytest.mark.parametrize("megabytes", [1, 5, 50])
@pytest.mark.parametrize(
    "way", ["announced", "chunked", "sent first", "sent first in chunks", "told to wait", "closed"]
)
def test_large_bodies(port: int, token: str, megabytes: int, way: str) -> None:
    body = b'{"pod":"' + b"x" * (megabytes * MB) + b'"}'
    plain = question(token=token, length=len(body))
    pieces = question(token=token, length=None, headers=["Transfer-Encoding: chunked"])
    waiting = question(token=token, length=len(body), headers=["Expect: 100-continue"])
    closing = question(token=token, length=len(body), headers=["Connection: close"])
    heard = {
        "announced": lambda: said(port, plain, body),
        "chunked": lambda: said(port, pieces, *chunked(body)),
        "sent first": lambda: said_first(port, plain, body),
        "sent first in chunks": lambda: said_first(port, pieces, *chunked(body)),
        "told to wait": lambda: said(port, waiting, body),
        "closed": lambda: said_first(port, closing, body),
    }[way]()
    stays(heard, "larger than" if megabytes > 4 else "not understood")


def test_who_waits_to_be_told_to_go_on_is_told_no(port: int, token: str) -> None:
    stays(said(port, question(token=token, length=50 * MB, headers=["Expect: 100-continue"])), "larger than")


@pytest.mark.parametrize(
    "chunks",
    [
        b"zz\r\nabc\r\n0\r\n\r\n",
        b"-1\r\n\r\n",
        b"f" * 30 + b"\r\n",
        b"5;" + b"x" * 200_000 + b"\r\n",
        b"3\r\nabcdef",
    ],
    ids=["no number", "negative", "huge", "long extension", "too long"],
)
def test_broken_chunks(port: int, token: str, chunks: bytes) -> None:
    asked = question(token=token, length=None, headers=["Transfer-Encoding: chunked"])
    stays(said(port, asked, chunks), "no HTTP request that can be read")


def test_a_broken_chunk_after_a_part_of_the_body(port: int, token: str) -> None:
    asked = question(token=token, length=None, headers=["Transfer-Encoding: chunked"])
    stays(said(port, asked, b"5\r\n{'a'}\r\n", 0.1, b"zz\r\n"), "no HTTP request that can be read")


def test_no_body_at_all(port: int, token: str) -> None:
    stays(said(port, question(token=token, length=None)), "not understood")


# --- what it says

NESTED = 100_000


@pytest.mark.parametrize(
    "body",
    [
        *(
            b"",
            b" ",
            b"null",
            b"true",
            b"[]",
            b"7",
            b"{",
            b'{"pod":',
            b"\x00" * 100,
            b"\xff\xfe\xfd",
            b"\xef\xbb\xbf{}",
        ),
        *(b"<html>", b'{"pod": 1}', b'{"pod": null}', b'{"podName": 5}', b'{"pod": {"metadata": null}}'),
        b"[" * NESTED,
        b'{"pod":' * NESTED,
        b'{"pod": {"metadata": ' + b'{"a":' * 900 + b"1" + b"}" * 902,
        b'{"podName": "a", "podName": "b"}',
        b'{"pod": {"metadata": {"uid": "a", "uid": "b", "name": "n"}}}',
        b'{"pod": 1, "POD": 2}',
        b'{"podName": 1e999}',
        b'{"podName": ' + b"9" * 5_000 + b"}",
        b'{"podName": NaN}',
        b'{"podName": "\\ud800"}',
        b'{"podName": "\\u0000"}',
        b'{"podName": "' + b"a" * 5_000 + b'"}',
        pod_body("\x00"),
        pod_body("' OR 1=1 --"),
        pod_body(name="../../x"),
        pod_body(namespace="\u202e"),
        pod_body(labels={"a": "b" * MB}),
        pod_body(ownerReferences=[{"kind": 5}]),
        pod_body(ownerReferences=[{"controller": True, "kind": "K" * 9_000, "name": "\x00", "uid": None}]),
        pod_body(deletionTimestamp="never"),
        BODY + b"trailing",
        BODY.decode().encode("utf-16"),
        gzip.compress(BODY, mtime=0),
    ],
    ids=lambda body: repr(body[:25]),
)
def test_bodies_that_nobody_should_send(port: int, token: str, body: bytes) -> None:
    stays(said(port, question(body, token=token)))


def test_a_compressed_body(port: int, token: str) -> None:
    stays(
        said(port, question(gzip.compress(BODY, mtime=0), token=token, headers=["Content-Encoding: gzip"])),
        "not understood",
    )


# --- many, and one after the other


def test_one_connection_is_kept_and_used_again(port: int, token: str) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=CALLER_SECONDS) as connection:
        for _ in range(3):
            connection.sendall(question(BODY, token=token))
            heard = hear(connection, time.monotonic())
            stays(heard, "waiting for approval")
            assert not heard.closes


def test_a_refusal_of_the_server_ends_the_connection_and_says_so(port: int) -> None:
    assert said(port, question(BODY, host=None)).closes


def test_many_callers_at_once(port: int, token: str) -> None:
    def ask(number: int) -> Heard:
        return said(port, question(pod_body(f"uid-{number % 10}", name=f"web-{number % 10}"), token=token))

    with ThreadPoolExecutor(60) as callers:
        evicting = [str(heard) for heard in callers.map(ask, range(300)) if heard.evicts]
    assert not evicting, evicting[:5]


def test_silent_connections_do_not_keep_a_caller_out(port: int, token: str) -> None:
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(500)]
    try:
        stays(said(port, question(BODY, token=token)), "waiting for approval")
    finally:
        for connection in silent:
            connection.close()


# --- what other things still get


def test_a_broken_request_elsewhere_is_still_a_400(port: int) -> None:
    assert "HTTP 400" in said(port, question(path="/login/", host=None)).why


def test_a_page_is_still_a_page(port: int) -> None:
    assert "HTTP 404" in said(port, question(path="/nothing/", method="GET"), method="GET").why


# --- ending


@pytest.fixture
def ending(installed: tuple[Path, dict[str, str]]) -> Iterator[tuple[Web, str]]:
    """A web process that a test ends."""
    folder, tokens = installed
    with Web(folder, environment_of(folder)) as web:
        yield web, tokens["plain"]


def test_a_process_that_ends_answers_everybody_whom_it_let_in(ending: tuple[Web, str]) -> None:
    web, token = ending
    connections = [
        socket.create_connection(("127.0.0.1", web.port), timeout=CALLER_SECONDS) for _ in range(4)
    ]
    kept, fresh, half, slow = connections
    asked = question(BODY, token=token)
    kept.sendall(asked)
    stays(hear(kept, time.monotonic()), "waiting for approval")
    half.sendall(asked[:-10])
    slow.sendall(asked[:60])
    time.sleep(0.2)
    web.terminate()
    begun = time.monotonic()
    while web.listens():
        assert time.monotonic() - begun < 5
    rest = {kept: asked, fresh: asked, half: asked[-10:], slow: asked[60:]}
    for connection, piece in rest.items():
        connection.sendall(piece)
    for connection in connections:
        heard = hear(connection, begun)
        stays(heard)
        assert heard.closes
        connection.close()
    assert web.process is not None
    web.process.wait(10)


# --- the API server


def test_an_api_server_that_swallows_everything(served: tuple[Web, dict[str, str]], port: int) -> None:
    def ask(number: int) -> Heard:
        return said(port, question(pod_body(f"s-{number}", name=f"s-{number}"), token=served[1]["silent"]))

    with ThreadPoolExecutor(40) as callers:
        evicting = [str(heard) for heard in callers.map(ask, range(40)) if heard.evicts]
    assert not evicting, evicting[:5]
