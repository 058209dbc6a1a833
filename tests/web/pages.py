"""How the tests speak to pages: as htmx does, and reading what a person would read."""

import html
import re
from typing import Any

BLOCKS = r"</?(td|th|tr|p|div|button|li|option|h\d|dt|dd|label|form|section|ul|ol|select|pre|summary|details)\b[^>]*>"
HTMX = {"HX-Request": "true"}


def row_headers(pk: int) -> dict[str, str]:
    """What htmx sends when the target is a row of the inbox."""
    return {**HTMX, "HX-Target": f"d-{pk}"}


def links_of(response: Any) -> dict[str, str]:
    """Where each link of a page leads, by its text."""
    found = re.findall(r'<a\b[^>]*?href="([^"]*)"[^>]*>(.*?)</a>', response.content.decode(), flags=re.DOTALL)
    return {text_of(label): html.unescape(address) for address, label in found}


def text_of(response: Any) -> str:
    """The text that a person reads, on one line."""
    body = response.content.decode() if hasattr(response, "content") else str(response)
    body = re.sub(r"<(script|style|svg)\b.*?</\1>", "", body, flags=re.DOTALL)
    body = re.sub(BLOCKS, " ", body)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", "", body))).strip()
