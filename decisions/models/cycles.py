"""Cycles: one evaluation of a policy against one snapshot of a cluster."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q

from decisions.models.clusters import Cluster, PolicyVersion
from decisions.models.enums import CycleKind, CycleState
from decisions.models.fields import BoundedText, FreeText, Json


class Cycle(models.Model):
    """One cycle, and what it found. What it filtered out is one compressed document, not a row a pod."""

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="cycles")
    policy = models.ForeignKey(PolicyVersion, models.SET_NULL, null=True, blank=True)
    kind = models.CharField(max_length=12, choices=CycleKind.choices)
    state = models.CharField(max_length=12, choices=CycleState.choices)
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)
    deadline_at = models.DateTimeField()
    heartbeat_at = models.DateTimeField(
        help_text="A running cycle that stops saying so is dead and gets freed."
    )
    runner = models.CharField(max_length=64, blank=True, help_text="The claim of the worker that runs it.")
    started_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True)
    step = BoundedText(max_length=40, blank=True)
    progress = BoundedText(max_length=200, blank=True)
    steps = Json(default=list, help_text="[{name, seconds, detail}] in order.")
    counts = Json(
        default=dict,
        help_text="Funnel: nodes, pods, eligible, nominated, asked, allowed, waiting, denied, skipped, held_back.",
    )
    limits = Json(default=list, help_text="Limits that were hit.")
    warnings = Json(default=list)
    error = FreeText(blank=True)
    failure_mode = models.CharField(max_length=20, blank=True, help_text="config_error, where that ended it.")
    unasked = models.PositiveIntegerField(default=0, help_text="Not asked before the deadline.")
    document = models.BinaryField(
        default=b"", help_text="zlib JSON: {filtered: [...], nominations: [...]} (see models.documents)."
    )

    objects: ClassVar[models.Manager["Cycle"]]

    class Meta:
        ordering = ["-started_at", "-id"]
        constraints = [
            # One at a time for a cluster; a dry run takes no lock.
            models.UniqueConstraint(
                fields=["cluster"],
                condition=Q(state=CycleState.RUNNING) & ~Q(kind=CycleKind.DRY_RUN),
                name="one_running_cycle_per_cluster",
            )
        ]
        indexes = [models.Index(fields=["cluster", "-started_at"], name="cycle_list")]

    def __str__(self) -> str:
        return f"cycle {self.pk} of {self.cluster}"

    @property
    def dry(self) -> bool:
        """Whether it was a dry run: it created no decision."""
        return self.kind == CycleKind.DRY_RUN
