"""The states of decisions, evictions and cycles, with the groups that rules speak of."""

from django.db import models


class Verdict(models.TextChoices):
    """What was decided (design.md section 5). Only ``services.verdicts`` writes it.

    pending → allowed | denied | expired | withdrawn; denied → allowed (override); allowed → pending (undone,
    the moment changed, the approver lost the right), denied (taken back), expired, withdrawn; skipped is final.
    """

    PENDING = "pending"
    ALLOWED = "allowed"
    DENIED = "denied"
    SKIPPED = "skipped"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"


class Eviction(models.TextChoices):
    """What became of it, apart from the verdict (design.md section 5). Only ``services.evictions`` writes it.

    none → queued | delegated; queued → evicting (the claim) | none | gone; evicting → accepted | evicted |
    in_background | blocked | queued | failed | gone; blocked → queued | none | gone; failed → queued (by a human);
    accepted | in_background | delegated → evicted; in_background → queued | failed; delegated → none.
    """

    NONE = "none"
    QUEUED = "queued"
    DELEGATED = "delegated"
    EVICTING = "evicting"
    ACCEPTED = "accepted"
    IN_BACKGROUND = "in_background"
    BLOCKED = "blocked"
    EVICTED = "evicted"
    GONE = "gone"
    FAILED = "failed"


# Statuses that occupy the pod: one at a time for (cluster, pod UID), whoever asked.
OCCUPYING = (Eviction.QUEUED, Eviction.BLOCKED, Eviction.EVICTING, Eviction.ACCEPTED, Eviction.IN_BACKGROUND)
# The verdict cannot leave allowed: the call may have reached the API server.
COMMITTED = (Eviction.EVICTING, Eviction.ACCEPTED, Eviction.IN_BACKGROUND)
# Nothing has been tried that could not be taken back.
RECALLABLE = (Eviction.NONE, Eviction.QUEUED, Eviction.BLOCKED, Eviction.DELEGATED)
# An eviction that has ended; with an allowed verdict the decision is no longer open.
ENDED = (Eviction.EVICTED, Eviction.GONE, Eviction.FAILED)


class Executor(models.TextChoices):
    """Who carries it out, fixed when the decision is made."""

    US = "us"
    ASKER = "asker"


class Rule(models.TextChoices):
    """Which rule gave the verdict, in the order in which they are tried (design.md section 5)."""

    NONE = "none", "nobody yet"
    HUMAN = "human"
    EXTENDER = "extender"
    UNATTENDED = "unattended"
    TIME = "time"
    CLUSTER = "cluster", "what happened in the cluster"


class Event(models.TextChoices):
    """One line of a decision's timeline."""

    ASKED = "asked"
    EXTENDER_ANSWERED = "extender_answered", "extender answered"
    EXTENDER_FAILED = "extender_failed", "extender failed"
    NOMINATED_AGAIN = "nominated_again", "nominated again"
    APPROVED = "approved"
    DENIED = "denied"
    OVERRIDDEN = "overridden"
    UNDONE = "undone", "approval undone"
    TAKEN_BACK = "taken_back", "taken back"
    BACK_TO_PENDING = "back_to_pending", "back to pending"
    SKIPPED = "skipped"
    TOLD = "told"
    QUEUED = "queued"
    TRIED = "eviction_tried", "eviction tried"
    BLOCKED = "blocked"
    ACCEPTED = "accepted"
    IN_BACKGROUND = "in_background", "in background"
    EVICTED = "evicted"
    GONE = "gone"
    FAILED = "failed"
    REQUEUED = "requeued", "queued again"
    HELD = "held"
    RELEASED = "released"
    STILL_THERE = "still_there", "still there"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    REPLACEMENT = "replacement_seen", "replacement seen"
    LEASE_LOST = "lease_lost", "lease ran out"


class Stop(models.TextChoices):
    """Why a cluster is frozen by itself: it is not certain that this installation is the one that works there."""

    FOREIGN = "foreign", "the Lease names another installation"
    AHEAD = "ahead", "the Lease is ahead of the database"
    MISSING = "missing", "the Lease is gone"


class CycleState(models.TextChoices):
    """How far a cycle is. A tick that finds one running is recorded as skipped."""

    RUNNING = "running"
    COMPLETED = "completed"
    INCOMPLETE = "incomplete", "ended at its deadline"
    FAILED = "failed"
    SKIPPED = "skipped"


class CycleKind(models.TextChoices):
    """Why a cycle ran."""

    SCHEDULED = "scheduled"
    MANUAL = "manual"
    DRY_RUN = "dry_run", "dry run"


class Role(models.TextChoices):
    """A named set of permissions (design.md section 9)."""

    VIEWER = "viewer"
    APPROVER = "approver"
    ADMIN = "admin"


class Permission(models.TextChoices):
    """What a role lets a person do."""

    VIEW = "view"
    DECIDE = "decide"
    OVERRIDE = "override"
    CONFIGURE = "configure"


PERMISSIONS: dict[str, frozenset[str]] = {
    Role.VIEWER: frozenset({Permission.VIEW}),
    Role.APPROVER: frozenset({Permission.VIEW, Permission.DECIDE, Permission.OVERRIDE}),
    Role.ADMIN: frozenset(Permission.values),
}
