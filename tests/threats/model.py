"""Reads ``docs/threat-model.md``: which threats there are, and which test proves the answer to each."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
THREAT_MODEL = ROOT / "docs" / "threat-model.md"
_ROW = re.compile(r"^\|\s*(?P<id>[A-Z]\d+)\s*\|(?P<cells>.*)\|\s*$")
_TEST = re.compile(r"`(tests/[\w/]+\.py::[\w:]+)`")


@dataclass(frozen=True)
class Threat:
    """A row of the threat model.

    ``tests`` are pytest's names, ``file::function``, without parameters.
    """

    id: str
    text: str
    tests: tuple[str, ...]


def threats(document: str) -> Iterator[Threat]:
    """The rows of all its tables, in their order."""
    for line in document.splitlines():
        if row := _ROW.match(line):
            yield Threat(row["id"], row["cells"], tuple(_TEST.findall(row["cells"])))


def exists(test: str, root: Path = ROOT) -> bool:
    """Is there such a function (in such a class) in such a file?"""
    path, *names = test.split("::")
    file = root / path
    text = file.read_text() if file.is_file() else ""
    return bool(names) and all(
        re.search(rf"^\s*(?:def|async def|class) {name}\b", text, re.MULTILINE) for name in names
    )
