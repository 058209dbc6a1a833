"""What can be wrong with an extender before it is asked.

    ExtenderError
    └── ConfigErrors        everything that is wrong with a configuration, together (mode `config_error`)

A failed *call* is not an exception: it is an `ExtenderOutcome` with a failure mode.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    """One objection: where (`("extenders", 0, "tlsConfig", "caCertFile")`), what, and what to do."""

    path: tuple[str | int, ...]
    message: str

    @property
    def field(self) -> str:
        """The path as a person writes it: `extenders[0].tlsConfig.caCertFile`."""
        text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.path)
        return text.removeprefix(".")

    def below(self, *parents: str | int) -> Self:
        """The same objection seen from further up."""
        return type(self)((*parents, *self.path), self.message)

    def __str__(self) -> str:
        named = self.path and self.message.startswith(str(self.path[-1]))
        where = type(self)(self.path[:-1], "").field if named else self.field
        return f"{where}: {self.message}" if where else self.message


class ExtenderError(Exception):
    """Base of what this package raises."""


class ConfigErrors(ExtenderError, ValueError):  # noqa: N818 - it holds several
    """An extender cannot be built. `problems` holds every objection; none of them contains a secret."""

    def __init__(self, problems: Iterable[ConfigProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(str(problem) for problem in self.problems))
