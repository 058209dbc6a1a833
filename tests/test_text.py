"""Text from outside shows what it is made of, and printable text stays as it is."""

import csv
import io
import json
import sys
import unicodedata
from datetime import UTC, datetime
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deschedui.extender.texts import clean
from deschedui.kube.events import EventRequest
from deschedui.kube.eviction import eviction_annotations
from deschedui.kube.text import one_line
from deschedui.text import called, csv_cell, escape, hidden, visible, visible_html, visible_json, web_address

# Every character there is, halves of surrogate pairs and NUL included; the dangerous ones often.
TRICKS = (
    "\x00\t\n\r\x1b\x7f\x85\xad\u061c\u180e\u200b\u200d\u200e\u200f\u2028\u2029\u202a\u202e\u2060\u2066\u2069"
)
TRICKS += "\ufe0f\ufeff\ufff9\ud800\udfff\ue000\uffff\U000e0041\U000e0100\u034f\u3164\u0301"
ANY = st.text(st.one_of(st.sampled_from(TRICKS), st.characters(exclude_categories=())))
PRINTABLE = st.text(
    st.characters(categories=("L", "N", "P", "S", "Zs"), exclude_characters="\u115f\u1160\u3164\uffa0\u2800")
)
MARKUP = st.text(
    st.one_of(st.sampled_from("<>&\"'=/ ab\u202e\u200b\n"), st.characters(exclude_categories=()))
)


def dangerous(text: str) -> list[str]:
    """Characters that no way out may let through, told by Unicode's own categories."""
    return [each for each in text if unicodedata.category(each) in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}]


# --- plain text --------------------------------------------------------------------------------------------


@given(ANY)
def test_nothing_dangerous_comes_out(text: str) -> None:
    assert dangerous(visible(text)) == []


@given(ANY)
def test_where_lines_are_meant_only_their_breaks_and_tabs_stay(text: str) -> None:
    assert set(dangerous(visible(text, multiline=True))) <= {"\n", "\t"}


@given(ANY)
def test_showing_twice_is_showing_once(text: str) -> None:
    assert visible(visible(text)) == visible(text)


@given(PRINTABLE)
def test_printable_text_stays_as_it_is(text: str) -> None:
    assert visible(text) == text


