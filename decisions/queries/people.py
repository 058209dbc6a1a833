"""Who may: names for "ada or root may decide here", so that nobody meets a dead button."""

from collections.abc import Iterable

from django.contrib.auth.models import User
from django.db.models import Q

from decisions.models import PERMISSIONS, RoleBinding

Place = tuple[int, str | None]


def who_may(permission: str, cluster_id: int, namespace: str | None = None) -> tuple[str, ...]:
    """Names of the active people who have ``permission`` there, by a binding of theirs or of a group."""
    place = (cluster_id, namespace)
    return who_may_in(permission, [place])[place]


def who_may_in(permission: str, places: Iterable[Place]) -> dict[Place, tuple[str, ...]]:
    """The same for several (cluster, namespace); a fixed number of queries."""
    wanted = list(places)
    if not wanted:
        return {}
    roles = [role for role, permissions in PERMISSIONS.items() if permission in permissions]
    bindings = list(RoleBinding.objects.filter(role__in=roles).prefetch_related("clusters"))
    users = {binding.user_id for binding in bindings if binding.user_id}
    groups = {binding.group_id for binding in bindings if binding.group_id}
    people = list(
        User.objects.filter(Q(pk__in=users) | Q(groups__in=groups), is_active=True)
        .distinct()
        .prefetch_related("groups")
    )
    return {
        place: tuple(sorted({_name(person) for person in people if _covered(person, bindings, place)}))
        for place in wanted
    }


def _covered(person: User, bindings: Iterable[RoleBinding], place: Place) -> bool:
    groups = {group.pk for group in person.groups.all()}
    mine = (binding for binding in bindings if binding.user_id == person.pk or binding.group_id in groups)
    return any(_covers(binding, place) for binding in mine)


def _covers(binding: RoleBinding, place: Place) -> bool:
    cluster_id, namespace = place
    clusters = {cluster.pk for cluster in binding.clusters.all()}
    if clusters and cluster_id not in clusters:
        return False
    return not binding.namespaces or namespace in binding.namespaces


def _name(person: User) -> str:
    return person.get_full_name() or person.get_username()
