"""The record: what happened to decisions and what was set by whom. Append-only, and chained by hash.

A row is never updated or deleted; triggers of the database refuse it (``decisions.guards``). So a row refers to a
person by id and name alone: their account may go, what they did stays as it was written.
"""

from typing import ClassVar

from django.db import models

from decisions.models.clusters import Cluster
from decisions.models.decisions import Decision
from decisions.models.enums import Event
from decisions.models.fields import BoundedText, Json

INSTALLATION = "installation"


class Chain(models.Model):
    """The head of a chain of hashes: its last entry. One chain for each cluster, and one for what belongs to none.

    Its lock is what gives entries their order; taken last in a transaction, and in the order of names.
    """

    name = models.CharField(max_length=40, unique=True, help_text="'cluster:<id>', or 'installation'.")
    seq = models.PositiveBigIntegerField(default=0, help_text="Of the last entry: how many there are.")
    hash = models.CharField(max_length=64, blank=True, help_text="Of the last entry.")
    written_at = models.DateTimeField(null=True, blank=True)
    verified_at = models.DateTimeField(
        null=True, blank=True, help_text="When verify_audit last found it whole."
    )
    verified_seq = models.PositiveBigIntegerField(default=0, help_text="Up to which entry.")

    objects: ClassVar[models.Manager["Chain"]]

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @staticmethod
    def name_for(cluster_id: int | None) -> str:
        """The name of a cluster's chain; None: of the installation's."""
        return INSTALLATION if cluster_id is None else f"cluster:{cluster_id}"


class Entry(models.Model):
    """What every row of the record has. Written by ``services.timeline`` only."""

    chain = models.ForeignKey(Chain, models.PROTECT, related_name="+", db_index=False)
    seq = models.PositiveBigIntegerField(help_text="In its chain, from 1, without gaps.")
    hash = models.CharField(max_length=64, help_text="SHA-256 over the content and the hash before it.")
    encoding = models.PositiveSmallIntegerField(
        default=1, help_text="How the content was written for the hash."
    )
    at = models.DateTimeField()
    by_id = models.BigIntegerField(null=True, blank=True, help_text="The account's id; it may be gone.")
    by_name = BoundedText(max_length=200, blank=True, help_text="Also says when it was a token.")
    reason = BoundedText(max_length=4096, blank=True)
    detail = Json(default=dict, blank=True)

    class Meta:
        abstract = True


class DecisionEvent(Entry):
    """One line of a decision's timeline: who, when, what, why."""

    decision = models.ForeignKey(Decision, models.PROTECT, related_name="events")
    kind = models.CharField(max_length=20, choices=Event.choices)

    objects: ClassVar[models.Manager["DecisionEvent"]]

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["chain", "seq"], name="timeline_chain")]
        indexes = [models.Index(fields=["decision", "id"], name="timeline")]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} at {self.at:%F %T}"


class AuditEntry(Entry):
    """What was set by whom, beside decisions: arming, pausing, freezes, settings, roles, tokens, sign-ins, policies."""

    what = BoundedText(max_length=60)
    cluster = models.ForeignKey(Cluster, models.PROTECT, null=True, blank=True, related_name="+")
    subject = BoundedText(max_length=300, blank=True)

    objects: ClassVar[models.Manager["AuditEntry"]]

    class Meta:
        ordering = ["-id"]
        constraints = [models.UniqueConstraint(fields=["chain", "seq"], name="audit_chain")]

    def __str__(self) -> str:
        return f"{self.what} by {self.by_name}"
