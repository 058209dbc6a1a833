"""What a transaction holds until its end, so that what it has read stays so and nobody waits for another in a circle.

SQLite has one writer at a time: there, whoever writes holds everything.
"""

from django.db import connection
from django.db.models import Q, Subquery

from decisions.models import Cluster, Decision


def armed(cluster_id: int) -> bool:
    """Whether the cluster is armed; disarming it waits for the transaction's end.

    Only the cluster's own columns are locked, not rows that refer to it.
    """
    rows = Cluster.objects.select_for_update(no_key=True).order_by()
    return bool(rows.values_list("armed", flat=True).get(pk=cluster_id))


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
