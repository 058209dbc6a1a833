"""What may import what: the pure parts stay pure, the HTTP library stays behind one module."""

import dis
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

import pytest

import deschedui.extender

PACKAGE = Path(deschedui.extender.__file__).parent
PURE = ["addresses", "answers", "bodies", "breaker", "config", "durations", "errors", "outcomes", "texts"]
OUTSIDE = {"asyncio", "os", "select", "socket", "ssl", "threading", "time", "pathlib", "httpx", "h11"}


def imported(path: Path) -> set[str]:
    """Top-level names of what a module imports, wherever in it.

    From its code, not its syntax tree: Python 3.11 makes no trees reliably while garbage is collected.
    """
    return set(_imports(compile(path.read_text(), str(path), "exec")))


def _imports(code: CodeType) -> Iterator[str]:
    for instruction in dis.get_instructions(code):
        if instruction.opname == "IMPORT_NAME":
            yield str(instruction.argval).split(".")[0]
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _imports(constant)


def test_httpx_stays_behind_the_client() -> None:
    assert [path.stem for path in PACKAGE.glob("*.py") if "httpx" in imported(path)] == ["client"]


@pytest.mark.parametrize("name", PURE)
def test_the_pure_parts_reach_nothing_outside(name: str) -> None:
    assert imported(PACKAGE / f"{name}.py") & OUTSIDE == set()
