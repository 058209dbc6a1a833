"""What loading a policy found: our sentences with their places, and upstream's texts by its stages."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final

from deschedui.descheduler.policy.nodes import Node, Path, locate, path_text

MAX_PROBLEMS: Final = 200
"""Most errors, and most warnings, that are listed."""
MAX_UPSTREAM: Final = 100_000
"""Longest text of upstream that is kept, in characters."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to say about a policy. Line and column count from 1.

    ``upstream`` is what the descheduler itself prints if this is all that is wrong, '' if it says nothing.
    """

    message: str
    path: str = ""
    line: int = 1
    column: int = 1
    hint: str = ""
    upstream: str = ""

    def __str__(self) -> str:
        where = f"line {self.line}, {self.path}" if self.path else f"line {self.line}"
        return f"{where}: {self.message}" + (f" ({self.hint})" if self.hint else "")


def aggregate(texts: Iterable[str]) -> str:
    """Several error texts as upstream prints them: distinct ones, in brackets where more than one is left."""
    distinct = list(dict.fromkeys(texts))
    return f"[{', '.join(distinct)}]" if len(distinct) > 1 else "".join(distinct)


@dataclass(slots=True)
class Report:
    """Collects everything; nothing that is wrong hides something else that is wrong."""

    root: Node
    filename: str
    errors: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    decoding: list[str] = field(default_factory=list)
    validation: list[str] = field(default_factory=list)
    defaulting: list[str] = field(default_factory=list)
    building: list[str] = field(default_factory=list)

    def error(self, path: Path, message: str, *, hint: str = "", upstream: str = "") -> None:
        """Something for which the policy cannot be used."""
        self.errors.append(self._problem(path, message, hint, upstream))

    def warn(self, path: Path, message: str, *, hint: str = "", upstream: str = "") -> None:
        """Something that is legal and probably not meant."""
        self.warnings.append(self._problem(path, message, hint, upstream))

    def fails_decoding(self, detail: str) -> str:
        """Note a refusal of upstream's decoder and return it as it is printed."""
        text = decoding_text(self.filename, detail)
        self.decoding.append(text)
        return text

    def fails_building(self, detail: str) -> str:
        """Note a refusal of upstream when it sets up the profiles and return it as it is printed."""
        text = f"failed to create new descheduler: {detail}"
        self.building.append(text)
        return text

    def upstream(self) -> tuple[str | None, str]:
        """What upstream ends with, and at which stage: the first that fails hides the later ones."""
        text, stage = self._first_stage()
        return text and text[:MAX_UPSTREAM], stage

    def _first_stage(self) -> tuple[str | None, str]:
        if self.decoding:
            return self.decoding[0], "load"
        if self.validation:
            return aggregate(self.validation), "load"
        if self.defaulting:
            return self.defaulting[0], "load"
        return (self.building[0], "build") if self.building else (None, "")

    def _problem(self, path: Path, message: str, hint: str, upstream: str) -> Problem:
        span = locate(self.root, path)
        return Problem(message, path_text(path), span.line, span.column, hint, upstream)


def decoding_text(filename: str, detail: str) -> str:
    """A refusal of upstream's decoder as it is printed."""
    return f'failed decoding descheduler\'s policy config "{filename}": {detail}'


def in_order(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    """Each once, in the order of the text, at most MAX_PROBLEMS; the last then says how many are left out."""
    found = sorted(dict.fromkeys(problems), key=attrgetter("line", "column"))
    left = len(found) - MAX_PROBLEMS
    if left <= 0:
        return tuple(found)
    return (*found[:MAX_PROBLEMS], Problem(f"and {left} more of the kind", line=found[MAX_PROBLEMS].line))
