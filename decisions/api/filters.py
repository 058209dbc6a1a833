"""How decisions and cycles can be narrowed in the address."""

from datetime import UTC, datetime
from functools import partial

from django import forms
from django.db.models import Q, QuerySet
from django_filters import rest_framework as filters
from django_filters.fields import IsoDateTimeField
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field

from decisions.models import Cycle, CycleKind, CycleState, Decision, Eviction, PolicyVersion, Verdict
from decisions.queries.history import TEXT

BIGGEST = 2**63 - 1  # what a database takes for an id
text = partial(filters.CharFilter, max_length=TEXT)


@extend_schema_field(OpenApiTypes.INT)
class IdFilter(filters.NumberFilter):
    """A whole number; what is none is refused."""

    field_class = forms.IntegerField


class _TimeField(IsoDateTimeField):
    """A time that is one in every zone: databases keep UTC."""

    def to_python(self, value: str) -> datetime | None:
        """Raises ValidationError."""
        time: datetime | None = super().to_python(value)
        try:
            return time and time.astimezone(UTC)
        except OverflowError:
            raise forms.ValidationError("This time is out of range.") from None


class TimeFilter(filters.IsoDateTimeFilter):
    """A point in time, as ISO 8601."""

    field_class = _TimeField


class DecisionFilter(filters.FilterSet):
    """``?verdict=pending&cluster=prod&namespace=shop&q=web``; values of one name are alternatives."""

    cluster = text(field_name="cluster__name")
    verdict = filters.MultipleChoiceFilter(choices=Verdict.choices, distinct=False)
    eviction = filters.MultipleChoiceFilter(choices=Eviction.choices, distinct=False)
    namespace = text()
    node = text()
    pod_name = text()
    pod_uid = text()
    workload = text()
    plugin = text()
    failure_mode = text()
    asker = text()
    cycle = IdFilter(field_name="cycle_id", min_value=1, max_value=BIGGEST)
    since = TimeFilter(field_name="created_at", lookup_expr="gte")
    until = TimeFilter(field_name="created_at", lookup_expr="lt")
    q = text(method="search", label="text in names and reasons")

    class Meta:
        model = Decision
        fields: list[str] = []

    def search(self, rows: "QuerySet[Decision]", _name: str, value: str) -> "QuerySet[Decision]":
        """Names and reasons that contain the text."""
        columns = ("pod_name", "namespace", "node", "workload", "reason", "decision_reason")
        where = Q()
        for column in columns:
            where |= Q(**{f"{column}__icontains": value})
        return rows.filter(where)


class CycleFilter(filters.FilterSet):
    """``?cluster=prod&kind=dry_run``."""

    cluster = text(field_name="cluster__name")
    kind = filters.MultipleChoiceFilter(choices=CycleKind.choices, distinct=False)
    state = filters.MultipleChoiceFilter(choices=CycleState.choices, distinct=False)

    class Meta:
        model = Cycle
        fields: list[str] = []


@extend_schema_field(OpenApiTypes.BOOL)
class YesOrNo(filters.TypedChoiceFilter):
    """``true`` or ``false``; django-filter's own takes what is neither for no wish."""

    def __init__(self) -> None:
        super().__init__(choices=[("true", "yes"), ("false", "no")], coerce="true".__eq__)


class PolicyFilter(filters.FilterSet):
    """``?cluster__name=prod&valid=true``."""

    cluster__name = text()
    valid = YesOrNo()

    class Meta:
        model = PolicyVersion
        fields: list[str] = []