def test_every_character_of_a_dangerous_category_is_escaped() -> None:
    found = dangerous("".join(map(chr, range(sys.maxunicode + 1))))
    assert [each for each in found if visible(each) == each] == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("web\u202e\u0031-bew", r"web\u202e1-bew"),
        ("a\r\nb\tc", r"a\r\nb\tc"),
        ("\x1b[31mred", r"\u001b[31mred"),
        ("shop\u200bping", r"shop\u200bping"),
        ("tag\U000e0041", r"tag\U000e0041"),
        ("\x00\ud800", r"\u0000\ud800"),
        ("web-1\ufe0f", r"web-1\ufe0f"),
        ("\u3164filler\u2800", r"\u3164filler\u2800"),
    ],
)
def test_an_escape_says_which_character_it_was(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize(
    "text", ["Grüße", "日本語", "שלום", "⚠️ mind", "1️⃣", "👍🏽", "ệ", "a\u00a0b", "“quoted” …"]
)
def test_what_people_write_stays(text: str) -> None:
    assert visible(text) == text


def test_a_picture_keeps_one_selector_and_no_more() -> None:
    assert visible("⚠\ufe0f\ufe0f\ufe01") == "⚠\ufe0f" + r"\ufe0f\ufe01"


def test_marks_do_not_climb_over_the_lines_above() -> None:
    assert visible("a" + "\u0301" * 6) == "a" + "\u0301" * 4 + r"\u0301\u0301"


def test_lines_that_are_meant_stay_and_a_lone_return_does_not() -> None:
    assert visible("a\r\n\tb\rc\u2028d", multiline=True) == "a\n\tb" + r"\rc\u2028d"


@given(ANY)
def test_what_is_not_hidden_is_not_changed(text: str) -> None:
    assert hidden(text) or visible(text, multiline=True) == text


# --- HTML --------------------------------------------------------------------------------------------------


class Parts(HTMLParser):
    """The elements, attributes and texts of a page, as a browser would find them."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.names: set[str] = set()
        self.values: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.names |= {name for name, _ in attrs}
        self.values += [value or "" for _, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


@given(MARKUP)
def test_no_page_has_anything_dangerous_in_it(page: str) -> None:
    assert set(dangerous(visible_html(page))) <= {"\n", "\t"}


def test_in_the_text_of_a_page_an_escape_is_an_element_with_a_name() -> None:
    shown = visible_html("<p>a\u202eb</p>")
    assert shown == '<p>a<span class="esc" title="U+202E RIGHT-TO-LEFT OVERRIDE">\\u202e</span>b</p>'


@pytest.mark.parametrize("element", ["title", "textarea", "option", "script", "style"])
def test_where_no_element_can_stand_it_is_plain(element: str) -> None:
    shown = visible_html(f"<{element}>a\u202e</{element}><p>b\u200b</p>")
    assert shown.startswith(rf"<{element}>a\u202e</{element}><p>b<span")


@pytest.mark.parametrize("quote", ['"', "'"])
def test_in_an_attribute_it_is_plain_even_behind_what_looks_like_the_end(quote: str) -> None:
    shown = Parts(visible_html(f"<p title={quote}x > y\u202ez{quote}>t</p>"))
    assert (shown.tags, shown.values) == (["p"], [r"x > y\u202ez"])


@pytest.mark.parametrize(
    "reference", ["&#8238;", "&#x202e;", "&#X202E;", "&rlm;", "&ZeroWidthSpace;", "&shy;"]
)
def test_a_reference_hides_nothing(reference: str) -> None:
    assert 'class="esc"' in visible_html(f"<p>{reference}</p>")


@pytest.mark.parametrize(
    "reference", ["&amp;", "&lt;", "&quot;", "&#x27;", "&nbsp;", "&#60;", "&nonsense;", "&#99999999;"]
)
def test_other_references_stay(reference: str) -> None:
    assert visible_html(f"<p>{reference}\u202e</p>").startswith(f"<p>{reference}<span")


def test_a_page_without_any_of_it_is_the_same() -> None:
    page = "<!doctype html>\n<p class='a'>Grüße · 3 &lt; 4\t…</p>\n<pre>a\n\tb</pre>"
    assert visible_html(page) == page


def test_characters_without_a_name_are_called_by_their_kind() -> None:
    assert [called(each) for each in "\x00\ue000\ud800"] == [
        "U+0000 control character",
        "U+E000 private use",
        "U+D800 half of a surrogate pair",
    ]


# --- JSON --------------------------------------------------------------------------------------------------


@given(st.recursive(ANY, lambda inner: st.lists(inner) | st.dictionaries(ANY, inner)))
def test_json_reads_back_as_it_was_and_hides_nothing(value: object) -> None:
    shown = visible_json(json.dumps(value, ensure_ascii=False))
    assert json.loads(shown) == json.loads(json.dumps(value))
    assert dangerous(shown) == []


def test_json_keeps_what_can_be_read() -> None:
    assert visible_json('"Grüße \u202e\U000e0041"') == r'"Grüße \u202e\udb40\udc41"'


# --- CSV ---------------------------------------------------------------------------------------------------

FORMULAS = [
    "=1+1",
    "+1",
    "-1",
    "@x",
    "\t=1",
    " =1",
    "\r=1",
    "\n@x",
    '"=1',
    "'=1",
    " '\"-1",
    "＝1",
    "＋1",
    "－1",
    "＠x",
    "\u00a0=1",
    "\u3000＝1",
]


@pytest.mark.parametrize("text", FORMULAS)
def test_no_cell_is_a_formula(text: str) -> None:
    assert csv_cell(text).startswith("'")


@pytest.mark.parametrize("text", ["web-1", "pod is 26h old", "", "a=b", "3 - 1", "ünï"])
def test_other_cells_stay_as_they_are(text: str) -> None:
    assert csv_cell(text) == text


@given(ANY)
def test_a_cell_is_one_line_and_hides_nothing(text: str) -> None:
    assert dangerous(csv_cell(text)) == []


@given(ANY)
def test_a_cell_reads_back_without_its_apostrophe(text: str) -> None:
    file = io.StringIO()
    csv.writer(file).writerow([csv_cell(text), "end"])
    (cell, _end), *more = csv.reader(io.StringIO(file.getvalue()))
    assert not more
    assert cell.removeprefix("'" if csv_cell(text) != visible(text) else "") == visible(text)


# --- links -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        "https://a.example/x?y=1#z",
        "http://10.0.0.1:8080/",
        "HTTPS://A.example",
        "https://the-quick.brown.fox/JUMPS/over?the=lazy&dog#KISI",
        "https://[::1]/x",
        "https://a.example/@me",
    ],
)
def test_a_page_may_link_to_the_web(address: str) -> None:
    assert web_address(address) == address


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)", "JaVaScRiPt:alert(1)", "java\tscript:alert(1)", " javascript:alert(1)",
        "data:text/html,x", "vbscript:x", "file:///etc/passwd", "ftp://a.example", "blob:https://a",
        "//evil.example/x", "/d/1/",
        "https:evil", "https:/evil", "https:///evil", r"https:\\evil", r"https://a\@evil", "https://bank.example@evil.example",
        "https://user:pw@evil.example/", "https://e\u202evil.example", "https://ev\til.example",
        "https://ev\u200bil.example", " https://a.example", "https://a.example\n", "https://a.example/\"onmouseover=x", "https://a.example/<b>",
        "https://", "https://?x", "https://-a", "https://a..b:x/", "https://a:0/", "https://a:99999/", "https://аpple.com/",
        "https://a.example/" + "x" * 2000, "",
    ],
)  # fmt: skip
def test_and_to_nothing_else(address: str) -> None:
    assert web_address(address) == ""


@given(ANY)
def test_no_text_makes_it_fail(text: str) -> None:
    assert web_address("https://" + text) in {"", "https://" + text}


# --- the ways out of the engine ------------------------------------------------------------------------------


def test_what_an_api_server_says_is_one_line_with_escapes() -> None:
    assert one_line(" pod\n \u202ex\x00\u200b", 100) == r"pod \u202ex\u0000\u200b"


def test_what_an_extender_says_keeps_its_lines() -> None:
    assert clean("no\r\n\u2066room") == "no\n" + r"\u2066room"


@given(ANY)
def test_an_annotation_hides_nothing(text: str) -> None:
    annotations = eviction_annotations(profile=text, plugin=text, reason=text, approved_by=text)
    assert dangerous("".join(annotations.values())) == []


@given(ANY)
def test_an_event_hides_nothing_and_fits(text: str) -> None:
    at = datetime(2026, 11, 30, tzinfo=UTC)
    event = EventRequest("shop", "web-1", "u1", reason=text, action=text, note=text, at=at, key=text).body()
    assert dangerous(event["note"] + event["reason"] + event["action"] + event["metadata"]["name"]) == []
    assert len(event["note"].encode()) <= 1024


def test_an_escape_is_short() -> None:
    assert [escape(each) for each in "\n\r\t\x00\u202e\U000e0041"] == [
        r"\n", r"\r", r"\t", r"\u0000", r"\u202e", r"\U000e0041"
    ]  # fmt: skip
