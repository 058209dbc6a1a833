"""A process that answers like an extender after a few milliseconds: `python -m tests.bench.extender_server 5`.

Prints its port. Denies everything. As little work as possible for each call, so that the caller is measured.
"""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_BODY = b'{"allow":false,"reason":"the benchmark says no"}'
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
    len(_BODY),
    _BODY,
)


class _Extender(asyncio.Protocol):
    def __init__(self, delay: float) -> None:
        self._delay = delay
        self._seen = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._seen += data
        head, found, rest = self._seen.partition(b"\r\n\r\n")
        if not found or len(rest) < _length(head):
            return
        self._seen = rest[_length(head) :]
        asyncio.get_running_loop().call_later(self._delay, self._transport.write, _ANSWER)


def _length(head: bytes) -> int:
    return int(head.lower().partition(b"content-length:")[2].partition(b"\r")[0])


async def _serve(delay: float) -> None:
    server = await asyncio.get_running_loop().create_server(lambda: _Extender(delay), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextmanager
def running(milliseconds: float) -> Iterator[str]:
    """The server as a process of its own; gives its URL."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.extender_server", str(milliseconds)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


if __name__ == "__main__":
    asyncio.run(_serve(float(sys.argv[1]) / 1_000))
