"""Reading an answer: nothing malformed is ever a yes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deschedui.extender.answers import ANSWER_LIMIT, Answer, InvalidAnswer, read_answer


def why_not(body: str | bytes) -> str:
    with pytest.raises(InvalidAnswer) as refused:
        read_answer(body.encode() if isinstance(body, str) else body)
    return str(refused.value)


@pytest.mark.parametrize(
    "body",
    [
        '{"allow":true}',
        '{"ALLOW":true}',
        '{"Allow":true}',
        ' \n{"aLLow" : true}\t',
        '{"allow":true,"x":[{}]}',
    ],
)
def test_a_yes_is_read_in_any_case_of_the_name(body: str) -> None:
    assert read_answer(body.encode()) == Answer(allow=True, reason="", error="")


def test_reason_and_error_are_read() -> None:
    body = b'{"allow":false,"Reason":"peak hours","ERROR":"db away"}'
    assert read_answer(body) == Answer(allow=False, reason="peak hours", error="db away")


@pytest.mark.parametrize("body", ['{"allow":true,"reason":null}', '{"allow":true,"error":null,"error":""}'])
def test_null_leaves_a_text_unset(body: str) -> None:
    assert read_answer(body.encode()) == Answer(allow=True, reason="", error="")


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ('"true"', "string"),
        ('"false"', "string"),
        ("1", "number"),
        ("0", "number"),
        ("1e999", "number"),
        ("1" * 5000, "number"),
        ("[true]", "array"),
        ("{}", "object"),
    ],
)
def test_allow_must_be_a_boolean(value: str, kind: str) -> None:
    assert f"allow must be a boolean, got {kind}" in why_not(f'{{"allow":{value}}}')


@pytest.mark.parametrize(
    "body",
    ["", " \n", "null", "{}", "[]", '{"allow":null}', '{"reason":"fine"}', '{"al":true}', "true", '"x"', "1"],
)
def test_allow_must_be_there(body: str) -> None:
    assert "allow is" in why_not(body)


@pytest.mark.parametrize(
    "body",
    ['{"allow":true}{}', '{"allow":true} x', '{"allow":true}\n{"allow":true}', '{"allow":true}\x00', "{}]"],
)
def test_trailing_data_is_refused(body: str) -> None:
    assert "trailing data" in why_not(body)


@pytest.mark.parametrize(
    "body",
    [
        "<html>ok</html>",
        "ok",
        "{'allow': true}",
        '{"allow":True}',
        '{"allow":true',
        '{"allow":true,}',
        "// x\n{}",
    ],
)
def test_what_is_not_json_is_refused(body: str) -> None:
    assert "not JSON" in why_not(body)


@pytest.mark.parametrize("name", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_json_lacks_are_refused(name: str) -> None:
    assert name in why_not(f'{{"allow":true,"score":{name}}}')


def test_html_is_named_as_such() -> None:
    assert "looks like HTML" in why_not("\n<!doctype html><p>Sign in")


def test_a_byte_order_mark_is_refused() -> None:
    assert "BOM" in why_not(b"\xef\xbb\xbf" + b'{"allow":true}')


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "utf-16-be"])
def test_other_encodings_are_refused(encoding: str) -> None:
    assert why_not('{"allow":true}'.encode(encoding))


@pytest.mark.parametrize(
    "body",
    [
        b'{"allow":true,"reason":"\xff"}',
        b'{"allow":true,"\xc0\xaf":1}',
        b'{"allow":true,"reason":"\xed\xa0\x80"}',
    ],
)
def test_bytes_that_are_not_utf8_are_refused(body: bytes) -> None:
    assert "not UTF-8" in why_not(body)


@pytest.mark.parametrize(
    "body", ['{"allow":true,"allow":false}', '{"allow":false,"ALLOW":true}', '{"allow":true,"Allow":null}']
)
def test_two_different_values_of_allow_are_refused(body: str) -> None:
    assert "more than once" in why_not(body)


def test_the_same_value_twice_is_one_answer() -> None:
    assert read_answer(b'{"allow":true,"Allow":true}').allow


def test_two_different_errors_are_refused() -> None:
    assert "error is there more than once" in why_not('{"allow":true,"error":"","error":"db away"}')


@pytest.mark.parametrize("name", ["reason", "error"])
@pytest.mark.parametrize("value", ["5", "true", "[]", "{}"])
def test_reason_and_error_must_be_text(name: str, value: str) -> None:
    assert f"{name} must be text" in why_not(f'{{"allow":true,"{name}":{value}}}')


def test_an_error_without_allow_is_kept_for_the_reader() -> None:
    assert why_not('{"error":"db away"}').endswith("the extender's error: db away")


@pytest.mark.parametrize(
    "body", ["[" * 100_000, '{"allow":true,"x":' + "[" * 100_000 + "]" * 100_000 + "}", '{"a":' * 50_000]
)
def test_deep_nesting_is_refused(body: str) -> None:
    assert why_not(body) == "the body is nested too deeply"


def test_a_body_of_exactly_one_mebibyte_is_read() -> None:
    body = b'{"allow":true,"reason":"' + b"x" * (ANSWER_LIMIT - 26) + b'"}'
    assert read_answer(body).allow
    assert "larger than 1 MiB" in why_not(body + b" ")


@given(st.binary(max_size=200) | st.text(max_size=100).map(str.encode))
def test_whatever_comes_is_read_or_refused(body: bytes) -> None:
    try:
        answer = read_answer(body)
    except InvalidAnswer:
        return
    assert b'"' in body
    assert isinstance(answer.allow, bool)
