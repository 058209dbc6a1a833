"""A policy text is stored and shown without its secrets, and every line keeps its number."""

import pytest

from deschedui.descheduler.policy import load, masked_text
from tests.engine.policy.builders import HEAD

SECRET = "hunter2"
EXTENDER = f"""{HEAD}profiles:
- name: "😀"
  pluginConfig:
  - name: ExternalDecision
    args:
      extender:
        urlPrefix: https://ext.example
        ignorable: false
        httpTimeout: 5s
        httpHeaders:
          Authorization: Bearer {SECRET}   # kept
          X-Token: "${{env:TOKEN}}"
  plugins: {{preevictionfilter: {{enabled: [ExternalDecision]}}}}
"""


@pytest.mark.parametrize(
    "text",
    [
        EXTENDER,
        EXTENDER.replace("\n", "\r\n"),
        "\ufeff" + EXTENDER,
        EXTENDER.replace("httpHeaders", "HttpHeaders"),
        EXTENDER.replace(f"Bearer {SECRET}", f"|\n            x\n            {SECRET}"),
        EXTENDER + f"---\nhttpHeaders: {{a: {SECRET}}}\n",
        f"x: &x {{a: {SECRET}}}\nhttpHeaders: *x\n",
        f"a: 1 # token: {SECRET}\n#   Authorization: Basic {SECRET}\n",
        f"urlPrefix: https://me:{SECRET}@ext.example/\n",
        f'{{"httpHeaders": {{"a": "{SECRET}"}}}}',
    ],
    ids=["plain", "crlf", "bom", "case", "block", "second", "anchor", "comments", "url", "json"],
)
def test_secrets_are_masked_and_lines_stay(text: str) -> None:
    masked = masked_text(text)
    assert SECRET not in masked
    assert masked.count("\n") == text.count("\n")


def test_references_names_and_everything_else_stay() -> None:
    masked = masked_text(EXTENDER)
    assert masked == EXTENDER.replace(f"Bearer {SECRET}", '"***"')
    assert load(masked).policy is not None


@pytest.mark.parametrize(
    "text",
    [
        EXTENDER + "[[[\n",
        f"httpHeaders: {{Authorization: {SECRET}\n",
        f"- httpHeaders:\n    Authorization:\n      {SECRET}\n  b: [\n",
        f'{{"httpHeaders": {{\n"a": "{SECRET}"\n',
        f"a: [\nAuthorization: {SECRET}\n",
    ],
)
def test_a_text_that_cannot_be_read_is_masked_line_by_line(text: str) -> None:
    masked = masked_text(text)
    assert SECRET not in masked
    assert masked.count("\n") == text.count("\n")


def test_a_number_sign_inside_a_text_is_no_comment() -> None:
    text = 'a: "see # token: x"\nb: 1\n'
    assert masked_text(text) == text


def test_a_password_in_an_url_is_not_repeated_in_an_error() -> None:
    url = f"http://me:{SECRET}@a:b c"
    top = f"metricsProviders: [{{source: Prometheus, prometheus: {{url: '{url}'}}}}]\n"
    result = load(HEAD + top)
    assert SECRET not in f"{result.errors}{result.upstream_error}"
