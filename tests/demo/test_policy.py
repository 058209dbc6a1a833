"""The demo's policy is one that we accept, and it shows what it says."""

from pathlib import Path

import pytest

from deschedui import demo
from deschedui.descheduler.policy import LoadResult, load


@pytest.fixture(scope="module")
def loaded() -> LoadResult:
    text = Path(demo.__path__[0], "policy.yaml").read_text(encoding="utf-8")
    return load(text.replace("${DEMO_EXTENDER}", "127.0.0.1:8081"))


def test_it_has_no_errors(loaded: LoadResult) -> None:
    assert loaded.errors == ()
    assert loaded.policy is not None


def test_its_profiles_fail_in_different_ways(loaded: LoadResult) -> None:
    assert loaded.policy is not None
    asked = [e for p in loaded.policy.profiles if p.external_decision for e in p.external_decision.asked]
    assert {str(e.fail_policy) for e in asked if not e.ignorable} == {"Deny", "Ignore", "Allow"}
    assert sum(e.ignorable for e in asked) == 1


def test_one_profile_asks_only_humans(loaded: LoadResult) -> None:
    assert loaded.policy is not None
    assert [p.name for p in loaded.policy.profiles if p.external_decision is None] == ["maintenance"]
