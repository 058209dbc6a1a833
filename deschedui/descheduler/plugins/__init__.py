"""The one table of plugins: where each may stand, what its arguments are, and whether it runs here yet."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from deschedui.descheduler.plugins import (
    default_evictor_args,
    external_decision_args,
    later_args,
    node_taints_args,
    pod_life_time_args,
)
from deschedui.descheduler.plugins.arg_types import Args, ArgsProblem


class ExtensionPoint(StrEnum):
    """Where a plugin may stand in a profile, spelled as the policy file spells it."""

    DESCHEDULE = "deschedule"
    BALANCE = "balance"
    FILTER = "filter"
    PRE_EVICTION_FILTER = "preevictionfilter"


Check = Callable[[Any], Iterable[ArgsProblem]]
"""A function of a plugin's own args type. Any: the table holds checks of all types side by side."""


def _nothing(_args: Args) -> Iterable[ArgsProblem]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginSpec:
    """One plugin. ``problems`` validates its arguments; ``constructor_problems`` come up when it is built."""

    name: str
    points: frozenset[ExtensionPoint]
    args: type[Args]
    problems: Check
    constructor_problems: Check = _nothing
    warnings: Check = _nothing
    supported: bool = False
    upstream: bool = True
    """Whether the descheduler itself has it; it refuses a policy that configures one it has not."""


DEFAULT_EVICTOR: Final = "DefaultEvictor"
EXTERNAL_DECISION: Final = "ExternalDecision"

_DESCHEDULE: Final = frozenset({ExtensionPoint.DESCHEDULE})
_BALANCE: Final = frozenset({ExtensionPoint.BALANCE})
_GATES: Final = frozenset({ExtensionPoint.FILTER, ExtensionPoint.PRE_EVICTION_FILTER})

PLUGINS: Final[Mapping[str, PluginSpec]] = {
    spec.name: spec
    for spec in (
        PluginSpec(
            name=DEFAULT_EVICTOR,
            points=_GATES,
            args=default_evictor_args.DefaultEvictorArgs,
            problems=default_evictor_args.problems,
            constructor_problems=default_evictor_args.constructor_problems,
            warnings=default_evictor_args.warnings,
            supported=True,
        ),
        PluginSpec(
            name="PodLifeTime",
            points=_DESCHEDULE,
            args=pod_life_time_args.PodLifeTimeArgs,
            problems=pod_life_time_args.problems,
            supported=True,
        ),
        PluginSpec(
            name="RemovePodsViolatingNodeTaints",
            points=_DESCHEDULE,
            args=node_taints_args.RemovePodsViolatingNodeTaintsArgs,
            problems=node_taints_args.problems,
            warnings=node_taints_args.warnings,
            supported=True,
        ),
        PluginSpec(
            name=EXTERNAL_DECISION,
            points=_DESCHEDULE | _GATES,
            args=external_decision_args.ExternalDecisionArgs,
            problems=external_decision_args.problems,
            warnings=external_decision_args.warnings,
            supported=True,
            upstream=False,
        ),
        PluginSpec(
            name="RemoveFailedPods",
            points=_DESCHEDULE,
            args=later_args.RemoveFailedPodsArgs,
            problems=later_args.common_problems,
        ),
        PluginSpec(
            name="RemovePodsHavingTooManyRestarts",
            points=_DESCHEDULE,
            args=later_args.RemovePodsHavingTooManyRestartsArgs,
            problems=later_args.restarts_problems,
        ),
        PluginSpec(
            name="RemovePodsViolatingInterPodAntiAffinity",
            points=_DESCHEDULE,
            args=later_args.RemovePodsViolatingInterPodAntiAffinityArgs,
            problems=later_args.common_problems,
        ),
        PluginSpec(
            name="RemovePodsViolatingNodeAffinity",
            points=_DESCHEDULE,
            args=later_args.RemovePodsViolatingNodeAffinityArgs,
            problems=later_args.node_affinity_problems,
        ),
        PluginSpec(
            name="HighNodeUtilization",
            points=_BALANCE,
            args=later_args.HighNodeUtilizationArgs,
            problems=later_args.high_node_problems,
        ),
        PluginSpec(
            name="LowNodeUtilization",
            points=_BALANCE,
            args=later_args.LowNodeUtilizationArgs,
            problems=later_args.low_node_problems,
            constructor_problems=later_args.low_node_constructor_problems,
        ),
        PluginSpec(
            name="RemoveDuplicates",
            points=_BALANCE,
            args=later_args.RemoveDuplicatesArgs,
            problems=later_args.duplicates_problems,
        ),
        PluginSpec(
            name="RemovePodsViolatingTopologySpreadConstraint",
            points=_BALANCE,
            args=later_args.RemovePodsViolatingTopologySpreadConstraintArgs,
            problems=later_args.topology_spread_problems,
        ),
    )
}
SUPPORTED: Final = frozenset(name for name, spec in PLUGINS.items() if spec.supported)
"""Names of the plugins that run here."""
