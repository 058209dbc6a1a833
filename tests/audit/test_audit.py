"""``make audit`` without a network: a made-up advisory is found where it is about what is pinned, and only there."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from deschedui.config import ROOT
from tests.audit.__main__ import main
from tests.audit.advisories import affects

LOCK = (
    "sqlparse==0.6.1 \\\n    --hash=sha256:3be5a72d04c873d690d7c6dedd33d6fae2ef82759881ceec02fc2efd0cba564f\n"
)


def advisory(name: str = "sqlparse", fixed: str = "0.6.2", **fields: Any) -> dict[str, Any]:
    """A weakness of everything before a version."""
    events = [{"introduced": "0"}, {"fixed": fixed}]
    package = {"ecosystem": "PyPI", "name": name}
    return {
        "id": "MADE-UP-1",
        "modified": "2026-11-29T00:00:00Z",
        "summary": "made up",
        "affected": [{"package": package, "ranges": [{"type": "ECOSYSTEM", "events": events}]}],
        **fields,
    }


def audit(folder: Path, *advisories: dict[str, Any], lock: str = LOCK) -> int:
    """The exit code of ``make audit OSV=<folder>`` for a lock file."""
    (folder / "lock.txt").write_text(lock)
    (folder / "osv").mkdir()
    for number, each in enumerate(advisories):
        (folder / "osv" / f"{number}.json").write_text(json.dumps(each))
    return main(["--lock", str(folder / "lock.txt"), "--osv", str(folder / "osv")])


def test_a_weakness_of_what_is_pinned_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert audit(tmp_path, advisory()) == 1
    said = capsys.readouterr().out
    assert "MADE-UP-1" in said
    assert "0.6.2" in said
    assert "1 advisories" in said


def test_one_that_is_mended_there_is_not(tmp_path: Path) -> None:
    assert audit(tmp_path, advisory(fixed="0.6.1")) == 0


def test_nor_one_that_was_withdrawn(tmp_path: Path) -> None:
    assert audit(tmp_path, advisory(withdrawn="2026-01-01T00:00:00Z")) == 0


def test_names_are_compared_as_an_index_does(tmp_path: Path) -> None:
    assert audit(tmp_path, advisory(name="SQLParse")) == 1


def test_without_advisories_there_is_no_all_clear(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert audit(tmp_path) == 2
    assert "holds no advisory" in capsys.readouterr().out


def test_old_advisories_are_called_old(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    audit(tmp_path, advisory(fixed="0.1", modified="2020-01-01T00:00:00Z"))
    assert "days old, so newer weaknesses are not in it" in capsys.readouterr().out


def test_the_whole_lock_file_can_be_audited_from_a_zip(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("MADE-UP-1.json", json.dumps(advisory("django", fixed="99")))
    assert main(["--lock", str(ROOT / "requirements.lock"), "--osv", str(tmp_path / "all.zip")]) == 1


@pytest.mark.parametrize(
    ("events", "version", "inside"),
    [
        ([{"introduced": "0"}], "1", True),
        ([{"introduced": "1.2"}], "1.1", False),
        ([{"introduced": "0"}, {"fixed": "1"}], "1", False),
        ([{"introduced": "0"}, {"fixed": "1"}], "1rc1", True),
        ([{"introduced": "0"}, {"last_affected": "1"}], "1", True),
        ([{"introduced": "0"}, {"last_affected": "1"}], "1.0.1", False),
        ([{"introduced": "0"}, {"fixed": "1"}, {"introduced": "2"}, {"fixed": "2.3"}], "2.1", True),
        ([{"introduced": "2"}, {"fixed": "2.3"}, {"introduced": "0"}, {"fixed": "1"}], "1.5", False),
    ],
)
def test_ranges_are_read_as_osv_reads_them(
    events: list[dict[str, str]], version: str, *, inside: bool
) -> None:
    assert affects({"ranges": [{"type": "ECOSYSTEM", "events": events}]}, Version(version)) is inside
