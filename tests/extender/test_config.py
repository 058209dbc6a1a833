"""The arguments of an extender: what is taken, and what is said about the rest."""

import pytest
from pydantic import ValidationError

from deschedui.extender.config import ConfigErrors, ExtenderArgs, FailPolicy, mask_header_value, read_extender
from tests.extender.builders import args, objections, raw_args


@pytest.mark.parametrize("field", ["urlPrefix", "ignorable", "httpTimeout"])
def test_what_has_no_default_is_required(field: str) -> None:
    assert [text for text in objections(**{field: None}) if text.startswith(f"{field} is required")]


def test_null_is_as_good_as_left_out() -> None:
    given = read_extender({**raw_args(), "failPolicy": None, "tlsConfig": None, "enableHTTPS": None})
    assert given.fail_policy is FailPolicy.DENY


def test_everything_wrong_is_said_at_once() -> None:
    said = objections(httpTimeout="5", failPolicy="deny", ignorable="yes", urlPrefix="ftp://x", ignorble=True)
    assert len(said) == 5
    assert "unknown field ignorble, did you mean ignorable?" in said[-1]


def test_objections_name_the_field_as_the_policy_spells_it() -> None:
    with pytest.raises(ConfigErrors) as refused:
        args(urlPrefix="https://ext.test", tlsConfig={"certFile": "client.crt"})
    [problem] = refused.value.problems
    assert problem.below("extenders", 0).field == "extenders[0].tlsConfig.keyFile"


def test_pydantic_reports_the_same_without_the_values() -> None:
    with pytest.raises(ValidationError) as refused:
        ExtenderArgs.model_validate(raw_args(httpHeaders={"Authorization": 5, "X": "hunter2\n"}))
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("prefix", "verb", "url"),
    [
        ("http://h", "evict", "http://h/evict"),
        ("http://h/", "/evict", "http://h/evict"),
        ("http://h//", "//evict", "http://h/evict"),
        ("http://h/api/v1", "evict/", "http://h/api/v1/evict/"),
        ("http://h/api/", None, "http://h/api"),
        ("https://[::1]:8443", "evict", "https://[::1]:8443/evict"),
    ],
)
def test_slashes_at_the_seam_do_not_double(prefix: str, verb: str | None, url: str) -> None:
    assert args(urlPrefix=prefix, decisionVerb=verb).url == url


NO_SCHEME = ["", "h", "h:80", "//h", "ftp://h", "https:h", "http:/h"]
NO_HOST = [
    "http://",
    "http:///x",
    "http://[::1",
    "http://::1",
    "http://a..b",
    "http://-a",
    "http://%31%32",
    "http://é.test",
]
NO_PORT = ["http://h:0", "http://h:99999", "http://h:", "http://h:x"]
QUERY = ["http://h?a=1", "http://h/?", "http://h#x", "http://h/x#"]
ODD = ["http://a b", "http://h\\x", "http://h\n", "http://h@", "http://h/" + "x" * 2_000]
DISGUISED = [
    "http://2852039166",
    "http://0xa9fea9fe",
    "http://0251.0376.0251.0376",
    "http://169.254.43518",
    "http://a.1",
]


@pytest.mark.parametrize("url", [*NO_SCHEME, *NO_HOST, *NO_PORT, *QUERY, *ODD, *DISGUISED])
def test_a_url_needs_scheme_and_host_and_neither_query_nor_fragment(url: str) -> None:
    [said] = objections(urlPrefix=url)
    assert said.startswith("urlPrefix ")


@pytest.mark.parametrize(
    "url", ["http://sam:hunter2@h", "https://sam@h/", "http://sam:hunter2@h?x", "//u:hunter2@h"]
)
def test_credentials_in_a_url_are_refused_and_not_repeated(url: str) -> None:
    [said] = objections(urlPrefix=url)
    assert "httpHeaders" in said
    assert "hunter2" not in said


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "[fe80::1]",
        "[::ffff:169.254.169.254]",
        "[64:ff9b::a9fe:a9fe]",
        "[2002:a9fe:a9fe::]",
    ],
)
def test_a_link_local_url_is_refused_before_anything_is_called(host: str) -> None:
    assert "link-local" in objections(urlPrefix=f"http://{host}/")[0]


