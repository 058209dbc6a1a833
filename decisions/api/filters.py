"""How decisions and cycles can be narrowed in the address."""

from django.db.models import Q, QuerySet
from django_filters import rest_framework as filters

from decisions.models import Cycle, CycleKind, CycleState, Decision, Eviction, Verdict


class DecisionFilter(filters.FilterSet):
    """``?verdict=pending&cluster=prod&namespace=shop&q=web``; values of one name are alternatives."""

    cluster = filters.CharFilter(field_name="cluster__name")
    verdict = filters.MultipleChoiceFilter(choices=Verdict.choices, distinct=False)
    eviction = filters.MultipleChoiceFilter(choices=Eviction.choices, distinct=False)
    namespace = filters.CharFilter()
    node = filters.CharFilter()
    pod_name = filters.CharFilter()
    pod_uid = filters.CharFilter()
    workload = filters.CharFilter()
    plugin = filters.CharFilter()
    failure_mode = filters.CharFilter()
    asker = filters.CharFilter()
    cycle = filters.NumberFilter(field_name="cycle_id")
    since = filters.IsoDateTimeFilter(field_name="created_at", lookup_expr="gte")
    until = filters.IsoDateTimeFilter(field_name="created_at", lookup_expr="lt")
    q = filters.CharFilter(method="search", label="text in names and reasons")

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

    cluster = filters.CharFilter(field_name="cluster__name")
    kind = filters.MultipleChoiceFilter(choices=CycleKind.choices, distinct=False)
    state = filters.MultipleChoiceFilter(choices=CycleState.choices, distinct=False)

    class Meta:
        model = Cycle
        fields: list[str] = []
