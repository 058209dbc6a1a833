"""Every recorded input whose policy names only plugins that run here gives what the real descheduler gave."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.golden.compare import compare, differences, main, table
from tests.golden.inputs import Case, fill, read_folder

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
DEFAULT = Path(__file__).resolve().parents[2].parent / "shared" / "golden"
FOLDER = Path(os.environ.get("DESCHEDUI_GOLDEN") or DEFAULT)


def cases() -> list[Case]:
    if not (FOLDER / "cases").is_dir():
        return []
    return [case for case in read_folder(FOLDER, NOW) if not case.later]


CASES = cases()
needs_data = pytest.mark.skipif(
    not CASES, reason=f"no recorded inputs at {FOLDER.name}/: set DESCHEDUI_GOLDEN to their folder"
)


@needs_data
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_we_do_what_the_real_descheduler_did(case: Case) -> None:
    assert differences(case, NOW) == []


def empty_case(**changes: object) -> Case:
    golden: dict[str, object] = {"policyError": None, "evictions": [], "stable": True}
    made = {"name": "x", "objects": (), "policy": "{}", "options": {}, "golden": golden}
    return Case(**{**made, **changes})  # type: ignore[arg-type]


def test_times_are_filled_in() -> None:
    assert fill('"${NOW-90s}" "${NOW+2h}" "${NOW}"', NOW) == (
        '"2026-11-30T11:58:30Z" "2026-11-30T14:00:00Z" "2026-11-30T12:00:00Z"'
    )


def test_a_policy_with_a_plugin_to_come_counts_as_failed() -> None:
    case = empty_case(policy='{"profiles": [{"pluginConfig": [{"name": "RemoveDuplicates"}]}]}')
    found, by_plugin = compare([case], NOW)
    assert found == {"x": ["not supported yet: RemoveDuplicates"]}
    assert by_plugin == {"RemoveDuplicates": (0, 1)}


def test_an_eviction_that_only_they_did_is_named() -> None:
    theirs = {"uid": "u", "namespace": "shop", "name": "web-1", "plugin": "PodLifeTime"}
    case = empty_case(golden={"policyError": None, "stable": True, "evictions": [theirs]})
    assert differences(case, NOW)[0] == "evicted by them only: shop/web-1 (PodLifeTime)"


def test_the_table_counts_by_plugin() -> None:
    assert table({"PodLifeTime": (2, 1)}).splitlines()[1].split() == ["PodLifeTime", "2", "1"]


def test_a_folder_that_is_not_there_is_a_usage_error() -> None:
    assert main(["no-such-folder"]) == 2
