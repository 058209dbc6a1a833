"""Who may see and do what: the one place that pages, bulk actions, live updates, API and doors ask."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import (
    BooleanField,
    Exists,
    ExpressionWrapper,
    Model,
    OuterRef,
    Q,
    QuerySet,
    TextField,
    Value,
)
from django.db.models.functions import Cast, Concat, StrIndex

from decisions.models import (
    PERMISSIONS,
    ApiToken,
    Cluster,
    Cycle,
    Decision,
    Permission,
    Role,
    RoleBinding,
    Rule,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

M = TypeVar("M", bound=Model)


@dataclass(frozen=True)
class Grant:
    """One role binding, resolved: its permissions in these clusters (None: all) and namespaces (empty: all)."""

    permissions: frozenset[str]
    clusters: frozenset[int] | None
    namespaces: frozenset[str]

    def covers(self, permission: str, cluster_id: int | None, namespace: str | None) -> bool:
        """Whether this grant gives ``permission`` there. ``namespace`` None asks for the cluster as a whole."""
        if permission not in self.permissions:
            return False
        if self.clusters is not None and cluster_id not in self.clusters:
            return False
        return not self.namespaces or (namespace is not None and namespace in self.namespaces)


@dataclass(frozen=True)
class Access:
    """Everything one person (or a token of theirs) may."""

    grants: tuple[Grant, ...]

    @classmethod
    def of(cls, user: User | AnonymousUser | None, *, limited_to: Iterable[str] | None = None) -> "Access":
        """Read a user's role bindings. ``limited_to``: the permissions that a token's scopes leave."""
        if user is None or not user.is_authenticated or not user.is_active:
            return cls(())
        scopes = frozenset(Permission.values if limited_to is None else limited_to)
        bindings = (
            RoleBinding.objects.filter(Q(user_id=user.pk) | Q(group__in=user.groups.all()))
            .distinct()
            .prefetch_related("clusters")
        )
        return cls(
            tuple(
                Grant(
                    permissions=PERMISSIONS[binding.role] & scopes,
                    clusters=frozenset(cluster.pk for cluster in binding.clusters.all()) or None,
                    namespaces=frozenset(binding.namespaces),
                )
                for binding in bindings
            )
        )

    def may(self, permission: str, cluster_id: int | None, namespace: str | None = None) -> bool:
        """Whether ``permission`` is given for a namespace of a cluster, or (None) for the cluster as a whole."""
        return any(grant.covers(permission, cluster_id, namespace) for grant in self.grants)

    def may_somewhere(self, permission: str) -> bool:
        """Whether ``permission`` is given anywhere at all."""
        return any(permission in grant.permissions for grant in self.grants)

    def may_decision(self, permission: str, decision: Decision) -> bool:
        """Whether ``permission`` is given for the pod of this decision."""
        return self.may(permission, decision.cluster_id, decision.namespace)

    def decisions(
        self, permission: str = Permission.VIEW, queryset: "QuerySet[Decision] | None" = None
    ) -> "QuerySet[Decision]":
        """The decisions for which this permission is given; what is not in it does not exist for this person."""
        rows = Decision.objects.all() if queryset is None else queryset
        return self._limited(rows, permission, "cluster_id", "namespace")

    def clusters(self, permission: str = Permission.VIEW, *, whole: bool = False) -> "QuerySet[Cluster]":
        """Clusters of which at least one namespace (``whole``: all of them) is covered."""
        return self._limited(Cluster.objects.all(), permission, "pk", None, whole=whole)

    def cycles(self, permission: str = Permission.VIEW) -> "QuerySet[Cycle]":
        """Cycles of visible clusters. Lists inside a cycle are filtered by :meth:`may` per namespace."""
        return self._limited(Cycle.objects.all(), permission, "cluster_id", None)

    def _limited(
        self,
        rows: "QuerySet[M]",
        permission: str,
        cluster_field: str,
        namespace_field: str | None,
        *,
        whole: bool = False,
    ) -> "QuerySet[M]":
        conditions: Sequence[Q] = [
            _condition(grant, cluster_field, namespace_field)
            for grant in self.grants
            if permission in grant.permissions and not (whole and grant.namespaces)
        ]
        if not conditions:
            return rows.none()
        if any(condition == Q() for condition in conditions):
            return rows
        combined = conditions[0]
        for condition in conditions[1:]:
            combined |= condition
        return rows.filter(combined)


def _condition(grant: Grant, cluster_field: str, namespace_field: str | None) -> Q:
    where: dict[str, Any] = {}
    if grant.clusters is not None:
        where[f"{cluster_field}__in"] = sorted(grant.clusters)
    if grant.namespaces and namespace_field:
        where[f"{namespace_field}__in"] = sorted(grant.namespaces)
    return Q(**where)


# --- the same as a condition on decisions -------------------------------------------------------------------


@cache  # It stands in the last query before each eviction, and building it took longer than that query itself.
def decider_still_may() -> Q:
    """Decisions whose yes still counts: whoever gave it, if a person did, may give it now.

    A condition, so that the last query before an eviction and the UPDATE before a told yes can hold it: nothing fits
    between the test and what it guards. The same rule as :meth:`Access.may_decision`, for the owner of the decision.
    A yes by a token that was revoked since counts no more (somebody stopped trusting it); one by a token that only
    expired does: it was valid when it spoke, and its owner still answers for it.
    """
    return ~Q(rule=Rule.HUMAN) | (Q(_covered()) & _token_trusted())


def _token_trusted() -> Q:
    trusted = ApiToken.objects.filter(pk=OuterRef("decided_with"), revoked_at=None)
    return Q(decided_with=None) | Q(Exists(trusted))


def _covered() -> Exists:
    """A binding of the decider, or of a group of theirs, that lets them give this yes for the decision's pod."""
    theirs = Q(user=OuterRef("decided_by"), user__is_active=True) | Q(
        group__user=OuterRef("decided_by"), group__user__is_active=True
    )
    here = Q(clusters=None) | Q(clusters=OuterRef("cluster_id"))
    may = Q(role__in=_roles(Permission.DECIDE), overrides=False) | Q(
        role__in=_roles(Permission.OVERRIDE), overrides=True
    )
    # SQLite cannot ask whether a JSON list contains a string. A namespace has no quotes: as text it says the same.
    quoted = Concat(Value('"'), OuterRef("namespace"), Value('"'), output_field=TextField())
    place = StrIndex(Cast("namespaces", TextField()), quoted)
    override = ExpressionWrapper(OuterRef("override"), output_field=BooleanField())
    bindings = RoleBinding.objects.alias(place=place, overrides=override)
    return Exists(bindings.filter(theirs, here, may, Q(namespaces=[]) | Q(place__gt=0)))


def _roles(permission: Permission) -> list[str]:
    return [role for role in Role.values if permission in PERMISSIONS[role]]
