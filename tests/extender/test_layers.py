"""What may import what: the pure parts stay pure, the HTTP library stays behind one module."""

import ast
from pathlib import Path

import pytest

import deschedui.extender

PACKAGE = Path(deschedui.extender.__file__).parent
PURE = ["addresses", "answers", "bodies", "breaker", "config", "durations", "errors", "outcomes", "texts"]
OUTSIDE = {"asyncio", "os", "select", "socket", "ssl", "threading", "time", "pathlib", "httpx", "h11"}


def imported(path: Path) -> set[str]:
    """Top-level names of what a module imports."""
    names: set[str] = set()
    for found in ast.walk(ast.parse(path.read_text())):
        if isinstance(found, ast.Import):
            names |= {alias.name.split(".")[0] for alias in found.names}
        elif isinstance(found, ast.ImportFrom) and found.module:
            names.add(found.module.split(".")[0])
    return names


def test_httpx_stays_behind_the_client() -> None:
    assert [path.stem for path in PACKAGE.glob("*.py") if "httpx" in imported(path)] == ["client"]


@pytest.mark.parametrize("name", PURE)
def test_the_pure_parts_reach_nothing_outside(name: str) -> None:
    assert imported(PACKAGE / f"{name}.py") & OUTSIDE == set()
