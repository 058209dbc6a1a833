"""Text that comes from outside: bounded, printable, and without door tokens."""

import re
from typing import Final

REASON_LIMIT: Final = 4_096  # characters of an extender's own words that are kept
BODY_LIMIT: Final = 300  # characters of the body of an answer that was not 200

# What a database or a terminal chokes on, and what can make a line read as another one: control characters
# but tab and line breaks, lone surrogates, and the marks that turn the direction of text around.
_UNFIT: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")
_DOOR_TOKEN: Final = re.compile(r"(/doors/+)[^/\s]+(?=/)")


def clean(text: str, limit: int = REASON_LIMIT) -> str:
    """At most `limit` characters; what cannot be stored or shown becomes U+FFFD, a door's token `***`.

    Line breaks stay.
    """
    return masked_url(_UNFIT.sub("\ufffd", text[:limit]))


def clean_bytes(body: bytes, limit: int = BODY_LIMIT) -> str:
    """The beginning of a body as text, whatever its bytes are."""
    return clean(body[: limit * 4].decode("utf-8", errors="replace"), limit)


def masked_url(url: str) -> str:
    """A URL, or text with URLs, for showing: a token that stands in the path of one of our doors is masked."""
    return _DOOR_TOKEN.sub(r"\1***", url)
