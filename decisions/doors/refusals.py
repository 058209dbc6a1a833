"""A no, as every layer of a door says it; the server's own layer too, before Django is set up."""

import json
from collections.abc import Mapping
from typing import Any


def refusal(reason: str) -> dict[str, Any]:
    """A well-formed no that rests on no decision."""
    return {"allow": False, "reason": reason, "decision": None, "state": "refused", "url": ""}


OURS = "deschedui had an error of its own; nothing is allowed"


def encode(answer: Mapping[str, Any]) -> bytes:
    """An answer as a body. What is no answer, or no JSON, is an error of ours and therefore a no."""
    try:
        if isinstance(answer["allow"], bool):
            return json.dumps(answer, allow_nan=False).encode("ascii")
    except (KeyError, TypeError, ValueError, RecursionError):
        pass
    return json.dumps(refusal(OURS)).encode("ascii")


def headers(body: bytes) -> list[tuple[bytes, bytes]]:
    """The head that goes with it."""
    return [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
    ]
