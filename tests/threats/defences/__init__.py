"""Every defence of the threat model as the smallest edit that takes it out.

An edit is a text that occurs exactly once in its file, and what to put in its place. A test holds this list
against the code, so a defence that was rewritten has to be named again here.
"""

from tests.threats.defences import (
    copies,
    doors,
    evictions,
    outside,
    people,
    reach,
    record,
    rights,
    secrets,
    start,
)
from tests.threats.defences.base import Defence, Edit

__all__ = ["DEFENCES", "Defence", "Edit"]

DEFENCES: tuple[Defence, ...] = (
    *evictions.DEFENCES,
    *copies.DEFENCES,
    *doors.DEFENCES,
    *outside.DEFENCES,
    *people.DEFENCES,
    *record.DEFENCES,
    *rights.DEFENCES,
    *secrets.DEFENCES,
    *reach.DEFENCES,
    *start.DEFENCES,
)
