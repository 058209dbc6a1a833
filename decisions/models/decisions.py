"""Decisions: the record of who wanted to evict which pod, why, who decided, and what came of it."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.urls import reverse

from decisions.models.access import ApiToken, Caller
from decisions.models.clusters import Cluster, PolicyVersion
from decisions.models.cycles import Cycle
from decisions.models.enums import ENDED, OCCUPYING, Eviction, Executor, Rule, Verdict
from decisions.models.fields import BoundedText, FreeText, Json

OPEN = Q(verdict=Verdict.PENDING) | (Q(verdict=Verdict.ALLOWED) & ~Q(eviction__in=ENDED))


class Snapshot(models.Model):
    """A pod or node as it was, kept once per content: an allow-list of fields, no secrets (``kube.redact``)."""

    digest = models.CharField(max_length=64, unique=True)
    kind = models.CharField(max_length=20)
    body = models.BinaryField(help_text="zlib JSON, at most 64 kB before compression.")
    created_at = models.DateTimeField(auto_now_add=True)

    objects: ClassVar[models.Manager["Snapshot"]]

    def __str__(self) -> str:
        return f"{self.kind} {self.digest[:12]}"


class Decision(models.Model):
    """This pod UID, this asker, this answer, why, by whom, and what came of it."""

    # Who asks for which pod.
    cluster = models.ForeignKey(Cluster, models.PROTECT, related_name="decisions")
    asker = models.CharField(max_length=80, help_text="'policy', or 'caller:<id>'.")
    asker_name = BoundedText(max_length=200)
    caller = models.ForeignKey(Caller, models.SET_NULL, null=True, blank=True, related_name="decisions")
    executor = models.CharField(max_length=5, choices=Executor.choices)
    pod_uid = models.CharField(max_length=128)
    namespace = BoundedText(max_length=63)
    pod_name = BoundedText(max_length=253)
    node = BoundedText(max_length=253, blank=True, help_text="Empty for a pod that is not scheduled.")
    owner_kind = BoundedText(max_length=63, blank=True)
    owner_name = BoundedText(max_length=253, blank=True)
    owner_uid = BoundedText(
        max_length=128, blank=True, help_text="Of the controller: ReplicaSet, StatefulSet …"
    )
    workload = BoundedText(
        max_length=320,
        blank=True,
        help_text="Kind/name that an SRE knows: Deployment/web, not its ReplicaSet.",
    )
    verified = models.BooleanField(default=True, help_text="False: claimed by a caller, checked by nobody.")

    # Why.
    cycle = models.ForeignKey(Cycle, models.SET_NULL, null=True, blank=True, related_name="decisions")
    policy = models.ForeignKey(PolicyVersion, models.SET_NULL, null=True, blank=True)
    profile = BoundedText(max_length=253, blank=True)
    plugin = BoundedText(max_length=253, blank=True)
    reason = BoundedText(max_length=4096, blank=True)
    grace_period_seconds = models.BigIntegerField(null=True, blank=True)
    nominated_count = models.PositiveIntegerField(default=1)
    nominated_at = models.DateTimeField(help_text="Last nominated or asked for.")
    extender_effect = models.CharField(
        max_length=5, blank=True, help_text="allow, deny, skip; empty: none was asked."
    )
    extender_decided_by = BoundedText(max_length=20, blank=True)
    extender_reason = BoundedText(max_length=4096, blank=True)
    failure_mode = models.CharField(max_length=20, blank=True)
    extenders = Json(default=list, help_text="Every extender's outcome (ExtenderOutcome.as_dict).")
    forecast = Json(default=dict, help_text="What would happen (Forecast.as_dict), when last nominated.")
    pod_snapshot = models.ForeignKey(Snapshot, models.SET_NULL, null=True, blank=True, related_name="+")
    node_snapshot = models.ForeignKey(Snapshot, models.SET_NULL, null=True, blank=True, related_name="+")

    # The verdict: written by services.verdicts only.
    verdict = models.CharField(max_length=10, choices=Verdict.choices, default=Verdict.PENDING)
    rule = models.CharField(max_length=10, choices=Rule.choices, default=Rule.NONE)
    version = models.PositiveIntegerField(
        default=1, help_text="Goes up when what a reviewer saw has changed."
    )
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    decided_by_name = BoundedText(max_length=200, blank=True, help_text="Also says when it was a token.")
    decided_with = models.ForeignKey(
        ApiToken,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="The token, if it was one.",
    )
    decided_at = models.DateTimeField(null=True, blank=True)
    decision_reason = BoundedText(max_length=4096, blank=True)
    override = models.BooleanField(default=False)
    cooldown_until = models.DateTimeField(
        null=True, blank=True, help_text="A human's denial holds; or nobody answered."
    )
    expires_at = models.DateTimeField(null=True, blank=True)
    unanswered = models.PositiveIntegerField(
        default=0, help_text="How often this asker got no answer for this UID before."
    )
    moment = Json(default=dict, help_text="What was shown at approval: ready, desired, pdb, node, policy.")

    # The eviction: written by services.evictions only.
    eviction = models.CharField(max_length=13, choices=Eviction.choices, default=Eviction.NONE)
    attempt = models.PositiveIntegerField(default=0)
    not_before = models.DateTimeField(null=True, blank=True, help_text="Undo time, back-off, Retry-After.")
    lease_until = models.DateTimeField(null=True, blank=True)
    claimed_by = BoundedText(max_length=200, blank=True)
    failures = models.PositiveIntegerField(
        default=0, help_text="Answers in a row that said nothing (up to 5)."
    )
    cause = BoundedText(max_length=40, blank=True, help_text="EvictionCause of the last answer.")
    message = FreeText(blank=True, help_text="What the API server said last, in words.")
    pdb = BoundedText(max_length=253, blank=True)
    webhook = BoundedText(max_length=253, blank=True)
    held = BoundedText(
        max_length=300, blank=True, help_text="Why a queued one is held back; empty: it is not."
    )
    waits_for = models.ForeignKey("self", models.SET_NULL, null=True, blank=True, related_name="+")
    released_at = models.DateTimeField(null=True, blank=True, help_text="When the pace first let it go.")
    told_at = models.DateTimeField(null=True, blank=True, help_text="When the asker first heard a yes.")
    told_noted_at = models.DateTimeField(null=True, blank=True, help_text="When the timeline last said so.")
    told_count = models.PositiveIntegerField(default=0)
    accepted_at = models.DateTimeField(null=True, blank=True)
    server_accepted_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="The same by the API server's clock: pods made before then are no replacement.",
    )
    ended_at = models.DateTimeField(null=True, blank=True)
    unconfirmed = models.BooleanField(default=False)
    replacement_uid = BoundedText(max_length=128, blank=True)
    replacement_name = BoundedText(max_length=253, blank=True)
    replacement_node = BoundedText(max_length=253, blank=True)
    replacement_seen_at = models.DateTimeField(null=True, blank=True)
    replacement_ready_at = models.DateTimeField(null=True, blank=True)
    settled_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="When the pace stopped waiting for it: replacement Ready, none wanted, or somebody said go on.",
    )

    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    # OPEN as a column, because SQLite uses no partial index for a condition with IN and parameters.
    open = models.GeneratedField(
        expression=models.Case(
            models.When(OPEN, then=models.Value(value=True)), default=models.Value(value=False)
        ),
        output_field=models.BooleanField(),
        db_persist=True,
    )

    objects: ClassVar[models.Manager["Decision"]]

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "pod_uid", "asker"], condition=OPEN, name="one_open_decision"
            ),
            models.UniqueConstraint(
                fields=["cluster", "pod_uid"],
                condition=Q(eviction__in=OCCUPYING),
                name="one_eviction_per_pod",
            ),
            models.CheckConstraint(
                condition=~Q(eviction__in=(*OCCUPYING, Eviction.DELEGATED)) | Q(verdict=Verdict.ALLOWED),
                name="eviction_needs_an_allowed_verdict",
            ),
            models.CheckConstraint(
                condition=~Q(verdict=Verdict.DENIED, rule=Rule.HUMAN) | ~Q(decision_reason=""),
                name="a_humans_denial_has_a_reason",
            ),
            models.CheckConstraint(
                condition=~Q(eviction=Eviction.EVICTING) | Q(lease_until__isnull=False),
                name="evicting_has_a_lease",
            ),
            models.CheckConstraint(
                condition=~Q(
                    eviction__in=(Eviction.QUEUED, Eviction.BLOCKED, Eviction.EVICTING),
                    executor=Executor.ASKER,
                ),
                name="we_evict_only_what_is_ours",
            ),
        ]
        indexes = [
            # queries.inbox: what waits, by time left.
            models.Index(
                fields=["cluster", "expires_at"], condition=Q(verdict=Verdict.PENDING), name="inbox_pending"
            ),
            # queries.history: newest first, the page's order; and with the common filters. queries.statistics counts
            # verdicts in spans of time: with the verdict in it, the first one answers that alone.
            models.Index(fields=["-created_at", "-id", "verdict"], name="history_newest"),
            models.Index(fields=["cluster", "-created_at", "-id"], name="history_cluster"),
            models.Index(fields=["verdict", "-created_at", "-id"], name="history_verdict"),
            models.Index(fields=["namespace", "-created_at", "-id"], name="history_namespace"),
            # queries.history by eviction.
            models.Index(fields=["verdict", "eviction", "-created_at", "-id"], name="history_eviction"),
            # queries.inbox: what failed lately.
            models.Index(
                fields=["cluster", "-updated_at"],
                condition=Q(eviction=Eviction.FAILED),
                name="eviction_failed",
            ),
            # doors and cycles: everything known of one pod.
            models.Index(fields=["cluster", "pod_uid", "asker", "-id"], name="decision_by_pod"),
            # tick, claim and follow: a handful of rows among a long history.
            models.Index(fields=["cluster", "eviction"], condition=Q(open=True), name="decision_open"),
            # pace and follow: evicted, and no Ready replacement yet.
            models.Index(
                fields=["cluster", "owner_uid"],
                condition=Q(eviction=Eviction.EVICTED, settled_at=None),
                name="evicted_unsettled",
            ),
            # cycles' pages: the decisions of a cycle; workload: its history.
            models.Index(fields=["cluster", "namespace", "workload", "-id"], name="decision_by_workload"),
        ]

    def __str__(self) -> str:
        return f"decision {self.pk}: {self.namespace}/{self.pod_name}"

    def get_absolute_url(self) -> str:
        """The short address that goes into chats and tickets."""
        return reverse("decision", args=[self.pk])

    @property
    def is_open(self) -> bool:
        """Pending, or allowed with an eviction that has not ended."""
        return self.verdict == Verdict.PENDING or (
            self.verdict == Verdict.ALLOWED and self.eviction not in ENDED
        )

    @property
    def pod(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.pod_name}"
