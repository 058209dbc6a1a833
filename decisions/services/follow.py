"""Following what is open: pods that went, that stay too long, and what came in their place.

One list of pods in brief for each cluster, at least every 15 s while something is open there. A pod that the list
does not show is read once more by itself before it counts as gone.
"""

import logging
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q

from decisions.models import Cluster, Decision, Eviction, Executor
from decisions.services import connections, evictions, nudge
from decisions.services.clock import DATABASE, Clock
from decisions.services.evictions import Replacement
from deschedui.kube.client import ClusterClient
from deschedui.kube.errors import KubeError
from deschedui.kube.lists import PodBrief
from deschedui.kube.owners import OwnerView

log = logging.getLogger(__name__)

EVERY = timedelta(seconds=10)
# While a pod is on its way, or its replacement is: somebody is probably watching, and the next in line waits.
EVERY_IN_FLIGHT = timedelta(seconds=2)
VERSION_EVERY = timedelta(hours=1)
# Clocks differ: a replacement may seem to be a little older than the eviction that made room for it.
CLOCKS_DIFFER_BY = timedelta(seconds=30)
# What a caller evicted is looked after for so long, then its replacement is nobody's business any more.
LOOK_AFTER_OTHERS = timedelta(hours=1)
MOST_NAMESPACES = 8
STILL_TERMINATING = "still terminating"
STILL_RUNNING = "accepted by the API server, and not terminating"
NOT_EVICTED = "not evicted by its caller"
# A caller may have made names up; one that no object can have must not stop the look at the others.
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


# --- what is due ------------------------------------------------------------------------------------------


# Each has a partial index of its own; joined by OR they would read the whole history.
_FOLLOWED = (Q(open=True), Q(eviction=Eviction.EVICTED, settled_at=None))


def followed(cluster_id: int) -> list[Decision]:
    """Decisions of a cluster of which something is still to be seen, in the order in which they were made."""
    rows = Decision.objects.filter(cluster_id=cluster_id).select_related("cluster").order_by()
    return sorted((row for part in _FOLLOWED for row in rows.filter(part)), key=lambda row: row.pk)


def due_clusters(*, now: datetime) -> list[int]:
    """Clusters in which something is open and that have not been looked at for a while."""
    due = Cluster.objects.filter(Q(next_follow_at=None) | Q(next_follow_at__lte=now)).order_by("pk")
    return [pk for pk in due.values_list("pk", flat=True) if _something_to_see(pk)]


def _something_to_see(cluster_id: int) -> bool:
    rows = Decision.objects.filter(cluster_id=cluster_id).order_by()
    return any(rows.filter(part).exists() for part in _FOLLOWED)


def follow(cluster_id: int, *, clock: Clock = DATABASE) -> int:
    """Look at everything that is open in a cluster. Returns how many decisions changed.

    Of several calls at once one does the work: it claims the turn.
    """
    now = clock.now()
    turn = Cluster.objects.filter(Q(next_follow_at=None) | Q(next_follow_at__lte=now), pk=cluster_id)
    if not turn.update(next_follow_at=now + EVERY):
        return 0
    cluster = Cluster.objects.get(pk=cluster_id)
    rows = followed(cluster_id)
    if not rows:
        return 0
    if any(is_in_flight(row, now) for row in rows):
        look_soon(cluster_id, now=now + EVERY_IN_FLIGHT)
    client = connections.client_for(cluster)
    try:
        with connections.contact(cluster_id, clock=clock):
            _note_version(cluster, client, now)
            pods = Pods.of(client.list_pods_brief(_namespaces(rows)))
            changed = Follower(cluster, client, pods, clock).look_at(rows)
    except KubeError as error:
        log.warning("cluster %s cannot be followed: %s", cluster, error)
        return 0
    if changed:
        nudge.carry_out(cluster_id)
    return changed


def look_soon(cluster_id: int, *, now: datetime) -> None:
    """Let the next look at this cluster be due then, if it is not due earlier anyway."""
    Cluster.objects.filter(pk=cluster_id, next_follow_at__gt=now).update(next_follow_at=now)


