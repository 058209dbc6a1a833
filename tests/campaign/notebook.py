"""Where callers and people write down what they did, each line at once and also into a file."""

from __future__ import annotations

import dataclasses
import json
import threading
from pathlib import Path
from typing import TypeVar

from tests.campaign.accounts import Asked, Clicked, Evicted, Notes, Sent

Note = TypeVar("Note", Asked, Evicted, Clicked)


class Notebook:
    """Notes of several threads."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")
        self._lock = threading.Lock()
        self._asked: list[Asked] = []
        self._evicted: list[Evicted] = []
        self._clicked: list[Clicked] = []

    def asked(self, note: Asked) -> int:
        """A question and its answer; its place."""
        return self._keep(self._asked, note)

    def evicted(self, note: Evicted) -> int:
        """An eviction call of the caller."""
        return self._keep(self._evicted, note)

    def clicked(self, note: Clicked) -> int:
        """What a person was told that it is done."""
        return self._keep(self._clicked, note)

    def _keep(self, notes: list[Note], note: Note) -> int:
        with self._lock:
            notes.append(note)
            line = {"note": type(note).__name__, **dataclasses.asdict(note)}
            self._file.write(json.dumps(line) + "\n")
            self._file.flush()
            return len(notes) - 1

    def notes(self, sent: tuple[Sent, ...] = ()) -> Notes:
        """Everything so far."""
        with self._lock:
            return Notes(tuple(self._asked), tuple(self._evicted), tuple(self._clicked), sent)

    def answered_since(self, moment: float) -> bool:
        """Whether a question was answered and recorded since."""
        with self._lock:
            return any(note.asked > moment and note.decision for note in self._asked[-50:])

    def close(self) -> None:
        """No more notes."""
        self._file.close()
