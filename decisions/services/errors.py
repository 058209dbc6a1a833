"""Why a change was refused. Each carries the decision as it is now, so that the reader sees the fresh state."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from decisions.models import Decision


class Refused(Exception):  # noqa: N818 - a refusal is an answer, not a fault
    """A change that was not made; ``str()`` is the sentence for the person who asked for it."""

    code = "refused"


@dataclass
class Conflict(Refused):
    """Somebody or something else was first. HTTP 409."""

    decision: "Decision"
    sentence: str
    code: str = "conflict"

    def __str__(self) -> str:
        return self.sentence


@dataclass
class Changed(Refused):
    """What the reviewer was shown is no longer so. HTTP 409; ``changes`` says field by field what is new."""

    decision: "Decision"
    changes: dict[str, tuple[str, str]] = field(default_factory=dict)
    code: str = "changed"

    def __str__(self) -> str:
        parts = [
            f"{name} was {before or 'none'}, is now {after or 'none'}"
            for name, (before, after) in self.changes.items()
        ]
        return "This changed since it was shown: " + ("; ".join(parts) or "look again") + "."


@dataclass
class NotAllowed(Refused):
    """This person may not do this to this decision (self-review). HTTP 403."""

    decision: "Decision"
    sentence: str
    code: str = "not_allowed"

    def __str__(self) -> str:
        return self.sentence


@dataclass
class Invalid(Refused):
    """The request itself is wrong: a reason is missing, a number out of range. HTTP 400."""

    sentence: str
    field: str = ""
    code: str = "invalid"

    def __str__(self) -> str:
        return self.sentence


@dataclass
class AlreadyRuns(Refused):
    """A cycle runs on this cluster, and there is one at a time. HTTP 409."""

    cycle_id: int
    sentence: str
    code: str = "conflict"

    def __str__(self) -> str:
        return self.sentence


@dataclass
class Closed(Refused):
    """The cluster takes no such change now, whoever asks: it is frozen by itself. HTTP 409."""

    sentence: str
    code: str = "conflict"

    def __str__(self) -> str:
        return self.sentence
