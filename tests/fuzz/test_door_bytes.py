"""Bytes at a door, from the wire up: a well-formed no comes back, or a well-formed question went through."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from decisions.doors import addresses, refusals
from decisions.doors.asgi import Message, with_doors
from tests.fuzz import examples
from tests.fuzz.bytes_of_http import doors, requests, spoilt, tell

APPLICATION = doors()


def _pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({cut % (len(data) + 1) for cut in cuts})
    return [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True) if a != b]


@examples(400)
@given(data=requests | spoilt, cuts=st.lists(st.integers(0, 2_000), max_size=3))
def test_every_request_at_a_door_hears_a_no(data: bytes, cuts: list[int]) -> None:
    told = tell(APPLICATION, _pieces(data, cuts))
    first = data.lstrip(b"\r\n").partition(b"\n")[0].lower()
    if b"/doors" in first or b"/%64oors" in first:
        assert told.is_a_no, told


@examples(100)
@given(data=st.binary(min_size=1, max_size=200), after=requests)
def test_nothing_raises_below(data: bytes, after: bytes) -> None:
    tell(APPLICATION, [data, after])


@examples(150)
@given(path=st.text(st.sampled_from("/.doorsDOORSevict%\x00\xff \\?#:h"), max_size=40))
def test_an_address_has_one_meaning(path: str) -> None:
    found = addresses.door(path)
    assert found is None or all(part and "/" not in part for part in found)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["allow", "reason", "x"]), inner)
    ),
    max_leaves=6,
)


@examples(150)
@given(given_back=_JSON | st.just(object()) | st.just(b"x"))
def test_only_a_well_formed_answer_leaves_and_its_yes_is_the_doors_own(given_back: Any) -> None:
    sent: list[Message] = []

    async def call() -> None:
        async def receive() -> Message:
            return {"type": "http.request", "body": b"{}"}

        async def send(message: Message) -> None:
            sent.append(message)

        application = with_doors(_nobody, door=lambda *_args, **_more: given_back, threads=1)
        await application(_scope(), receive, send)

    asyncio.run(call())
    body = sent[1]["body"]
    allowed = isinstance(given_back, dict) and given_back.get("allow") is True
    assert sent[0]["status"] == 200
    assert (b'"allow": true' in body) <= allowed
    assert body == refusals.encode(given_back) or b"error of its own" in body


async def _nobody(scope: Any, receive: Any, send: Any) -> None:
    raise AssertionError("a door must not reach Django")


def _scope() -> dict[str, Any]:
    return {"type": "http", "method": "POST", "path": "/doors/evict", "headers": [(b"host", b"testserver")]}
