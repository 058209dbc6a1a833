"""A cycle's row while a worker runs it: the claim, the heartbeat, progress, the end. Every write is conditional.

A worker that was declared dead and wakes up again finds that no row is its own any more, and stops.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from secrets import token_hex
from typing import Any

from decisions.models import Cycle, CycleState
from decisions.queries.installation import closed_sentence
from decisions.services import holds
from decisions.services.errors import Closed

PROGRESS_EVERY = timedelta(seconds=1)


class Lost(Exception):  # noqa: N818 - somebody else's row is no fault of ours
    """The cycle is no longer ours: it was freed, or another worker has it."""


class Disarmed(Exception):  # noqa: N818
    """The cluster was disarmed while the cycle ran."""


class CycleRow:
    """The hold of one worker on one running cycle. Not to be shared between threads."""

    def __init__(self, cycle: Cycle, runner: str, now: Callable[[], datetime]) -> None:
        self.cycle, self._runner, self.now = cycle, runner, now
        self._began = self._written_at = cycle.heartbeat_at
        self._steps: list[dict[str, Any]] = []

    @classmethod
    def claim(cls, cycle_id: int, now: Callable[[], datetime]) -> "CycleRow | None":
        """Take a cycle that runs and that no worker has; None where there is none of that kind.

        Its deadline counts from now: what it waited for a worker is not its own time.
        """
        moment, runner = now(), token_hex(16)
        cycle = Cycle.objects.filter(pk=cycle_id).only("started_at", "deadline_at").first()
        if cycle is None:
            return None
        waited = max(timedelta(0), moment - cycle.started_at)
        won = Cycle.objects.filter(pk=cycle_id, state=CycleState.RUNNING, runner="").update(
            runner=runner, heartbeat_at=moment, deadline_at=cycle.deadline_at + waited
        )
        if not won:
            return None
        return cls(Cycle.objects.select_related("cluster", "started_by").get(pk=cycle_id), runner, now)

    @property
    def began(self) -> datetime:
        """When a worker took it: the moment that ages are counted to."""
        return self._began

    @property
    def out_of_time(self) -> bool:
        """Whether the deadline is over."""
        return self.now() >= self.cycle.deadline_at

    @property
    def seconds_left(self) -> float:
        """Until the deadline."""
        return (self.cycle.deadline_at - self.now()).total_seconds()

    def beat(self, progress: str = "", **fields: Any) -> None:
        """Say that we live and how far we are; written at most once a second. Raises Lost."""
        if self.now() - self._written_at >= PROGRESS_EVERY:
            self.write(progress=progress[:200], **fields)

    def write(self, **fields: Any) -> None:
        """Write now. Raises Lost."""
        moment = self.now()
        won = self._ours().update(heartbeat_at=moment, **fields)
        if not won:
            raise Lost(self.cycle.pk)
        self._written_at = moment

    def hold_armed(self) -> None:
        """Within a transaction: make sure that until its end the cycle stays ours and the cluster armed.

        The cluster's row is locked against disarming, not against rows that refer to it.

        Raises:
            Disarmed, Lost; Closed: the cluster is frozen by itself.
        """
        cluster = holds.cluster(self.cycle.cluster_id)
        if not cluster.armed:
            raise Disarmed
        if cluster.stopped:
            raise Closed(closed_sentence(cluster))
        self.write()

    @contextmanager
    def step(self, name: str) -> Iterator[dict[str, Any]]:
        """One step of the cycle, with its time; ``detail`` of what it yields says what came of it."""
        started = self.now()
        entry: dict[str, Any] = {"name": name, "seconds": 0.0, "detail": ""}
        self.write(step=name, progress="", steps=self._steps)
        try:
            yield entry
        finally:
            entry["seconds"] = round((self.now() - started).total_seconds(), 3)
            self._steps.append(entry)

    def add_step(self, name: str, seconds: float, detail: str = "") -> None:
        """A step whose time was taken by whoever did it."""
        self._steps.append({"name": name, "seconds": round(seconds, 3), "detail": detail})

    def end(self, state: str, **fields: Any) -> None:
        """The end, once. Raises Lost."""
        moment = self.now()
        won = self._ours().update(
            state=state,
            finished_at=moment,
            heartbeat_at=moment,
            step="",
            progress="",
            steps=self._steps,
            **fields,
        )
        if not won:
            raise Lost(self.cycle.pk)

    def _ours(self) -> Any:
        return Cycle.objects.filter(pk=self.cycle.pk, state=CycleState.RUNNING, runner=self._runner)
