"""Any text as a policy: it is judged, in bounded time, and nothing else happens."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decisions.models import Cluster
from decisions.services import policies
from deschedui.descheduler.policy import load, masked_text, policy_lines
from tests.fuzz import EXAMPLES, examples
from tests.fuzz.policy_texts import FULL, HURTFUL, texts

# A text of 1 MiB that is meant to hurt, on a machine that does other things as well; real ones take milliseconds.
SECONDS = 10.0


def judge(text: str) -> policies.Checked:
    """Judge a text as the policy page does, hold what is promised, and show it."""
    checked = policies.validate(text)
    assert (checked.policy is None) == bool(checked.errors)
    assert all(
        problem["message"] and problem["line"] >= 1 and problem["column"] >= 1 for problem in checked.errors
    )
    assert len(checked.errors) <= 201
    json.dumps([checked.errors, checked.warnings, checked.upstream_error])
    return checked


def test_the_fullest_seed_is_a_policy() -> None:
    assert load(FULL).policy is not None, load(FULL).errors


@examples(250)
@given(text=texts)
def test_every_text_is_judged(text: str) -> None:
    judge(text)
    masked_text(text)
    policy_lines(text, 0, "PodLifeTime")


@examples(60)
@given(data=st.binary(max_size=300) | texts.map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_every_file_is_read_or_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "policy.yaml"
    path.write_bytes(data)
    try:
        source = policies.read_source(Cluster(policy_file=str(path)), None)
    except policies.SourceProblem:
        return
    assert source is not None
    judge(source.text)


@pytest.mark.parametrize("name", HURTFUL)
def test_a_text_that_is_meant_to_hurt_is_judged_in_time(name: str) -> None:
    begun = time.process_time()
    judge(HURTFUL[name])
    assert time.process_time() - begun < SECONDS


@pytest.mark.parametrize(
    "name", HURTFUL if EXAMPLES else ["a billion laughs", "merges of merges", "many directives"]
)
def test_showing_it_takes_no_longer(name: str) -> None:
    begun = time.process_time()
    masked_text(HURTFUL[name])
    policy_lines(HURTFUL[name], 0, "PodLifeTime")
    assert time.process_time() - begun < SECONDS
