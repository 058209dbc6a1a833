"""How decisions and cycles can be narrowed in the address."""

from functools import partial

from django.db.models import Q, QuerySet
from django_filters import rest_framework as filters

from decisions.models import Cycle, CycleKind, CycleState, Decision, Eviction, Verdict
from decisions.queries.history import TEXT

text = partial(filters.CharFilter, max_length=TEXT)


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
    cycle = filters.NumberFilter(field_name="cycle_id")
    since = filters.IsoDateTimeFilter(field_name="created_at", lookup_expr="gte")
    until = filters.IsoDateTimeFilter(field_name="created_at", lookup_expr="lt")
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
