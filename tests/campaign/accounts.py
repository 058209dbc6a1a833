"""The three accounts of a campaign as values: the database, the API server's audit log, the callers' own notes.

All times are this machine's clock in seconds since the epoch: the database, the API server and the callers share it.
Where the record's own times would come from a process's clock, the database's commit timestamps are used instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

WORKER: Final = "worker"
CALLER: Final = "caller"

# What becomes of the verdict by an event, and of the eviction.
VERDICT_AFTER: Final[Mapping[str, str]] = {
    "asked": "pending",
    "approved": "allowed",
    "overridden": "allowed",
    "undone": "pending",
    "back_to_pending": "pending",
    "denied": "denied",
    "taken_back": "denied",
    "expired": "expired",
    "withdrawn": "withdrawn",
    "skipped": "skipped",
}
EVICTION_AFTER: Final[Mapping[str, str]] = {
    "queued": "queued",
    "told": "delegated",
    "eviction_tried": "evicting",
    "blocked": "blocked",
    "accepted": "accepted",
    "in_background": "in_background",
    "evicted": "evicted",
    "gone": "gone",
    "failed": "failed",
    "requeued": "queued",
}


@dataclass(frozen=True)
class Line:
    """One line of a decision's timeline, with the time of its commit.

    Args:
        attempt: of an eviction that was tried; 0 elsewhere.
        status: what the kind alone does not say: what the eviction became when a lease ran out; an extender's
            effect (allow, deny, skip).
    """

    decision: int
    kind: str
    committed: float
    by: str = ""
    attempt: int = 0
    status: str = ""


@dataclass(frozen=True)
class Row:
    """A decision as the database has it at the end. Times are None where the column is empty."""

    id: int
    uid: str
    ours: bool
    verdict: str
    eviction: str
    expires_at: float | None = None
    lease_until: float | None = None
    not_before: float | None = None
    waits_for: int | None = None
    updated_at: float = 0.0


@dataclass(frozen=True)
class Span:
    """A freeze in force: from its commit to the commit of its lifting."""

    start: float
    end: float = float("inf")


@dataclass(frozen=True)
class Database:
    """What the database says."""

    rows: tuple[Row, ...] = ()
    lines: tuple[Line, ...] = ()
    freezes: tuple[Span, ...] = ()
    cycles_running: tuple[tuple[int, float], ...] = ()
    read_at: float = 0.0


@dataclass(frozen=True)
class Call:
    """One eviction call in the API server's audit log."""

    uid: str
    who: str
    received: float
    code: int

    @property
    def accepted(self) -> bool:
        """Whether the API server evicted the pod."""
        return 200 <= self.code < 300


@dataclass(frozen=True)
class Sent:
    """What our worker noted directly before a call: the last test, by the database's clock."""

    decision: int
    attempt: int
    tested: float


@dataclass(frozen=True)
class Asked:
    """One question of the caller at the door, and what it heard."""

    uid: str
    asked: float
    heard: float
    outcome: Literal["yes", "no", "failed"]
    decision: int | None = None


@dataclass(frozen=True)
class Evicted:
    """An eviction call of the caller: because of which answer (its place among the questions)."""

    uid: str
    sent: float
    because: int
    code: int = 0


@dataclass(frozen=True)
class Clicked:
    """What a person did and was told that it is done.

    Args:
        kind: of the timeline line that it must have left: approved, denied, taken_back; or frozen, lifted.
    """

    kind: str
    who: str
    sent: float
    heard: float
    decision: int | None = None


@dataclass(frozen=True)
class Notes:
    """What the callers and people wrote down for themselves."""

    asked: tuple[Asked, ...] = ()
    evicted: tuple[Evicted, ...] = ()
    clicked: tuple[Clicked, ...] = ()
    sent: tuple[Sent, ...] = ()


@dataclass(frozen=True)
class Signals:
    """When each part of the whole job was seen to work, ascending."""

    web: tuple[float, ...] = ()
    worker: tuple[float, ...] = ()
    evictions: tuple[float, ...] = ()
    answers: tuple[float, ...] = ()


@dataclass(frozen=True)
class Done:
    """A fault that was done: when it began and ended, by this machine's clock."""

    number: int
    kind: str
    target: str
    began: float
    ended: float


@dataclass(frozen=True)
class Campaign:
    """Everything that is judged."""

    database: Database = field(default_factory=Database)
    audit: tuple[Call, ...] = ()
    notes: Notes = field(default_factory=Notes)
    signals: Signals = field(default_factory=Signals)
    faults: Sequence[Done] = ()
    living: frozenset[str] = frozenset()