def is_in_flight(row: Decision, now: datetime) -> bool:
    """Whether something is about to happen to this pod or its replacement; what hangs is looked at less often."""
    since = row.accepted_at
    hangs = since is None or since <= now - timedelta(seconds=row.cluster.settings.replacement_seconds)
    return row.eviction in {Eviction.ACCEPTED, Eviction.EVICTED} and not hangs


def _namespaces(rows: Iterable[Decision]) -> list[str] | None:
    """The namespaces to list; None: all, where a list for each would be more calls than it saves."""
    names = sorted({row.namespace for row in rows if _NAME.fullmatch(row.namespace)})
    return names if len(names) <= MOST_NAMESPACES else None


def _note_version(cluster: Cluster, client: ClusterClient, now: datetime) -> None:
    recently = cluster.contacted_at is not None and cluster.contacted_at > now - VERSION_EVERY
    if not (cluster.server_version and recently):
        connections.record_contact(cluster.pk, now=now, version=client.check())


# --- the pods that were listed ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Pods:
    """The pods of one list, by UID and by owner."""

    by_uid: Mapping[str, PodBrief]
    by_owner: Mapping[str, Sequence[PodBrief]]

    @classmethod
    def of(cls, pods: Iterable[PodBrief]) -> "Pods":
        """Index a list."""
        by_owner: defaultdict[str, list[PodBrief]] = defaultdict(list)
        by_uid = {pod.uid: pod for pod in pods}
        for pod in by_uid.values():
            if pod.owner_uid:
                by_owner[pod.owner_uid].append(pod)
        return cls(by_uid, by_owner)


def candidates(row: Decision, pods: Sequence[PodBrief], taken: frozenset[str]) -> list[PodBrief]:
    """Pods of the same owner that may be this one's replacement, the most likely first. Pure.

    A sibling that was there before the eviction must not pass for it: the pace would go on with one pod missing.
    So the API server's clock says what came afterwards, where it is known, and of several the youngest counts.

    Args:
        taken: UIDs that are other decisions' replacements already.
    """
    since = _replaced_since(row)
    found = [
        pod
        for pod in pods
        if pod.uid not in taken
        and pod.uid != row.pod_uid
        and pod.deletion_timestamp is None
        and (pod.creation_timestamp is None or pod.creation_timestamp >= since)
    ]
    found.sort(key=lambda pod: (str(pod.creation_timestamp), pod.name), reverse=True)
    return sorted(found, key=lambda pod: pod.name != row.pod_name)


def _replaced_since(row: Decision) -> datetime:
    if row.server_accepted_at is not None:
        return row.server_accepted_at
    return (row.accepted_at or row.ended_at or row.created_at) - CLOCKS_DIFFER_BY


def settled_without(row: Decision, owner: OwnerView | None, pods: Sequence[PodBrief]) -> str:
    """Why no replacement is to be waited for; '' where one is. Pure."""
    if not row.owner_uid:
        return "it had no owner that would replace it"
    if owner is None:
        return ""
    if owner.desired is None:
        return owner.reason if "does not exist" in owner.reason else ""
    if owner.uid and owner.uid != row.owner_uid:
        return f"its {owner.kind} was replaced by another one"
    # What has failed stays behind as an object (an evicted pod of a kubelet, say) and serves nobody.
    living = [pod for pod in pods if pod.deletion_timestamp is None and pod.uid != row.pod_uid]
    living = [pod for pod in living if pod.phase != "Failed"]
    # Without the API server's time one of them may be the replacement all the same: then they have to be Ready.
    there = living if row.server_accepted_at else [pod for pod in living if _serves(pod)]
    if len(there) < owner.desired:
        return ""
    return f"{owner.kind} {owner.name} wants no more pods than the {len(living)} that it has"


def _serves(pod: PodBrief) -> bool:
    return pod.ready or pod.phase == "Succeeded"


