"""Whatever a server sends, an outcome comes of it, and a yes only of a yes."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deschedui.extender.client import ExtenderClient
from deschedui.extender.outcomes import Effect
from tests.extender.builders import ask_one
from tests.extender.servers import response, sending_the_last

PIECES = st.sampled_from(
    [
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.0 200\r\n",
        b"HTTP/1.1 103 x\r\n",
        b"Content-Length: 14\r\n",
        b"\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"e\r\n",
        b"0\r\n\r\n",
        b'{"allow":true}',
        b'{"allow":false}',
        b"\x00\xff",
        b"Connection: close\r\n",
        b"Content-Encoding: gzip\r\n",
        b" ",
        response(),
    ]
)


@pytest.fixture(scope="module")
def noisy() -> Iterator[tuple[list[bytes], ExtenderClient]]:
    """A server that sends what the list holds and closes, and a client that asks it."""
    with sending_the_last() as pair:
        yield pair


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.lists(PIECES, max_size=8).map(b"".join) | st.binary(max_size=60))
def test_noise_is_never_a_yes(noisy: tuple[list[bytes], ExtenderClient], data: bytes) -> None:
    sent, client = noisy
    sent.append(data)
    said = ask_one(client)
    assert said.effect is not Effect.ALLOW or (b'{"allow":true}' in data and b" 200" in data)
    assert said.failure_mode is None or said.detail
