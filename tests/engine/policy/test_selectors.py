"""Label selectors: what they match and the words in which a bad one is refused."""

import msgspec
import pytest

from deschedui.descheduler.selectors import LabelSelector, Requirement, SelectorError, parse_string_selector

WEB = {"app": "web", "tier": "front", "size": "10"}
LONG = "a" * 64
NO_VALUES = "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"
NO_INTEGER = "values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must be an integer"
BAD_NAME = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', "
    "regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
BAD_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', "
    "regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "app=web",
        "app==web",
        "app!=db",
        "missing!=x",
        "app in (web, db)",
        "app notin (db)",
        "missing notin (a)",
        "app",
        "!missing",
        "size>5",
        "size<11",
        " app = web , tier in (front) ",
        "size>9,size<11,!gone",
    ],
)
def test_a_selector_text_matches(text: str) -> None:
    assert parse_string_selector(text).matches(WEB)


@pytest.mark.parametrize(
    "text",
    [
        "app=db",
        "app!=web",
        "missing=x",
        "app in (db)",
        "app notin (web)",
        "gone",
        "!app",
        "size>10",
        "app>5",
        "gone<9",
        "app=",
    ],
)
def test_a_selector_text_does_not_match(text: str) -> None:
    assert not parse_string_selector(text).matches(WEB)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("pool in a", "unable to parse requirement: found 'a' expected: '('"),
        ("a,", "found '', expected: identifier after ','"),
        ("=a", "found '=', expected: !, identifier, or 'end of string'"),
        ("!=a", "found '!=', expected: !, identifier, or 'end of string'"),
        ("a=(", "unable to parse requirement: found '(', expected: identifier"),
        ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"),
        ("a in (!", "unable to parse requirement: found '!', expected: ',', ')' or identifier"),
        (
            "a in ()",
            f"unable to parse requirement: {NO_VALUES}",
        ),
        (
            "a>b",
            f"unable to parse requirement: {NO_INTEGER}",
        ),
    ],
)
def test_a_bad_selector_text_is_refused_in_kubernetes_words(text: str, message: str) -> None:
    with pytest.raises(SelectorError) as refused:
        parse_string_selector(text)
    assert str(refused.value) == message


def test_a_value_left_out_of_a_list_is_the_empty_value() -> None:
    assert parse_string_selector("a in (x,,y)").requirements[0].values == ("", "x", "y")
    assert parse_string_selector("a in (,)").requirements[0].values == ("",)


def test_an_enormous_selector_text_is_refused_unread() -> None:
    with pytest.raises(SelectorError, match="longer than"):
        parse_string_selector("a" * 100_000)


def test_an_empty_selector_object_matches_everything() -> None:
    assert LabelSelector().matches({})


def test_all_conditions_of_an_object_must_hold() -> None:
    expressions = b'[{"key":"tier","operator":"NotIn","values":["back"]}]'
    text = b'{"matchLabels":{"app":"web"},"matchExpressions":%s}' % expressions
    selector = msgspec.json.decode(text, type=LabelSelector)
    assert selector.matches(WEB)
    assert not selector.matches({**WEB, "tier": "back"})


@pytest.mark.parametrize(
    ("requirement", "message"),
    [
        (Requirement("a", "Foo"), '"Foo" is not a valid label selector operator'),
        (
            Requirement("a", "In", ()),
            NO_VALUES,
        ),
        (
            Requirement("a", "Exists", ("x",)),
            'values: Invalid value: ["x"]: values set must be empty for exists and does not exist',
        ),
        (
            Requirement("a b", "Exists"),
            f'key: Invalid value: "a b": name part {BAD_NAME}',
        ),
        (
            Requirement("a", "In", ("b c",)),
            f'values[0][a]: Invalid value: "b c": {BAD_VALUE}',
        ),
        (Requirement("/x", "Exists"), 'key: Invalid value: "/x": prefix part must be non-empty'),
        (
            Requirement(LONG, "Exists"),
            f'key: Invalid value: "{LONG}": name part must be no more than 63 characters',
        ),
    ],
)
def test_an_invalid_condition_is_named_in_kubernetes_words(requirement: Requirement, message: str) -> None:
    selector = LabelSelector(match_expressions=(requirement,))
    assert selector.problem() == message


def test_labels_are_judged_before_expressions() -> None:
    selector = LabelSelector(match_labels={"a": "b c"}, match_expressions=(Requirement("a", "Foo"),))
    assert (selector.problem() or "").startswith('values[0][a]: Invalid value: "b c"')


def test_a_valid_selector_has_no_problem() -> None:
    assert LabelSelector(match_labels={"example.com/a": ""}).problem() is None
