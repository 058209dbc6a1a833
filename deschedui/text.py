"""How text from outside is shown: what hides, moves or fakes text becomes a visible escape such as ``\\u202e``. Pure.

Names, labels, reasons, errors and comments come from people and programs that we do not know. What is stored stays as
it came (bounded); what leaves, on a page, in an Event, an annotation, a log or a file, goes through here, once for
each way out:

========================  ==========================================================================
pages                     ``decisions.web.rendering``: every template that is rendered, without a filter to forget
API, JSON export          :func:`visible_json`: JSON's own escapes, so that a program reads what was stored
CSV export                :func:`csv_cell`
Events, annotations       ``deschedui.kube.text.one_line``, by :func:`visible`
logs                      ``deschedui.logs``, by :func:`visible`
========================  ==========================================================================

An escape is shown as it is written in JSON and Python. The backslash itself is not escaped, so that showing twice is
showing once; on a page an escape stands in an element of its own, which tells it from the same letters in a text.
"""

import html as entities
import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import SplitResult, urlsplit

# ---- which characters -----------------------------------------------------------------------------------------

_Range = tuple[int, int]

_CONTROL: Final[tuple[_Range, ...]] = ((0x00, 0x08), (0x0B, 0x1F), (0x7F, 0x9F))
# Unicode's category Cf: they turn the direction of a line, join, hide, or annotate; and line and paragraph separators.
_FORMAT: Final[tuple[_Range, ...]] = (
    (0xAD, 0xAD), (0x600, 0x605), (0x61C, 0x61C), (0x6DD, 0x6DD), (0x70F, 0x70F), (0x890, 0x891), (0x8E2, 0x8E2),
    (0x180E, 0x180E), (0x200B, 0x200F), (0x2028, 0x202E), (0x2060, 0x206F), (0xFEFF, 0xFEFF), (0xFFF9, 0xFFFB),
    (0x110BD, 0x110BD), (0x110CD, 0x110CD), (0x13430, 0x1343F), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A),
)  # fmt: skip
# Letters, marks and symbols that show nothing at all: fillers, blanks, joiners, variation selectors.
_BLANK: Final[tuple[_Range, ...]] = (
    (0x34F, 0x34F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x2800, 0x2800), (0x3164, 0x3164),
    (0xFE00, 0xFE0D), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8),
)  # fmt: skip
# Halves of surrogate pairs, private use, noncharacters; planes 14 to 16 have tags, selectors and private use alone.
_NO_TEXT: Final[tuple[_Range, ...]] = (
    (0xD800, 0xF8FF), (0xFDD0, 0xFDEF), (0xFFFE, 0xFFFF), (0xE0000, 0x10FFFF),
    *((plane | 0xFFFE, plane | 0xFFFF) for plane in range(0x10000, 0xE0000, 0x10000)),
)  # fmt: skip
# After one of these a variation selector chooses between a black and white and a coloured picture.
_PICTURES: Final[tuple[_Range, ...]] = (
    (0xA9, 0xA9), (0xAE, 0xAE), (0x203C, 0x203C), (0x2049, 0x2049), (0x2122, 0x2122), (0x2139, 0x2139),
    (0x2190, 0x21FF), (0x2300, 0x23FF), (0x25A0, 0x27BF), (0x2934, 0x2935), (0x2B00, 0x2BFF), (0x3030, 0x3030),
    (0x303D, 0x303D), (0x3297, 0x3299), (0x1F000, 0x1FAFF),
)  # fmt: skip
# No writing stacks more marks on a letter; more of them climb over the lines above.
_MOST_MARKS: Final = 4


def _class(ranges: Iterable[_Range]) -> str:
    """The inside of a regular expression's character class."""
    return "".join(rf"\U{first:08x}-\U{last:08x}" for first, last in ranges)


def _marks() -> Iterator[_Range]:
    for code in range(0x300, 0x10000):
        if unicodedata.category(chr(code)) in {"Mn", "Me"}:
            yield code, code


_HIDDEN: Final = _class((*_CONTROL, *_FORMAT, *_BLANK, *_NO_TEXT))
_MARK: Final = _class(_marks())
_SELECTOR: Final = r"\ufe0e\ufe0f"
_SUSPECT: Final = re.compile(f"[{_HIDDEN}{_SELECTOR}{_MARK}]")
_DANGEROUS: Final = re.compile(
    rf"[{_HIDDEN}]"
    rf"|(?<![{_class(_PICTURES)}])(?!(?<=[0-9#*])\ufe0f\u20e3)[{_SELECTOR}]"
    rf"|(?<=[{_MARK}]{{{_MOST_MARKS}}})[{_MARK}]"
)
_IN_ONE_LINE: Final = re.compile(rf"\n|\t|{_DANGEROUS.pattern}")
_SHORT: Final = {"\n": r"\n", "\t": r"\t", "\r": r"\r"}


def escape(character: str) -> str:
    r"""The escape of one character: ``\n``, ``\u202e``, ``\U000e0041``."""
    code = ord(character)
    return _SHORT.get(character) or (rf"\u{code:04x}" if code < 0x10000 else rf"\U{code:08x}")


def hidden(text: str) -> bool:
    """Whether something in the text is not shown as it is (line breaks and tabs aside)."""
    return _suspect(text) and _DANGEROUS.search(text) is not None


def _suspect(text: str) -> bool:
    """A quick look at the characters that occur at all: nearly every page has none of these, and is long."""
    return _SUSPECT.search("".join(set(text))) is not None


# ---- plain text -----------------------------------------------------------------------------------------------


