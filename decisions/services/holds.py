"""What a transaction holds until its end, so that what it has read stays so and nobody waits for another in a circle.

SQLite has one writer at a time: there, whoever writes holds everything.
"""

from django.db import connection
from django.db.models import Q, Subquery

from decisions.models import Cluster, Decision
from decisions.queries import installation


def cluster(cluster_id: int) -> Cluster:
    """The cluster; arming, disarming and freezing it by itself wait for the transaction's end.

    Only the cluster's own columns are locked, not rows that refer to it.
    """
    return Cluster.objects.select_for_update(no_key=True).get(pk=cluster_id)


def closed(cluster_id: int) -> str:
    """Why nothing becomes allowed in this cluster until the transaction's end; empty where it may."""
    held = cluster(cluster_id)
    if not held.armed:
        return f"Cluster {held} only observes: nothing is evicted until it is armed."
    return installation.closed_sentence(held)


def pod_of(decision_id: int) -> None:
    """Hold everything that is open for the pod of this decision, whoever asked.

    Who changes one of a pod's decisions often changes the others too: the one that waited for it is queued, all end
    when the pod is gone. Locked together and in one order, before anything is read.
    """
    this = Decision.objects.filter(pk=decision_id)
    _hold(Q(cluster_id=Subquery(this.values("cluster_id")), pod_uid=Subquery(this.values("pod_uid"))))


def pod(cluster_id: int, pod_uid: str) -> None:
    """The same, by the pod."""
    _hold(Q(cluster_id=cluster_id, pod_uid=pod_uid))


def _hold(which: Q) -> None:
    if connection.features.has_select_for_update:
        rows = Decision.objects.filter(which, open=True).order_by("pk").select_for_update(no_key=True)
        list(rows.values_list("pk"))
