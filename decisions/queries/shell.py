"""What stands on every page: how many decisions wait, and what is wrong with a freeze, a worker or a cluster."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from decisions.models import Cluster, Freeze, Permission, Verdict
from decisions.models.enums import Stop
from decisions.queries import installation, workers
from decisions.queries.access import Access
from decisions.queries.sentences import plural


@dataclass(frozen=True)
class Bar:
    """A bar across every page: what, since when and what follows (``text``, ``since``, ``so``), why, what to do."""

    key: str
    icon: str
    tone: str
    text: str
    why: str
    todo: str
    since: datetime | None = None
    link: str = ""
    so: str = ""


@dataclass(frozen=True)
class Shell:
    """The frame of a page for one person."""

    pending: int
    bars: tuple[Bar, ...]
    clusters: tuple[Cluster, ...]
    cluster: Cluster | None

    @property
    def token(self) -> str:
        """Changes when the frame has to be drawn anew."""
        said = repr([self.pending, [(bar.key, bar.text, bar.why, bar.since) for bar in self.bars]])
        return hashlib.sha256(said.encode()).hexdigest()[:10]


def shell(access: Access, cluster_name: str, now: datetime) -> Shell:
    """The frame; ``cluster_name`` (of the address) narrows it to one cluster, where that one is visible."""
    clusters = tuple(access.clusters())
    chosen = next((cluster for cluster in clusters if cluster.name == cluster_name), None)
    return Shell(
        pending=pending_count(access, chosen, now),
        bars=(
            *_freezes(clusters),
            *_stops(clusters, now),
            *_worker(now),
            *_clusters(clusters),
            *_leases(clusters),
        ),
        clusters=clusters,
        cluster=chosen,
    )


def pending_count(access: Access, cluster: Cluster | None, now: datetime) -> int:
    """How many decisions wait for a human, of those that this person sees."""
    waiting = access.decisions(Permission.VIEW).filter(verdict=Verdict.PENDING, expires_at__gt=now)
    return (waiting.filter(cluster=cluster) if cluster else waiting).count()


def _freezes(clusters: Sequence[Cluster]) -> list[Bar]:
    holding = Freeze.objects.filter(
        Q(cluster__in=[cluster.pk for cluster in clusters]) | Q(cluster=None), lifted_at=None
    ).select_related("cluster")
    return [_freeze_bar(freeze) for freeze in holding]


def _freeze_bar(freeze: Freeze) -> Bar:
    what = f"Cluster {freeze.cluster.name} is" if freeze.cluster else "All clusters are"
    told = []
    if freeze.calls_in_flight:
        told.append(f"{plural(freeze.calls_in_flight, 'call')} already in flight")
    if freeze.callers_told:
        told.append(f"{plural(freeze.callers_told, 'caller')} had heard a yes")
    late = f" When it was set: {', '.join(told)}." if told else ""
    return Bar(
        key=f"freeze-{freeze.pk}",
        icon="pause-circle",
        tone="freeze",
        text=f"{what} frozen by {freeze.set_by}",
        so=": no eviction leaves",
        why=f"{freeze.reason.rstrip('.')}.{late}",
        todo="An admin lifts it under Settings.",
        since=freeze.set_at,
        link="settings#freeze",
    )


_WHAT_TO_DO = {
    Stop.FOREIGN: "Find out which installation is the right one and end the other; if it is this one, an admin says so "
    "under Settings.",
    Stop.AHEAD: "If nobody runs on a newer database, an admin confirms this installation under Settings; cycles then "
    "nominate afresh.",
    Stop.MISSING: "If no other installation works on this cluster, an admin confirms this one under Settings.",
}


def _stops(clusters: Sequence[Cluster], now: datetime) -> list[Bar]:
    return [_stop_bar(cluster, now) for cluster in clusters if cluster.stopped]


def _stop_bar(cluster: Cluster, now: datetime) -> Bar:
    confirmed = installation.is_confirmed(cluster, now)
    withdrawn = plural(cluster.stopped_withdrawn, "open decision")
    was = "was" if cluster.stopped_withdrawn == 1 else "were"
    lost = " What was decided since is not in this database." if cluster.stopped == Stop.AHEAD else ""
    given = f" {cluster.confirmed_by} has confirmed this installation." if confirmed else ""
    waits = (
        "A worker takes the Lease over in a moment, at the latest when calls under way have ended (2 min)."
    )
    return Bar(
        key=f"stopped-{cluster.pk}",
        icon="pause-circle",
        tone="freeze",
        text=f"Cluster {cluster.name} has frozen itself",
        so=": no eviction leaves, callers hear no, no cycle starts",
        why=f"{cluster.stopped_why.rstrip('.')}. {withdrawn} {was} withdrawn.{lost}{given}",
        todo=waits if confirmed else _WHAT_TO_DO[Stop(cluster.stopped)],
        since=cluster.stopped_at,
        link=f"settings#cluster-{cluster.name}",
    )


def _leases(clusters: Sequence[Cluster]) -> list[Bar]:
    """A Lease that cannot be written, where the connection itself is whole."""
    return [
        Bar(
            key=f"lease-{cluster.pk}",
            icon="key",
            tone="broken",
            text=f"The Lease of cluster {cluster.name} cannot be kept",
            so=": nothing is carried out, and callers hear no",
            why=f"{cluster.lease_problem.rstrip('.')}.",
            todo=f"The worker needs the namespace {cluster.settings.lease_namespace} there, and get, create and update "
            "on its Lease “deschedui” (deploy/base/rbac.yaml); it is tried again by itself.",
            since=cluster.lease_problem_since,
            link=f"settings#cluster-{cluster.name}",
        )
        for cluster in clusters
        if cluster.lease_problem and not cluster.problem
    ]


def _worker(now: datetime) -> list[Bar]:
    last = workers.latest()
    if last is not None and not workers.is_away(last, now):
        return []
    todo = "Start or restart the worker (and beat); what was decided meanwhile is kept and goes on then."
    if last is None:
        why = "No worker has ever reported."
        return [
            Bar("worker", "bolt-slash", "broken", "No worker is running: nothing is carried out", why, todo)
        ]
    text, why = "No worker heartbeat", f"{last.name} no longer reports."
    so = ": nothing is carried out"
    return [Bar("worker", "bolt-slash", "broken", text, why, todo, since=last.seen_at, so=so)]


def _clusters(clusters: Sequence[Cluster]) -> list[Bar]:
    return [
        Bar(
            key=f"cluster-{cluster.pk}",
            icon="signal-slash",
            tone="broken",
            text=f"The connection to cluster {cluster.name} is broken",
            why=f"{cluster.problem.rstrip('.')}.",
            todo="Check its address and credentials under Settings; it is tried again by itself.",
            since=cluster.problem_since,
            link=f"settings#cluster-{cluster.name}",
        )
        for cluster in clusters
        if cluster.problem
    ]
