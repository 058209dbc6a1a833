"""What must not be kept or shown, and how it is taken out of a text: the one place for it. Pure.

By its form: the token in ``/doors/<token>/…`` (an API server quotes such a path to whoever drains), our own
``dui_…`` tokens, ``user:password@`` of a URL, the value of an ``Authorization``, cookie or key header, JSON web
tokens. By its value: what this process itself sends or was given (:class:`Known`).

Everything that writes, stores or shows text from outside asks here: logs, error reports, the extender client,
texts of an API server, stored policies.
"""

import base64
import binascii
import json
import re
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import quote

MASK: Final = "***"

# A slash, and how a slash looks inside JSON, inside a URL's query (once or twice encoded) and inside HTML.
_SLASH: Final = r"(?:/|\\/|%(?:25){0,3}2f|\\u002f|&\#x2f;|&\#47;|&sol;)"
_VERBS: Final = r"(?:evict|admission|filter|prioritize|bind|preempt)"
_END: Final = r"[)\]}.,;:!]{0,3}"
_VERB_WITHIN: Final = 100  # characters of the end of a path in which its verb is looked for


def _letter(letter: str) -> str:
    """A letter of a path as it is, or percent-encoded: a server decodes it before it looks."""
    return rf"(?:{letter}|%(?:25){{0,3}}(?:{ord(letter):02x}|{ord(letter.upper()):02x}))"


_DOOR: Final = re.compile(
    rf"(?P<door>{_SLASH}{''.join(map(_letter, 'doors'))}{_SLASH}+)"
    rf"(?P<rest>(?:{_SLASH}|[^\s\"'?#<>`\\])+)",
    re.IGNORECASE,
)
_BARE_VERB: Final = re.compile(rf"evict{_SLASH}*{_END}", re.IGNORECASE)
_LAST_VERB: Final = re.compile(rf"{_SLASH}+{_VERBS}{_SLASH}*{_END}\Z", re.IGNORECASE)

_USER: Final = re.compile(r"(?<=://)[^/\s\"'<>@]{0,1000}(?:@[^/\s\"'<>@]{0,1000}){0,10}@")
_OURS: Final = re.compile(r"\bdui_[A-Za-z0-9_-]{6,}")
_WEB_TOKEN: Final = re.compile(r"\beyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){0,4}")
_SCHEME: Final = re.compile(
    r"\b(?P<scheme>bearer|basic|digest|negotiate)(?P<gap>\s+|%20|\+)[A-Za-z0-9._~+/=%-]{8,}", re.IGNORECASE
)
_NAMED: Final = re.compile(
    r"(?P<name>(?<![A-Za-z0-9])(?:[\w-]{0,40}authorization|(?:set-)?cookie|[\w-]{0,40}api[_-]?key|[\w-]{0,40}auth[_-]token"
    r"|(?:access|refresh|id|session|csrf)[_-]?token|csrfmiddlewaretoken|(?:__host-)?(?:sessionid|csrftoken|deschedui-session|deschedui-csrf)"
    r"|client[_-]secret|secret[_-]key|[\w-]{0,40}password|passwd|passphrase)"
    r"(?:\\?[\"'])?\s{0,4}(?:[:=]|%3d)\s{0,4}(?:\\?[\"'])?)"
    r"(?:(?P<scheme>[A-Za-z]{3,12})\s+)?(?!(?:bearer|basic|digest|negotiate)\b|\$\{)(?P<value>[^\s\"'\\,;&<>]{4,})",
    re.IGNORECASE,
)
_QUERY: Final = re.compile(
    r"(?P<name>[?&](?:token|key|sig|signature|secret|code|auth|pass|pwd)=)[^\s&\"'<>#\\]+", re.IGNORECASE
)


def door_tokens(text: str) -> str:
    """Replace the token in every ``/doors/<anything>/…``; ``/doors/evict`` has none, its verb stays."""
    return _DOOR.sub(_without_token, text) if _may_hold_a_path(text) else text


def _may_hold_a_path(text: str) -> bool:
    return any(sign in text for sign in "/%\\&")


def _without_token(found: re.Match[str]) -> str:
    door, rest = found["door"], found["rest"]
    if _BARE_VERB.fullmatch(rest):
        return found[0]
    verb = _LAST_VERB.search(rest, max(0, len(rest) - _VERB_WITHIN))
    return f"{door}{MASK}{verb[0] if verb else ''}"


def credentials(text: str) -> str:
    """Replace what carries a secret by its form: users of URLs, named headers, tokens of ours, web tokens."""
    text = _USER.sub(f"{MASK}@", text)
    text = _SCHEME.sub(rf"\g<scheme>\g<gap>{MASK}", text)
    text = _NAMED.sub(_without_value, text)
    text = _QUERY.sub(rf"\g<name>{MASK}", text)
    return _WEB_TOKEN.sub(MASK, _OURS.sub(MASK, text))


def _without_value(found: re.Match[str]) -> str:
    scheme = f"{found['scheme']} " if found["scheme"] else ""
    return f"{found['name']}{scheme}{MASK}"


def masked(text: str) -> str:
    """Door tokens and credentials replaced. Masking twice changes nothing more."""
    return credentials(door_tokens(text))


class Known:
    """Secrets that are known by value: hides them, and their parts and usual encodings, wherever they turn up.

    Values under six characters are left alone: ``1`` or ``true`` would shred every text.
    """

    LEAST: Final = 6

    def __init__(self, values: Iterable[str]) -> None:
        forms = {form for value in values for form in _forms(value) if len(form) >= self.LEAST}
        self._forms = sorted(forms, key=lambda form: (-len(form), form))
        self._pattern = re.compile("|".join(map(re.escape, self._forms))) if self._forms else None

    def __bool__(self) -> bool:
        return bool(self._forms)

    def hide(self, text: str) -> str:
        """The text without them, not even with the beginning of one where the text was cut off."""
        return self._without_start(self._pattern.sub(MASK, text)) if self._pattern else text

    def _without_start(self, text: str) -> str:
        body = text.rstrip("…")
        if not any(body[-self.LEAST :] in form for form in self._forms):
            return text
        for form in self._forms:
            for length in range(min(len(form), len(body)), self.LEAST - 1, -1):
                if body.endswith(form[:length]):
                    return f"{body[:-length]}{MASK}{text[len(body) :]}"
        return text


def _forms(value: str) -> Iterator[str]:
    """The value, its parts (``Bearer <token>``, ``a=<one>; b=<two>``), and each as JSON and URLs write it."""
    value = value.strip()
    parts = [part for part in re.split(r"[\s;,=:&]+", value) if len(part) >= 8]
    for part in {value, *parts, *_basic(value)}:
        inside_json = json.dumps(part)[1:-1]
        yield from (part, inside_json, inside_json.replace("/", "\\/"), quote(part, safe=""), quote(part))


def _basic(value: str) -> list[str]:
    """User and password of a ``Basic`` credential, which an echo may have decoded."""
    scheme, _, encoded = value.partition(" ")
    if scheme.lower() != "basic":
        return []
    try:
        user, _, password = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return []
    return [f"{user}:{password}", password]
