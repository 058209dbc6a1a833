"""The threat model names real tests, and every one of its rows has a defence that can be taken out."""

from pathlib import Path

import pytest

from tests.threats.__main__ import put_back, take_out
from tests.threats.defences import DEFENCES, Defence, Edit
from tests.threats.model import ROOT, THREAT_MODEL, Threat, exists, threats

ROWS = tuple(threats(THREAT_MODEL.read_text()))


def test_no_row_has_the_id_of_another() -> None:
    assert len({row.id for row in ROWS}) == len(ROWS) > 0


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_threat_names_tests_that_exist(row: Threat) -> None:
    assert row.tests
    assert [test for test in row.tests if not exists(test)] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_threat_has_a_defence_that_can_be_taken_out(row: Threat) -> None:
    shown = {defence.test.partition("[")[0] for defence in DEFENCES if defence.threat == row.id}
    assert shown
    assert shown <= set(row.tests)


def test_no_defence_answers_a_threat_that_nobody_wrote_down() -> None:
    assert {defence.threat for defence in DEFENCES} == {row.id for row in ROWS}


@pytest.mark.parametrize("defence", DEFENCES, ids=lambda defence: f"{defence.threat} {defence.what}")
def test_a_defence_is_where_the_list_says(defence: Defence) -> None:
    for edit in defence.edits:
        assert (ROOT / edit.path).read_text().count(edit.old) == 1, edit
        assert edit.old != edit.new


def test_taking_out_and_putting_back_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "gate.py").write_text("if not allowed:\n    raise\n")
    texts = take_out([Edit("gate.py", "not allowed", "False")], tmp_path)
    assert (tmp_path / "gate.py").read_text() == "if False:\n    raise\n"
    put_back(texts)
    assert (tmp_path / "gate.py").read_text() == "if not allowed:\n    raise\n"


def test_an_edit_that_fits_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "gate.py").write_text("deny\ndeny\n")
    with pytest.raises(ValueError, match="2 times"):
        take_out([Edit("gate.py", "deny", "allow")], tmp_path)
    assert (tmp_path / "gate.py").read_text() == "deny\ndeny\n"
