"""RemovePodsViolatingNodeTaints: pods on nodes whose taints they do not tolerate.

Rules: the descheduler's semantics, section 5.6.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from deschedui.descheduler.objects import Node, Pod, Taint
from deschedui.descheduler.plugins.node_taints_args import RemovePodsViolatingNodeTaintsArgs
from deschedui.descheduler.taints import NO_SCHEDULE, PREFER_NO_SCHEDULE, show_all, untolerated


def decide(pod: Pod, node: Node, args: RemovePodsViolatingNodeTaintsArgs, _now: datetime) -> str | None:
    """Which taints the pod does not tolerate, as a sentence about it, or None. NoExecute is never looked at."""
    if not node.spec.taints:
        return None
    effects = (NO_SCHEDULE, PREFER_NO_SCHEDULE) if args.include_prefer_no_schedule else (NO_SCHEDULE,)
    relevant = [taint for taint in node.spec.taints if _is_relevant(taint, args)]
    taints = untolerated(pod.spec.tolerations, relevant, effects)
    if not taints:
        return None
    return f"does not tolerate {show_all(taints)} of node {node.metadata.name}"


def _is_relevant(taint: Taint, args: RemovePodsViolatingNodeTaintsArgs) -> bool:
    """``included_taints`` None includes all, an empty list none."""
    if _listed(taint, args.excluded_taints):
        return False
    return args.included_taints is None or _listed(taint, args.included_taints)


def _listed(taint: Taint, names: Collection[str]) -> bool:
    return taint.key in names or (bool(taint.value) and f"{taint.key}={taint.value}" in names)
