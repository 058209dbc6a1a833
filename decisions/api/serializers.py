"""What the API shows and takes."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from decisions.api.authentication import access_of
from decisions.models import Cluster, Cycle, Decision, DecisionEvent, Freeze, PolicyVersion
from decisions.models.enums import Stop
from decisions.queries import cycles as cycle_queries
from decisions.queries.access import Access

REASON_CHARS = 4096
DAYS_30 = 30 * 24 * 3600


class EventSerializer(serializers.ModelSerializer[DecisionEvent]):
    """One line of a timeline."""

    class Meta:
        model = DecisionEvent
        fields = ["at", "kind", "by_name", "reason", "detail"]


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "pending",
            value={
                "id": 4711,
                "url": "https://deschedui.example/d/4711/",
                "cluster": "prod",
                "asker_name": "our policy",
                "executor": "us",
                "namespace": "shop",
                "pod_name": "web-5fc9-kdpx9",
                "pod_uid": "3f6c1f0e-6a2b-4a54-9c1e-0d5b7b1a0001",
                "node": "n1",
                "plugin": "PodLifeTime",
                "reason": "pod is 26h old, the policy allows at most 24h",
                "verdict": "pending",
                "eviction": "none",
                "version": 1,
                "expires_at": "2026-11-30T04:00:00Z",
            },
        )
    ]
)
class DecisionSerializer(serializers.ModelSerializer[Decision]):
    """A decision, without its timeline."""

    cluster = serializers.CharField(source="cluster.name")
    url = serializers.SerializerMethodField()

    class Meta:
        model = Decision
        fields = [
            *("id", "url", "cluster", "asker", "asker_name", "executor"),
            *("pod_uid", "namespace", "pod_name", "node", "workload", "owner_kind", "owner_name", "verified"),
            *("cycle", "profile", "plugin", "reason", "nominated_count", "nominated_at"),
            *(
                "extender_effect",
                "extender_decided_by",
                "extender_reason",
                "failure_mode",
                "extenders",
                "forecast",
            ),
            *("verdict", "rule", "version", "decided_by_name", "decided_at", "decision_reason", "override"),
            *("cooldown_until", "expires_at", "unanswered"),
            *("eviction", "attempt", "not_before", "cause", "message", "pdb", "webhook", "held", "waits_for"),
            *("told_at", "told_count", "accepted_at", "ended_at", "unconfirmed"),
            *("replacement_name", "replacement_node", "replacement_ready_at", "created_at", "updated_at"),
        ]
        read_only_fields = fields

    @extend_schema_field(serializers.URLField())
    def get_url(self, decision: Decision) -> str:
        """Where a person reads and decides it."""
        from django.conf import settings  # noqa: PLC0415 - importable before settings are configured

        return f"{settings.ENV.public_url}{decision.get_absolute_url()}"


class DecisionDetailSerializer(DecisionSerializer):
    """A decision with its timeline."""

    timeline = EventSerializer(source="events", many=True, read_only=True)

    class Meta(DecisionSerializer.Meta):
        fields = [*DecisionSerializer.Meta.fields, "timeline"]


class ApproveSerializer(serializers.Serializer[Any]):
    """The version that was shown: a decision that changed since is refused with what changed."""

    version = serializers.IntegerField(min_value=1, max_value=2**31 - 1)


class DenySerializer(ApproveSerializer):
    """A denial has a reason; its cool-down keeps this asker from this pod."""

    reason = serializers.CharField(max_length=REASON_CHARS)
    cooldown_seconds = serializers.IntegerField(
        min_value=0, max_value=DAYS_30, required=False, allow_null=True
    )


class OverrideSerializer(serializers.Serializer[Any]):
    """An override has a reason."""

    reason = serializers.CharField(max_length=REASON_CHARS)


class TakeBackSerializer(OverrideSerializer):
    """So has taking an approval back."""

    cooldown_seconds = serializers.IntegerField(
        min_value=0, max_value=DAYS_30, required=False, allow_null=True
    )


class CycleSerializer(serializers.ModelSerializer[Cycle]):
    """A cycle, without its lists."""

    cluster = serializers.CharField(source="cluster.name")
    policy_version = serializers.IntegerField(source="policy.number", default=None, allow_null=True)
    limits = serializers.SerializerMethodField()
    warnings = serializers.SerializerMethodField()

    @extend_schema_field(serializers.ListField(child=serializers.DictField()))
    def get_limits(self, cycle: Cycle) -> list[dict[str, Any]]:
        """The limits that were hit, as far as they are this reader's to see."""
        return cycle_queries.visible_limits(self._access, cycle)

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_warnings(self, cycle: Cycle) -> list[str]:
        """What is to be said about the cycle; pods of other people's namespaces are not named."""
        return cycle_queries.visible_warnings(self._access, cycle)

    @property
    def _access(self) -> Access:
        return access_of(self.context["request"])

    class Meta:
        model = Cycle
        fields = [
            *(
                "id",
                "cluster",
                "policy_version",
                "kind",
                "state",
                "started_at",
                "finished_at",
                "step",
                "progress",
            ),
            *("steps", "counts", "limits", "warnings", "error", "failure_mode", "unasked"),
        ]
        read_only_fields = fields


