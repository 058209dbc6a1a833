"""YAML and JSON as upstream's libraries read them, and the bombs that are not unfolded."""

import pytest

from deschedui.descheduler.policy.nodes import Kind, Node, UnreadableError, locate
from deschedui.descheduler.policy.text import parse_text


def value(text: str) -> tuple[Kind, str]:
    """The kind and JSON text of one plain YAML scalar."""
    node = parse_text(f"k: {text}").root.get("k")
    assert node is not None
    return node.kind, node.text


def keys(node: Node) -> dict[str, str]:
    """The members of an object that are scalars."""
    return {pair.key: pair.value.text for pair in node.members}


@pytest.mark.parametrize("word", ["yes", "no", "on", "off", "y", "n", "Y", "N", "True", "TRUE", "Off"])
def test_many_words_are_booleans(word: str) -> None:
    assert value(word)[0] is Kind.BOOL


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("010", "8"),
        ("0x10", "16"),
        ("0o17", "15"),
        ("0b11", "3"),
        ("1_000", "1000"),
        ("+5", "5"),
        ("1e2", "100"),
        ("5.0", "5"),
        ("08", "8"),
        (".5", "0.5"),
        ("-1", "-1"),
        ("1e21", "1e+21"),
        ("18446744073709551615", "18446744073709551615"),
    ],
)
def test_numbers_are_read_as_go_reads_them(text: str, number: str) -> None:
    assert value(text) == (Kind.NUMBER, number)


@pytest.mark.parametrize(
    "text", ["1:30", "2001-01-01", '"5"', "'yes'", "!!str 5", "1.2.3", "0x", ".", "tRue", "+"]
)
def test_other_scalars_are_text(text: str) -> None:
    assert value(text)[0] is Kind.STRING


@pytest.mark.parametrize("text", ["~", "null", "Null", "NULL", ""])
def test_null_has_several_spellings(text: str) -> None:
    assert value(text)[0] is Kind.NULL


def test_of_repeated_keys_the_last_counts_in_both_formats() -> None:
    assert keys(parse_text("a: 1\na: 2").root) == {"a": "2"}
    assert keys(parse_text('{"a": 1, "a": 2}').root) == {"a": "2"}


def test_anchors_and_merges_are_followed() -> None:
    merged = parse_text("x: &x {a: 1, b: 2}\nz: {<<: *x, b: 3}").root.get("z")
    assert merged is not None
    assert keys(merged) == {"a": "1", "b": "3"}


def test_only_the_first_document_is_read_even_if_the_second_is_broken() -> None:
    document = parse_text("a: 1\n---\n[")
    assert document.more
    assert keys(document.root) == {"a": "1"}


def test_every_value_knows_its_place() -> None:
    root = parse_text("a:\n- b: 1\n  c: 2\n").root
    assert (locate(root, ("a", 0, "c")).line, locate(root, ("a", 0, "c")).column) == (3, 3)
    assert locate(root, ("a", 7)).line == 1


def test_json_keeps_a_fraction_as_it_is_written() -> None:
    node = parse_text('{"a": 5.0}').root.get("a")
    assert node is not None
    assert node.text == "5.0"


@pytest.mark.parametrize(
    ("text", "upstream"),
    [
        ("a: [b\n", "yaml: line 1: did not find expected ',' or ']'"),
        ("x: 1\na: b: c", "yaml: line 2: mapping values are not allowed in this context"),
        ("a: *b", "yaml: unknown anchor 'b' referenced"),
        ("a: &a [*a]", "yaml: anchor 'a' value contains itself"),
        ("a: \x01", "yaml: control characters are not allowed"),
        ("a: {<<: 5}", "yaml: map merge requires map or sequence of maps as the value"),
        ("a: .inf", "json: unsupported value: +Inf"),
    ],
)
def test_broken_yaml_is_refused_in_the_words_of_gos_library(text: str, upstream: str) -> None:
    with pytest.raises(UnreadableError) as refused:
        parse_text(text)
    assert refused.value.upstream == upstream


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1,}', "invalid character '}' looking for beginning of object key string"),
        ("{a: 1}", "invalid character 'a' looking for beginning of object key string"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a": [1 2]}', "invalid character '2' after array element"),
        ('{"a": 1} x', "invalid character 'x' after top-level value"),
        ('{"a": 01}', "invalid character '1' after object key:value pair"),
        ('{"a": ?}', "invalid character '?' looking for beginning of value"),
        ('{"a": "\n"}', r"invalid character '\n' in string literal"),
        (r'{"a": "\x"}', "invalid character 'x' in string escape code"),
        ('{"a": "b', "unexpected end of JSON input"),
        ("{", "unexpected end of JSON input"),
    ],
)
def test_a_text_that_starts_like_json_is_not_tried_as_yaml(text: str, said: str) -> None:
    with pytest.raises(UnreadableError) as refused:
        parse_text(text)
    assert refused.value.upstream == f"couldn't get version/kind; json parse error: {said}"


def bomb() -> str:
    """Nine levels of ten aliases each: a billion values."""
    levels = [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    return "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "\n".join(levels)


@pytest.mark.parametrize(
    "text",
    [
        bomb(),
        "a: " + "[" * 500 + "]" * 500,
        '{"a": ' + "[" * 500 + "]" * 500 + "}",
        "a: [" + "x," * 120_000 + "]",
        "a: &a {" + ",".join(f"k{i}: 1" for i in range(9_000)) + "}\nb:\n" + "- <<: *a\n" * 9_000,
    ],
    ids=["aliases", "deep", "deep json", "wide", "merges"],
)
def test_a_bomb_is_refused_and_not_unfolded(text: str) -> None:
    with pytest.raises(UnreadableError, match="more than"):
        parse_text(text)


def test_a_lone_surrogate_is_refused_or_replaced() -> None:
    with pytest.raises(UnreadableError, match="character"):
        parse_text("a: \ud800")
    assert keys(parse_text('{"a": "\\ud800"}').root) == {"a": "\ufffd"}
