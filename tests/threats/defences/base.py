"""What a defence is: a text in a file that can be taken out."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Edit:
    """In this file, this text (once) becomes that."""

    path: str
    old: str
    new: str = ""


@dataclass(frozen=True)
class Defence:
    """What stops a threat (a row's id), how to take it out, and the test that then fails."""

    threat: str
    what: str
    edits: tuple[Edit, ...]
    test: str


def cut(path: str, old: str, new: str = "") -> tuple[Edit, ...]:
    """The one edit that most defences need."""
    return (Edit(path, old, new),)
