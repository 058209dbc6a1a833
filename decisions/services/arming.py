"""Whether a cluster is armed, held until the end of a transaction: nothing is recorded behind a disarming's back."""

from decisions.models import Cluster


def hold(cluster_id: int) -> bool:
    """Within a transaction: whether the cluster is armed. Disarming waits for the transaction's end.

    Only the cluster's own columns are locked, not rows that refer to it.
    """
    rows = Cluster.objects.select_for_update(no_key=True).order_by()
    return bool(rows.values_list("armed", flat=True).get(pk=cluster_id))