# --- looking ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Follower:
    """One look at a cluster."""

    cluster: Cluster
    client: ClusterClient
    pods: Pods
    clock: Clock

    def look_at(self, rows: Sequence[Decision]) -> int:
        """Look at each decision; those of one pod end together."""
        changed = 0
        gone: set[str] = set()
        for row in rows:
            if row.pod_uid in gone:
                continue
            if row.eviction == Eviction.EVICTED:
                changed += self._replacement(row)
            elif (pod := self.pods.by_uid.get(row.pod_uid)) is not None:
                changed += self._still_there(row, pod)
            elif why := self._gone(row):
                gone.add(row.pod_uid)
                changed += evictions.pod_is_gone(row.cluster_id, row.pod_uid, why=why, now=self.clock.now())
        return changed

    def _gone(self, row: Decision) -> str:
        """Why the pod counts as gone; '' where it is there after all."""
        if not (_NAME.fullmatch(row.namespace) and _NAME.fullmatch(row.pod_name)):
            return "no pod can have this name"
        view = self.client.read_pod(row.namespace, row.pod_name)
        if view is None:
            return "the pod is gone"
        return "" if view.pod.metadata.uid == row.pod_uid else "the pod was replaced by another of its name"

    # --- still there

    def _still_there(self, row: Decision, pod: PodBrief) -> int:
        now = self.clock.now()
        if row.eviction == Eviction.IN_BACKGROUND:
            return self._in_background(row, pod, now)
        if row.eviction == Eviction.ACCEPTED and self._long_since(row.accepted_at, now):
            why = STILL_TERMINATING if pod.deletion_timestamp else STILL_RUNNING
            return evictions.note_still_there(row, why=why, now=now)
        if row.eviction == Eviction.DELEGATED and self._long_since(row.told_at, now):
            return evictions.note_still_there(row, why=NOT_EVICTED, now=now)
        return 0

    def _in_background(self, row: Decision, pod: PodBrief, now: datetime) -> int:
        if pod.eviction_in_progress:
            return evictions.note_mark(row, now=now)
        if evictions.mark_was_seen(row):
            return evictions.background_ended(row, nobody_started=False, now=now)
        if self._long_since(row.accepted_at, now):
            return evictions.background_ended(row, nobody_started=True, now=now)
        return 0

    def _long_since(self, moment: datetime | None, now: datetime) -> bool:
        still_there = timedelta(seconds=self.cluster.settings.still_there_seconds)
        return moment is not None and moment <= now - still_there

    # --- what came in its place

    def _replacement(self, row: Decision) -> int:
        now = self.clock.now()
        siblings = self.pods.by_owner.get(row.owner_uid, ())
        if found := self._find(row, siblings):
            noted = Replacement(uid=found.uid, name=found.name, node=found.node_name, ready=_serves(found))
            return evictions.note_replacement(row, noted, now=now)
        if why := settled_without(row, self._owner(row), siblings):
            return evictions.settle(row, why=why, now=now)
        ended = row.ended_at or now
        if row.executor == Executor.ASKER and ended <= now - LOOK_AFTER_OTHERS:
            return evictions.settle(row, why="", now=now)
        return 0

    def _find(self, row: Decision, siblings: Sequence[PodBrief]) -> PodBrief | None:
        known = self.pods.by_uid.get(row.replacement_uid)
        if known is not None and known.deletion_timestamp is None:
            return known
        found = candidates(row, siblings, self._taken(row))
        return found[0] if found else None

    def _taken(self, row: Decision) -> frozenset[str]:
        others = Decision.objects.filter(cluster_id=row.cluster_id, owner_uid=row.owner_uid)
        others = others.exclude(pk=row.pk).exclude(replacement_uid="")
        return frozenset(others.values_list("replacement_uid", flat=True))

    def _owner(self, row: Decision) -> OwnerView | None:
        """The owner; None where it may not be read."""
        if not row.owner_uid:
            return None
        try:
            return self.client.read_owner(row.namespace, row.owner_kind, row.owner_name)
        except KubeError as error:
            log.info("%s: its owner cannot be read: %s", row, error)
            return None
