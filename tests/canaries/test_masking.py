"""What is taken out of a text by its form, whatever the text is and however the path is spelled."""

import json
from collections.abc import Callable
from functools import partial
from urllib.parse import quote

import pytest

from deschedui import masking
from deschedui.masking import Known, masked

TOKEN = "wT3Jt0g6-Zq9_x"

PATHS = [
    "/doors/{}/evict",
    "//doors//{}//evict",
    "/Doors/{}/evict",
    "/DOORS/{}/admission?timeout=5s",
    "/doors/{}",
    "/doors/{}/",
    "/doors/{}?a=1",
    "/doors/{}#x",
    "/doors/./{}/evict",
    "/doors/x/../{}/evict",
    "/doors/evict/{}/evict",
    "/doors/{}/evict/evict",
    "/doors/{}/a/verb/of/theirs",
    "%2Fdoors%2F{}%2Fevict",
    "https%3A%2F%2Fd.example%2fdoors%2f{}%2fevict",
    "%252Fdoors%252F{}%252Fevict",
    "/%64oors/{}/evict",
    "/d%6F%6Frs/{}/evict",
    "/d%256Fors/{}/evict",
    r"https:\/\/d.example\/doors\/{}\/evict",
    r"\u002fdoors\u002f{}\u002fevict",
    "&#x2F;doors&#x2F;{}&#x2F;evict",
    "https://user:pw@d.example:8443/doors/{}/filter",
    '"POST /doors/{}/evict HTTP/1.1" 200',
    'Post "https://d.example/doors/{}/admission?timeout=5s": dial tcp: connection refused',
    "see <https://d.example/doors/{}/evict>, or (/doors/{}/evict).",
    "KeyError('/doors/{}/evict')",
    "b'/doors/{}/evict'",
    "/doors/%77{}/evict",
]


@pytest.mark.parametrize("text", PATHS)
def test_a_doors_token_is_masked_however_its_path_is_spelled(text: str) -> None:
    assert TOKEN not in masked(text.replace("{}", TOKEN))


@pytest.mark.parametrize(
    "token", ["evictor", "evict-7", "EVICT2", "a", "%2e", "ev%69ct", "tök€n", "a;b", "a&b=c", "a@b"]
)
def test_anything_between_the_slashes_is_a_token(token: str) -> None:
    assert masked(f"GET /doors/{token}/evict took 7 ms") == "GET /doors/***/evict took 7 ms"


@pytest.mark.parametrize(
    "text",
    [
        "POST /doors/evict took 7 ms",
        "POST /doors/evict/",
        "the two doors/windows are open",
        "no token: send it as “Authorization: Bearer …”",
        "outdoors/sports/evict",
        "read /doors",
        "PDB web: 1 of 3 may be down; password rotation is due",
    ],
)
def test_what_has_no_secret_stays(text: str) -> None:
    assert masked(text) == text


SECRET = "s3cr3t-Zq9xT7vW2"


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer {}",
        "authorization: {}",
        '{{"Authorization": "Bearer {}"}}',
        "{{'authorization': 'Basic {}'}}",
        "got header X-Api-Key={} from you",
        "X-Auth-Token: {}",
        "Cookie: sessionid={}; csrftoken=x",
        "Cookie: a=b; __Host-deschedui-session={}",
        "deschedui-csrf={}",
        "Set-Cookie: {}",
        "csrfmiddlewaretoken={}&password={}",
        "postgresql://deschedui:{}@db:5432/x",
        "redis://:{}@redis:6379/0",
        "https://{}@ext.example/evict",
        "https://user:a@{}@ext.example/evict",
        "https://ext.example/evict?token={}&x=1",
        "https://ext.example/evict?x=1&sig={}",
        "access_token={}",
        "bearer%20{}",
        "the token dui_{} was revoked",
        "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4{}.sig{}",
        "DESCHEDUI_SECRET_KEY={}",
        "db_password = '{}'",
    ],
)
def test_credentials_are_masked_by_their_form(text: str) -> None:
    assert SECRET not in masked(text.replace("{}", SECRET).replace("{{", "{").replace("}}", "}"))


@pytest.mark.parametrize("text", [*PATHS, "Authorization: Bearer {}", "redis://:{}@redis/0"])
def test_masking_twice_is_masking_once(text: str) -> None:
    once = masked(text.replace("{}", TOKEN))
    assert masked(once) == once


def test_masking_a_long_text_takes_no_time() -> None:
    for piece in (
        "/doors/",
        "://",
        "@",
        "%2f",
        "authorization",
        "eyJ",
        "dui_",
        "password=",
        "a-",
        "&#x2f;",
        "\\",
    ):
        masked(piece * 20_000)


# --- secrets that are known by their value ----------------------------------------------------------------


def test_what_was_sent_is_hidden_where_it_is_echoed() -> None:
    known = Known(["Bearer Zq9xT7vW2-k4"])
    assert known.hide("you sent Bearer Zq9xT7vW2-k4!") == "you sent ***!"
    assert known.hide("token Zq9xT7vW2-k4 is not mine") == "token *** is not mine"


@pytest.mark.parametrize(
    "write", [json.dumps, quote, partial(quote, safe=""), lambda value: json.dumps(value).replace("/", r"\/")]
)
def test_also_as_json_and_urls_write_it(write: Callable[[str], str]) -> None:
    value = 'tok/en+with=all&of#"it'
    assert Known([value]).hide(f"got {write(value)}.") in {"got ***.", 'got "***".'}


def test_also_the_password_inside_a_basic_credential() -> None:
    assert (
        Known(["Basic ZXh0OmgzcnItWjlx"]).hide("bad password h3rr-Z9q for ext") == "bad password *** for ext"
    )


@pytest.mark.parametrize("end", ["", "…"])
def test_also_its_beginning_where_the_text_was_cut(end: str) -> None:
    assert Known(["Zq9xT7vW2-k4"]).hide(f"token is Zq9xT7v{end}") == f"token is ***{end}"


def test_a_value_that_is_a_common_word_hides_nothing() -> None:
    assert Known(["1", "true", ""]).hide("1 pod is true") == "1 pod is true"
    assert not Known([""])


def test_only_one_module_knows_what_a_token_in_a_path_looks_like() -> None:
    assert masking.door_tokens("/doors/x/evict") == "/doors/***/evict"
