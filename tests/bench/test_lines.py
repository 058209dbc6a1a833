"""The line that a benchmark prints."""

import pytest

from tests.bench.lines import BenchLine, wanted


def test_a_line_names_both_figures_their_ratio_and_whether_the_bound_is_met() -> None:
    assert str(BenchLine("ask", 2.0, 50.0, 0.05)) == "ask, 2 s, 50 s, 0.0400, 0.05, met"
    assert str(BenchLine("ask", 5.0, 50.0, 0.05)) == "ask, 5 s, 50 s, 0.1000, 0.05, not met"


def test_a_rate_is_bounded_from_below() -> None:
    assert BenchLine("door", 900, 1000, 0.5, unit="1/s", at_least=True).met
    assert not BenchLine("door", 400, 1000, 0.5, unit="1/s", at_least=True).met


@pytest.mark.parametrize(("only", "chosen"), [("", True), ("extender", True), ("ASK", True), ("kube", False)])
def test_only_chooses_by_module_or_by_a_part_of_the_name(
    monkeypatch: pytest.MonkeyPatch, only: str, chosen: bool
) -> None:
    monkeypatch.setenv("ONLY", only)
    assert wanted("ask: 10000 pods", "tests.bench.bench_extender") is chosen
