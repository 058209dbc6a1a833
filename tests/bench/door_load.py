"""Callers with kept connections that ask one question after the other, with as little work of their own as possible."""

import asyncio
import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Load:
    """What came of it: the answers in a second, each answer's seconds, the bodies of the first ones."""

    rate: float
    seconds: list[float]
    answers: list[bytes]


def ask(port: int, requests: Sequence[bytes], *, connections: int, seconds: float) -> Load:
    """Ask for so long with so many connections, the requests in turns."""
    return asyncio.run(_ask(port, requests, connections, seconds))


def request(path: str, body: bytes, token: str = "") -> bytes:
    """A POST as it goes over the wire."""
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    head += f"Authorization: Bearer {token}\r\n" if token else ""
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def _ask(port: int, requests: Sequence[bytes], connections: int, seconds: float) -> Load:
    turns, taken, answers = itertools.cycle(requests), list[float](), list[bytes]()
    begun = time.perf_counter()

    async def caller() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while (started := time.perf_counter()) - begun < seconds:
            writer.write(next(turns))
            body = await _answer(reader)
            taken.append(time.perf_counter() - started)
            if len(answers) < len(requests):
                answers.append(body)
        writer.close()

    await asyncio.gather(*(caller() for _ in range(connections)))
    return Load(len(taken) / (time.perf_counter() - begun), taken, answers)


async def _answer(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"not answered: {head[:200]!r}")
    length = int(head.lower().partition(b"content-length:")[2].partition(b"\r")[0])
    return await reader.readexactly(length)
