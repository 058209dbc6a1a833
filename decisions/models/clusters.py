"""Clusters, their policies, and their freezes."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q

from decisions.models.enums import Stop
from decisions.models.fields import BoundedText, FreeText, Json
from decisions.models.settings import ClusterSettings


class Cluster(models.Model):
    """A Kubernetes cluster. A new one only observes (dry runs) until an admin arms it."""

    name = models.SlugField(max_length=63, unique=True)
    in_cluster = models.BooleanField(default=False, help_text="Use the service account we run as.")
    kubeconfig = BoundedText(max_length=500, blank=True, help_text="File; empty: the client's default.")
    context = BoundedText(max_length=200, blank=True, help_text="Context; empty: the current one.")
    policy_file = BoundedText(
        max_length=500, blank=True, help_text="DeschedulerPolicy file, read before each cycle."
    )
    policy_configmap = BoundedText(
        max_length=600, blank=True, help_text="Or a ConfigMap: namespace/name/key."
    )
    interval_seconds = models.PositiveIntegerField(default=300, help_text="From start to start of cycles.")
    overrides = models.JSONField(
        default=dict, blank=True, help_text="Settings that differ from the defaults."
    )

    armed = models.BooleanField(default=False)
    armed_at = models.DateTimeField(null=True, blank=True)
    armed_by = BoundedText(max_length=200, blank=True)
    paused = models.BooleanField(default=False)

    next_cycle_at = models.DateTimeField(null=True, blank=True)
    next_follow_at = models.DateTimeField(null=True, blank=True)
    contacted_at = models.DateTimeField(null=True, blank=True, help_text="When its API server last answered.")
    problem = FreeText(blank=True, help_text="Why its API server cannot be used; empty: it can.")
    problem_since = models.DateTimeField(null=True, blank=True)
    throttled_until = models.DateTimeField(null=True, blank=True)
    server_version = BoundedText(max_length=60, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    # Which installation works there (services.installation). Its id itself is never in the database.
    lease_counter = models.PositiveBigIntegerField(
        default=0, help_text="Raised here first, then in the Lease."
    )
    lease_checked_at = models.DateTimeField(null=True, blank=True, help_text="When the Lease was last ours.")
    lease_checked_by = models.CharField(max_length=16, blank=True, help_text="By which: a digest of its id.")
    lease_problem = FreeText(blank=True, help_text="Why the Lease cannot be read or written; empty: it can.")
    lease_problem_since = models.DateTimeField(null=True, blank=True)
    next_lease_at = models.DateTimeField(null=True, blank=True)
    stopped = models.CharField(max_length=10, choices=Stop.choices, blank=True, help_text="Frozen by itself.")
    stopped_at = models.DateTimeField(null=True, blank=True)
    stopped_why = FreeText(blank=True)
    stopped_withdrawn = models.PositiveIntegerField(default=0, help_text="Decisions that it withdrew.")
    confirmed_at = models.DateTimeField(null=True, blank=True, help_text="An admin: this is the right one.")
    confirmed_by = BoundedText(max_length=200, blank=True)
    confirmed_for = models.CharField(max_length=16, blank=True, help_text="Which: a digest of its id.")

    objects: ClassVar[models.Manager["Cluster"]]

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def settings(self) -> ClusterSettings:
        """The cluster's settings, defaults filled in."""
        return ClusterSettings.model_validate(self.overrides)


class PolicyVersion(models.Model):
    """A policy text as it was read, header values masked, with everything that is wrong with it.

    A bad version is stored and shown; the newest valid one runs.
    """

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="policy_versions")
    number = models.PositiveIntegerField()
    text = FreeText()
    digest = models.CharField(max_length=64, help_text="SHA-256 of the text as it was read.")
    valid = models.BooleanField()
    errors = Json(default=list)
    warnings = Json(default=list)
    upstream_error = FreeText(blank=True, help_text="What the stock descheduler would print.")
    source = BoundedText(max_length=700, help_text="The file, ConfigMap or person it came from.")
    created_at = models.DateTimeField()
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True)

    objects: ClassVar[models.Manager["PolicyVersion"]]

    class Meta:
        ordering = ["-number"]
        constraints = [models.UniqueConstraint(fields=["cluster", "number"], name="policy_version_number")]

    def __str__(self) -> str:
        return f"{self.cluster} policy {self.number}"


class Freeze(models.Model):
    """No eviction leaves the cluster (none: all clusters) until it is lifted."""

    cluster = models.ForeignKey(Cluster, models.CASCADE, null=True, blank=True, related_name="freezes")
    reason = BoundedText(max_length=500)
    set_at = models.DateTimeField()
    set_by = BoundedText(max_length=200)
    lifted_at = models.DateTimeField(null=True, blank=True)
    lifted_by = BoundedText(max_length=200, blank=True)
    calls_in_flight = models.PositiveIntegerField(
        default=0, help_text="Eviction calls under way when it was set."
    )
    callers_told = models.PositiveIntegerField(default=0, help_text="Callers that had heard a yes by then.")

    objects: ClassVar[models.Manager["Freeze"]]

    class Meta:
        ordering = ["-set_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster"], condition=Q(lifted_at=None), name="one_freeze_per_cluster"
            ),
            # lifted_by is empty while it holds: one constant, so that there is one row.
            models.UniqueConstraint(
                fields=["lifted_by"],
                condition=Q(lifted_at=None, cluster=None),
                name="one_freeze_of_everything",
            ),
        ]

    def __str__(self) -> str:
        return f"freeze of {self.cluster or 'all clusters'}: {self.reason}"