class StartCycleSerializer(serializers.Serializer[Any]):
    """Which cluster, and whether nothing may come of it."""

    cluster = serializers.SlugField()
    dry_run = serializers.BooleanField(default=False)


class PolicySerializer(serializers.ModelSerializer[PolicyVersion]):
    """A policy version; header values are masked in its text."""

    cluster = serializers.CharField(source="cluster.name")

    class Meta:
        model = PolicyVersion
        fields = [
            *("id", "cluster", "number", "valid", "source", "digest", "created_at"),
            *("text", "errors", "warnings", "upstream_error"),
        ]
        read_only_fields = fields


class ValidateSerializer(serializers.Serializer[Any]):
    """A policy text to be checked; it is not stored, and nothing is opened or called."""

    text = serializers.CharField(max_length=1024 * 1024, trim_whitespace=False, allow_blank=True)


class ProblemInPolicySerializer(serializers.Serializer[Any]):
    """One thing that is wrong with a policy."""

    message = serializers.CharField()
    path = serializers.CharField()
    line = serializers.IntegerField(allow_null=True)
    column = serializers.IntegerField(allow_null=True)
    hint = serializers.CharField()
    upstream = serializers.CharField()


class ValidationSerializer(serializers.Serializer[Any]):
    """The verdict on a policy text."""

    valid = serializers.BooleanField()
    errors = ProblemInPolicySerializer(many=True)  # type: ignore[assignment]  # the field is called so
    warnings = ProblemInPolicySerializer(many=True)
    upstream_error = serializers.CharField(allow_blank=True)


class FreezeSerializer(serializers.ModelSerializer[Freeze]):
    """A freeze; cluster null: of everything."""

    cluster = serializers.CharField(source="cluster.name", default=None, allow_null=True)

    class Meta:
        model = Freeze
        fields = [
            *("id", "cluster", "reason", "set_at", "set_by", "lifted_at", "lifted_by"),
            *("calls_in_flight", "callers_told"),
        ]
        read_only_fields = fields


class SetFreezeSerializer(serializers.Serializer[Any]):
    """What to freeze, and why."""

    cluster = serializers.SlugField(
        required=False, allow_null=True, help_text="Missing or null: every cluster."
    )
    reason = serializers.CharField(max_length=500)


class ClusterSerializer(serializers.ModelSerializer[Cluster]):
    """A cluster and how it is."""

    stopped = serializers.ChoiceField(Stop.choices, allow_blank=True, read_only=True)

    class Meta:
        model = Cluster
        fields = [
            *("id", "name", "armed", "paused", "interval_seconds", "next_cycle_at", "contacted_at"),
            *("problem", "problem_since", "server_version", "lease_checked_at", "lease_problem"),
            *("stopped", "stopped_at", "stopped_why", "stopped_withdrawn", "confirmed_at", "confirmed_by"),
        ]
        read_only_fields = fields


class ProblemSerializer(serializers.Serializer[Any]):
    """``application/problem+json``."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    errors = serializers.DictField(required=False)  # type: ignore[assignment]  # RFC 9457 leaves the name to us
    decision = serializers.IntegerField(required=False)
    version = serializers.IntegerField(required=False)
    verdict = serializers.CharField(required=False)
    decided_by = serializers.CharField(required=False)
    changes = serializers.DictField(required=False)
