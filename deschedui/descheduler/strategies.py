"""The plugins that nominate, in one table: what each lists, in which order, and how it decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from .objects import Node, Pod
from .plugins import external_decision, node_taints, pod_life_time

Decide = Callable[[Pod, Node, Any, datetime], str | None]
"""``decide(pod, node, args, now)``: the reason to nominate, or None. Any: each has its own args type."""

_NO_TIME: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Strategy:
    """One plugin that nominates.

    It lists node by node and works off each node's pods before it lists the next, or, with ``all_at_once``,
    lists all nodes first and takes the pods in the order of ``sort_key``.
    """

    decide: Decide
    finished_too: bool = False
    """Whether pods that have finished are listed."""
    all_at_once: bool = False
    sort_key: Callable[[Pod], Any] | None = None


def by_age(pod: Pod) -> datetime:
    """Oldest first, in whole seconds; a pod without a creation time is the oldest."""
    created = pod.metadata.creation_timestamp
    return _NO_TIME if created is None else created.replace(microsecond=0)


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "PodLifeTime": Strategy(pod_life_time.decide, finished_too=True, all_at_once=True, sort_key=by_age),
    "RemovePodsViolatingNodeTaints": Strategy(node_taints.decide),
    "ExternalDecision": Strategy(external_decision.decide),
}
