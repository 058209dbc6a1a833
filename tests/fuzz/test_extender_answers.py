"""Any answer of an extender, through the client's decoding: a row of the table comes of it, a yes only of a yes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deschedui.extender.client import ExtenderClient
from deschedui.extender.config import FailPolicy
from deschedui.extender.outcomes import (
    Answered,
    DecidedBy,
    Effect,
    ExtenderOutcome,
    FailureMode,
    apply_policy,
    interpret_response,
)
from tests.extender.builders import ask_one
from tests.extender.servers import sending_the_last
from tests.fuzz import examples

KEYS = [
    "allow",
    "Allow",
    "ALLOW",
    "\\u0061llow",
    "reason",
    "Reason",
    "error",
    "ERROR",
    "x",
    "",
    "allow ",
    "all\\u006fw",
]
VALUES = [
    "true",
    "false",
    "null",
    "True",
    "1",
    '"true"',
    '""',
    '"no"',
    "[]",
    "{}",
    "[true]",
    '{"allow":true}',
    "NaN",
    "1e999",
]
_pairs = st.lists(st.tuples(st.sampled_from(KEYS), st.sampled_from(VALUES)), max_size=4)
_written = _pairs.map(lambda pairs: "{" + ",".join(f'"{key}":{value}' for key, value in pairs) + "}")


def _spoilt(text: str, at: int, cut: int, new: bytes) -> bytes:
    data = text.encode()
    at %= len(data) + 1
    return data[:at] + new + data[at + cut :]


bodies = (
    _written.map(str.encode)
    | st.builds(_spoilt, _written, st.integers(0, 60), st.integers(0, 3), st.binary(max_size=3))
    | st.sampled_from(
        [b"", b" ", b"[" * 50_000, b'{"allow":' * 20_000, b"\xef\xbb\xbf{}", b"<html>", b"x" * 1_100_000]
    )
    | st.binary(max_size=30)
)
statuses = st.sampled_from([200, 200, 200, 100, 101, 201, 204, 301, 400, 429, 500, 503, 599, 0, 999])
encodings = st.sampled_from(["", "identity", "gzip", " br", "IDENTITY", "\x00"])


def says_yes(body: bytes) -> bool:
    """Whether a body says a plain yes, read by somebody else: pairs kept, keys folded, values compared."""
    try:
        pairs = json.loads(
            body.decode("utf-8"), object_pairs_hook=lambda found: found, parse_constant=_refuse
        )
    except (ValueError, RecursionError):
        return False
    named: dict[str, list[Any]] = {}
    for key, value in (
        pairs if isinstance(pairs, list) and all(isinstance(pair, tuple) for pair in pairs) else []
    ):
        named.setdefault(key.lower(), []).append(value)
    allow, errors = named.get("allow", []), [value for value in named.get("error", []) if value]
    return bool(allow) and all(value is True for value in allow) and not errors


def _refuse(name: str) -> None:
    raise ValueError(name)


@examples(400)
@given(status=statuses, body=bodies, encoding=encodings, location=st.text(max_size=5))
def test_only_a_plain_yes_is_read_as_one(status: int, body: bytes, encoding: str, location: str) -> None:
    seen = interpret_response(status, body, content_encoding=encoding, location=location)
    if isinstance(seen, Answered) and seen.allow:
        assert status == 200
        assert says_yes(body), body
    else:
        assert not (status == 200 and encoding == "" and says_yes(body) and len(body) < 1_000_000), body


@examples(200)
@given(
    status=statuses,
    body=bodies,
    ignorable=st.booleans(),
    fail_policy=st.sampled_from(list(FailPolicy)),
    encoding=encodings,
)
def test_every_answer_has_its_row(
    status: int, body: bytes, ignorable: bool, fail_policy: FailPolicy, encoding: str
) -> None:
    seen = interpret_response(status, body, content_encoding=encoding)
    said = apply_policy(seen, ignorable=ignorable, fail_policy=fail_policy)
    assert ExtenderOutcome.from_dict(json.loads(json.dumps(said.as_dict()))) == said
    if said.failure_mode is FailureMode.INVALID_RESPONSE:
        assert said.effect is not Effect.ALLOW
    if said.effect is Effect.ALLOW and said.decided_by is not DecidedBy.ANSWER:
        assert ignorable or fail_policy is FailPolicy.ALLOW


# --- over a socket

HEADS = [
    "HTTP/1.1 200 OK",
    "HTTP/1.0 200 OK",
    "HTTP/1.1 204 x",
    "HTTP/1.1 500 x",
    "HTTP/1.1 302 x",
    "HTTP/1.1 100 x",
    "HTTP/2 200",
    "",
]
HEADERS = [
    "Content-Length: {n}",
    "Content-Length: 0",
    "Content-Length: 5",
    "Content-Length: -1",
    "Transfer-Encoding: chunked",
]
HEADERS += [
    "Transfer-Encoding: gzip",
    "Content-Encoding: gzip",
    "Location: http://x",
    "Connection: close",
    "x",
    ": y",
    "A: \x00",
]
HEADERS += ["Content-Length: 999999", "X: " + "y" * 70_000, "Content-Type: text/html"]


def _on_the_wire(head: str, headers: list[str], body: bytes, chunked: bool) -> bytes:
    shown = [header.replace("{n}", str(len(body))) for header in headers]
    if chunked:
        body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    return "\r\n".join([head, *shown, "", ""]).encode("latin-1") + body


answers = st.builds(
    _on_the_wire,
    st.sampled_from(HEADS),
    st.lists(st.sampled_from(HEADERS), max_size=3),
    bodies,
    st.booleans(),
)


@pytest.fixture(scope="module")
def asked() -> Iterator[tuple[list[bytes], ExtenderClient]]:
    """A server that sends the last of the list and closes, and a client that asks it."""
    with sending_the_last() as pair:
        yield pair


@examples(120)
@given(data=answers)
def test_only_a_plain_yes_comes_through_the_wire(
    asked: tuple[list[bytes], ExtenderClient], data: bytes
) -> None:
    sent, client = asked
    sent.append(data)
    said = ask_one(client)
    assert said.failure_mode is None or said.detail
    if said.effect is Effect.ALLOW:
        _, _, rest = data.partition(b"\r\n\r\n")
        assert b" 200" in data
        assert any(says_yes(rest[at:end]) for at in _braces(rest, b"{") for end in _braces(rest, b"}", 1)), (
            data
        )


def _braces(data: bytes, brace: bytes, more: int = 0) -> list[int]:
    return [at + more for at in range(len(data)) if data[at : at + 1] == brace][:50]