@pytest.mark.parametrize(("scheme", "enabled"), [("http", True), ("https", False), ("HTTPS", False)])
def test_enable_https_must_not_contradict_the_scheme(scheme: str, enabled: bool) -> None:
    assert "enableHTTPS" in objections(urlPrefix=f"{scheme}://h", enableHTTPS=enabled)[0]


@pytest.mark.parametrize(
    ("scheme", "enabled"), [("http", False), ("https", True), ("https", None), ("http", None)]
)
def test_enable_https_follows_the_scheme(scheme: str, enabled: bool | None) -> None:
    assert args(urlPrefix=f"{scheme}://h", enableHTTPS=enabled).https is (scheme == "https")


@pytest.mark.parametrize(
    "tls", [{"certFile": "a"}, {"keyFile": "a"}, {"certFile": ""}, {"serverName": "a b"}, {"x": "y"}]
)
def test_a_tls_section_that_cannot_work_is_refused(tls: dict[str, str]) -> None:
    assert objections(urlPrefix="https://h", tlsConfig=tls)


def test_tls_over_plain_http_would_encrypt_nothing() -> None:
    assert "nothing would be encrypted" in objections(tlsConfig={"caCertFile": "ca.crt"})[0]


@pytest.mark.parametrize(
    "headers",
    [
        {"A b": "x"},
        {"": "x"},
        {"Host": "x"},
        {"content-length": "5"},
        {"X": "a\r\nY: b"},
        {"X": "é"},
        {"X": 5},
        {"X": "${HOME}"},
        {"X": "${env:}"},
        {"X": "${cmd:id}"},
        {"X": "1", "x": "2"},
    ],
)
def test_headers_that_cannot_be_sent_are_refused(headers: dict[str, object]) -> None:
    assert objections(httpHeaders=headers)


def test_header_values_stay_out_of_sight() -> None:
    given = args(httpHeaders={"X-Key": "hunter2", "Authorization": "Bearer ${env:TOKEN}"})
    assert "hunter2" not in f"{given!r} {given} {given.masked()}"
    assert given.masked()["httpHeaders"] == {"X-Key": "***", "Authorization": "Bearer ${env:TOKEN}"}


@pytest.mark.parametrize(
    "value", ["hunter2", "Bearer hunter2", "hunter2 ${env:X}", "Bearer ${env:X}hunter2", "bearer"]
)
def test_only_references_are_shown(value: str) -> None:
    assert mask_header_value(value) == "***"


def test_masked_arguments_are_arguments() -> None:
    given = args(httpTimeout="90s", ignorable=True, failPolicy="Ignore", podReferenceOnly=True)
    assert read_extender(given.masked()) == given


def test_a_door_token_in_a_path_is_masked() -> None:
    shown = args(urlPrefix="https://h/doors/s3cret").masked()
    assert "s3cret" not in str(shown)


def test_the_plugins_fail_policy_is_a_default() -> None:
    assert args().with_default_fail_policy(FailPolicy.ALLOW).fail_policy is FailPolicy.ALLOW
    assert args(failPolicy="Deny").with_default_fail_policy(FailPolicy.ALLOW).fail_policy is FailPolicy.DENY


def test_ignorable_is_put_into_words() -> None:
    [alone] = args(ignorable=True).warnings()
    [both] = args(ignorable=True, failPolicy="Deny").warnings()
    assert "evict although nobody answered" in alone
    assert "failPolicy Deny then only counts for malformed answers" in both
    assert args(failPolicy="Allow").warnings() == ()


@pytest.mark.parametrize("data", [None, [], "http://h", 5])
def test_arguments_are_a_mapping(data: object) -> None:
    with pytest.raises(ConfigErrors, match="must be a mapping"):
        read_extender(data)
