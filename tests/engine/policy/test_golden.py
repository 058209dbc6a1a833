"""Our loader against what the real program said about each recorded policy."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from deschedui.descheduler.plugins import PLUGINS
from deschedui.descheduler.policy import load

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = Path(os.environ.get("DESCHEDUI_GOLDEN") or ROOT.parent / "shared" / "golden") / "cases"


def cases() -> list[Any]:
    """One parameter a recorded case; one that is skipped where there are none."""
    found = sorted(GOLDEN.glob("*/policy.yaml")) if GOLDEN.is_dir() else []
    if not found:
        reason = f"no golden cases in {GOLDEN}: set DESCHEDUI_GOLDEN to their folder"
        return [pytest.param(GOLDEN, marks=pytest.mark.skip(reason=reason))]
    return [pytest.param(path.parent, id=path.parent.name) for path in found]


def priority_classes(case: Path) -> dict[str, int]:
    """The PriorityClasses of a case's cluster."""
    text = (case / "cluster.yaml").read_text(encoding="utf-8")
    if "PriorityClass" not in text:
        return {}
    objects = [found for found in yaml.safe_load_all(text) if found]
    return {
        found["metadata"]["name"]: found["value"] for found in objects if found["kind"] == "PriorityClass"
    }


@pytest.mark.parametrize("case", cases())
def test_upstream_text_is_the_recorded_one(case: Path) -> None:
    golden = json.loads((case / "golden.json").read_text(encoding="utf-8"))
    text = (case / "policy.yaml").read_text(encoding="utf-8")
    result = load(text, priority_classes=priority_classes(case))
    assert result.upstream_error == golden["policyError"]
    assert result.upstream_stage == golden.get("errorStage", "")


@pytest.mark.parametrize("case", cases())
def test_we_refuse_what_upstream_refuses_and_nothing_else(case: Path) -> None:
    golden = json.loads((case / "golden.json").read_text(encoding="utf-8"))
    text = (case / "policy.yaml").read_text(encoding="utf-8")
    result = load(text, priority_classes=priority_classes(case), supported=PLUGINS.keys())
    assert bool(result.errors) == bool(golden["policyError"])