def visible(text: str, *, multiline: bool = False) -> str:
    r"""The text with everything dangerous in it escaped. Printable text comes back unchanged, and so does its result.

    Args:
        text: from outside.
        multiline: line breaks and tabs are meant and stay (``\r\n`` as ``\n``); else they are escaped too.
    """
    if multiline:
        text, dangerous = text.replace("\r\n", "\n"), _DANGEROUS
    else:
        dangerous = _IN_ONE_LINE
    return dangerous.sub(lambda found: escape(found[0]), text)


# ---- HTML -----------------------------------------------------------------------------------------------------

# In an attribute ``>`` may stand for itself; markup within these elements is text, not elements.
_TAG: Final = re.compile(r"""<!--.*?-->|<[a-zA-Z/!?](?:[^"'>]|"[^"]*"|'[^']*')*>""", re.DOTALL)
_TEXT_ONLY: Final = re.compile(r"<(/?)(title|textarea|option|script|style|desc)\b", re.IGNORECASE)
_REFERENCE: Final = re.compile(r"&#(?:[0-9]{1,9}|[xX][0-9a-fA-F]{1,8});?|&[a-zA-Z]{2,31};")
_CALLED: Final = {
    "Cc": "control character",
    "Cs": "half of a surrogate pair",
    "Co": "private use",
    "Cn": "not a character",
}


def visible_html(html: str) -> str:
    """A rendered page or fragment with everything dangerous in it escaped.

    In the text each escape is an element with the character's name as its title. In attributes, and in elements that
    hold text alone (``title``, ``textarea``, ``option``), it is plain. Our own templates have nothing of the kind in
    them, so whatever is found came from outside.
    """
    html = _without_references(html).replace("\r\n", "\n")
    return "".join(_visible_parts(html)) if _suspect(html) else html


def _visible_parts(html: str) -> Iterator[str]:
    at, within = 0, ""
    for tag in _TAG.finditer(html):
        yield _visible_text(html[at : tag.start()], plain=bool(within))
        yield visible(tag[0], multiline=True)
        within = _entered(tag[0], within)
        at = tag.end()
    yield _visible_text(html[at:], plain=bool(within))


def _entered(tag: str, within: str) -> str:
    """The element of text alone that the reader is in after this tag; empty: in none."""
    found = _TEXT_ONLY.match(tag)
    if found is None:
        return within
    closing, name = bool(found[1]), found[2].lower()
    if within:
        return "" if closing and name == within else within
    return "" if closing else name


def _visible_text(text: str, *, plain: bool) -> str:
    if plain:
        return visible(text, multiline=True)
    return _DANGEROUS.sub(lambda found: _element(found[0]), text)


def _element(character: str) -> str:
    return f'<span class="esc" title="{called(character)}">{escape(character)}</span>'


def called(character: str) -> str:
    """A character's number and name: ``U+202E RIGHT-TO-LEFT OVERRIDE``."""
    name = unicodedata.name(character, "") or _CALLED.get(unicodedata.category(character), "")
    return f"U+{ord(character):04X} {name}".rstrip()


def _without_references(html: str) -> str:
    """Dangerous characters that are written as references (``&#8238;``, ``&rlm;``) as themselves, to be seen below."""

    def plain(found: re.Match[str]) -> str:
        character = entities.unescape(found[0])
        return character if len(character) == 1 and _SUSPECT.match(character) else found[0]

    return _REFERENCE.sub(plain, html)


# ---- JSON -----------------------------------------------------------------------------------------------------


def visible_json(document: str) -> str:
    """A JSON text with everything dangerous in it as JSON's own escapes: it reads back as the same document.

    In JSON such characters can stand in strings alone, where an escape means the character itself.
    """
    return _DANGEROUS.sub(lambda found: _json_escape(found[0]), document) if hidden(document) else document


def _json_escape(character: str) -> str:
    if character == "\r":  # white space between the tokens of a document; never raw in a string
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(rf"\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


# ---- CSV ------------------------------------------------------------------------------------------------------

# What a spreadsheet takes for the beginning of a formula, full-width forms included, also after blanks and quotes.
_FORMULA: Final = re.compile(r"[\s'\"]*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")


def csv_cell(value: object) -> str:
    r"""A cell that no spreadsheet runs, on one line.

    What could begin a formula gets an apostrophe in front, which a spreadsheet takes as "this is text". Line breaks,
    tabs and everything dangerous are escapes. To read a cell back: drop one leading apostrophe, then read the escapes;
    who needs the stored text exactly takes the JSON, which has every character.
    """
    text = "" if value is None else str(value)
    defused = f"'{text}" if _FORMULA.match(text) else text
    return visible(defused)


# ---- links ----------------------------------------------------------------------------------------------------

_LONGEST_ADDRESS: Final = 2_000
_ADDRESS: Final = re.compile(r"""(?i:https?)://((?![\\<>"'`])[!-~])+""")
_HOST: Final = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?\.?|\[[0-9a-f:.]+\]")


def web_address(text: str) -> str:
    r"""The text where it is an address that a page may link to, else empty.

    Only ``http://`` and ``https://`` and an ASCII host: no other scheme, none relative to ours (``//host``), no
    user before the host (``https://bank.example@evil``), no backslash (browsers read it as a slash), no blank,
    control or invisible character that a browser would strip and a reader would not see.
    """
    fits = len(text) <= _LONGEST_ADDRESS and _ADDRESS.fullmatch(text)
    return text if fits and _reaches_a_host(text) else ""


def _reaches_a_host(address: str) -> bool:
    try:
        parts: SplitResult = urlsplit(address)
        return "@" not in parts.netloc and bool(_HOST.fullmatch(_host_of(parts))) and parts.port != 0
    except ValueError:
        return False


def _host_of(parts: SplitResult) -> str:
    host = parts.hostname or ""
    return f"[{host}]" if ":" in host else host
