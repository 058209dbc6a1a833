"""Text that comes from outside: bounded, printable, and without door tokens."""

from typing import Final

from deschedui import masking
from deschedui.text import visible

REASON_LIMIT: Final = 4_096  # characters of an extender's own words that are kept
BODY_LIMIT: Final = 300  # characters of the body of an answer that was not 200


def clean(text: str, limit: int = REASON_LIMIT) -> str:
    """At most `limit` characters; hidden ones as escapes, what is secret by its form as `***`.

    Line breaks stay.
    """
    return masking.masked(visible(text[:limit], multiline=True)[:limit])


def clean_bytes(body: bytes, limit: int = BODY_LIMIT) -> str:
    """The beginning of a body as text, whatever its bytes are."""
    return clean(body[: limit * 4].decode("utf-8", errors="replace"), limit)


def masked_url(url: str) -> str:
    """A URL for showing: a token that stands in the path of one of our doors is masked."""
    return masking.masked(url)
