"""Looking at one pod now: for doors, for overrides, for an approval's moment. Never a list of the cluster."""

from enum import StrEnum


class Sight(StrEnum):
    """What a look at the API server showed."""

    FOUND = "found"
    GONE = "gone"
    UNKNOWN = "unknown"
