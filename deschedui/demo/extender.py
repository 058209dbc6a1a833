"""The demo's sample extender: `python -m deschedui.demo.extender`. A process of its own that says yes and no, or fails.

What it does follows from the path and the workload alone, so each failure mode can be looked up on purpose:

| path | what it is |
| --- | --- |
| `/evict` | a sensible extender: most pods may go, some not, with reasons that people give |
| `/analytics` | fails in a different way for each workload: slow, 500, an error, HTML, no answer, half an answer |
| `/away` | closes every connection without a word |

Who begins with TLS is told that the handshake failed. `policy.yaml` says who asks where.
"""

import argparse
import asyncio
import contextlib
import json
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .apiserver.serving import write_private

MAX_BODY = 4 * 1024 * 1024
SLOW_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back: status and body after so many seconds. Status 0: the connection is closed instead."""

    status: int
    body: bytes = b""
    after: float = 0.0
    media: str = "application/json"


CLOSED = Answer(0)
TLS_HELLO = b"\x16"
TLS_REFUSED = bytes([0x15, 3, 3, 0, 2, 2, 40])
"""A TLS record: fatal alert, handshake_failure (RFC 8446, section 6.2)."""


def _says(*, allow: bool, reason: str, after: float = 0.0) -> Answer:
    return Answer(200, json.dumps({"allow": allow, "reason": reason}).encode(), after)


_SENSIBLE = {
    "payments": _says(allow=False, reason="deploy freeze for payments until 18:00 (CHG-20417)"),
    "postgres-0": _says(allow=False, reason="postgres-0 is the primary: switch over first, then evict it"),
    "loki-0": _says(allow=False, reason="loki-0 is the leader of the raft group"),
    "alertmanager": _says(allow=True, reason="the mesh has two other members", after=0.3),
    "redis": _says(allow=True, reason="replica, in sync", after=0.2),
    "grafana": _says(allow=True, reason="single replica: dashboards are away for about 20 s", after=0.6),
}
_ANALYTICS = {
    "clickstream": _says(allow=True, reason="too late", after=SLOW_SECONDS),
    "spark-driver": Answer(
        500, b"panic: runtime error: index out of range [7] with length 7\n", media="text/plain"
    ),
    "airflow-web": Answer(200, b'{"allow": true, "error": "the scheduler\'s database does not answer"}'),
    "jupyter": Answer(
        200, b"<!doctype html><title>Sign in</title><h1>Sign in to continue</h1>", media="text/html"
    ),
    "dbt-docs": CLOSED,
    "superset": Answer(200, b'{"reason": "no objection"}'),
}


def answer(path: str, request: Mapping[str, Any]) -> Answer:
    """The answer for one pod: pure, the same each time."""
    pod = pod_name(request)
    match path.strip("/"):
        case "evict":
            return _of(_SENSIBLE, pod) or _says(allow=True, reason="no objection")
        case "analytics":
            return _of(_ANALYTICS, pod) or _says(allow=True, reason="no job runs on it")
        case "away":
            return CLOSED
    return Answer(404, b'{"error": "no such verb"}')


def _of(answers: Mapping[str, Answer], pod: str) -> Answer | None:
    """The answer of a pod or of its workload: `payments-5d9c7-abcde` is payments."""
    return next((a for name, a in answers.items() if pod == name or pod.startswith(f"{name}-")), None)


def pod_name(request: Mapping[str, Any]) -> str:
    """The pod's name from a whole pod or from a reference; '' where there is none."""
    pod = request.get("pod")
    meta = pod.get("metadata") if isinstance(pod, Mapping) else None
    name = meta.get("name") if isinstance(meta, Mapping) else request.get("podName")
    return str(name or "")


async def _connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serve one connection until it closes."""
    try:
        while await _exchange(reader, writer):
            pass
    except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        pass  # the client went, or spoke no HTTP: nothing to tell it
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def _exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """One request and its answer; false where the connection ends."""
    first = await reader.readexactly(1)
    if first == TLS_HELLO:
        writer.write(TLS_REFUSED)
        await writer.drain()
        return False
    head = (first + await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    method, path, _ = head.split("\r\n", 1)[0].split(" ", 2)
    given = _answer_to(method, path, await reader.readexactly(_length(head)))
    if given.status == 0:
        return False
    await asyncio.sleep(given.after)
    told = f"HTTP/1.1 {given.status} -\r\nContent-Type: {given.media}\r\nContent-Length: {len(given.body)}\r\n\r\n"
    writer.write(told.encode() + given.body)
    await writer.drain()
    return True


def _answer_to(method: str, path: str, body: bytes) -> Answer:
    if method == "GET" and path == "/healthz":
        return Answer(200, b"ok", media="text/plain")
    if method != "POST":
        return Answer(405, b'{"error": "POST only"}')
    try:
        request = json.loads(body)
    except ValueError:
        return Answer(400, b'{"error": "not JSON"}')
    return answer(path, request if isinstance(request, dict) else {})


def _length(head: str) -> int:
    """Content-Length of a request's head. Raises ValueError for a bad or an unreasonable one."""
    for line in head.split("\r\n")[1:]:
        name, _, value = line.partition(":")
        if name.strip().lower() == "content-length":
            length = int(value)
            if not 0 <= length <= MAX_BODY:
                raise ValueError(value)
            return length
    return 0


async def serve(*, port: int, ready_file: Path | None = None) -> None:
    """Serve on 127.0.0.1 until SIGINT or SIGTERM. Raises OSError where the port is taken."""
    server = await asyncio.start_server(_connection, "127.0.0.1", port)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    if ready_file:
        write_private(ready_file, json.dumps({"url": url}) + "\n")
    print(f"The demo's extender listens on {url}", flush=True)
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with server:
        await stopped.wait()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m deschedui.demo.extender")
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0 takes a free one")
    parser.add_argument("--ready-file", type=Path, help="written once it listens: JSON with its url")
    options = parser.parse_args()
    asyncio.run(serve(port=options.port, ready_file=options.ready_file))


if __name__ == "__main__":
    main()
