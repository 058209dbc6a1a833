"""Arguments of the plugins that are still to come: they are read and judged, and not run.

So a policy that names one of them is told at once everything that is wrong with it.
"""

from collections.abc import Iterator, Mapping

from msgspec import field

from deschedui.descheduler.plugins.arg_types import (
    Args,
    ArgsProblem,
    Int,
    Int32,
    Namespaces,
    Percentage,
    Uint,
    namespace_problems,
    selector_problems,
    unknown_words,
)
from deschedui.descheduler.selectors import LabelSelector

Thresholds = Mapping[str, Percentage]
"""Resource name to percentage, 0 to 100."""


class EvictionLimits(Args, frozen=True):
    """How many pods may leave one node in one run of the plugin."""

    node: Uint | None = None


class PrometheusQuery(Args, frozen=True):
    """Where usage is read from Prometheus."""

    query: str = ""


class MetricsUtilization(Args, frozen=True):
    """Where usage comes from, instead of from requests."""

    metrics_server: bool = False
    source: str = ""
    prometheus: PrometheusQuery | None = None


class LowNodeUtilizationArgs(Args, frozen=True):
    """Arguments of LowNodeUtilization."""

    use_deviation_thresholds: bool = False
    thresholds: Thresholds = {}
    target_thresholds: Thresholds = {}
    number_of_nodes: Int = 0
    metrics_utilization: MetricsUtilization | None = None
    evictable_namespaces: Namespaces | None = None
    eviction_limits: EvictionLimits | None = None


class HighNodeUtilizationArgs(Args, frozen=True):
    """Arguments of HighNodeUtilization."""

    thresholds: Thresholds = {}
    number_of_nodes: Int = 0
    eviction_modes: tuple[str, ...] = ()
    evictable_namespaces: Namespaces | None = None


class RemoveDuplicatesArgs(Args, frozen=True):
    """Arguments of RemoveDuplicates."""

    namespaces: Namespaces | None = None
    exclude_owner_kinds: tuple[str, ...] = ()


class RemoveFailedPodsArgs(Args, frozen=True):
    """Arguments of RemoveFailedPods."""

    namespaces: Namespaces | None = None
    label_selector: LabelSelector | None = None
    exclude_owner_kinds: tuple[str, ...] = ()
    min_pod_lifetime_seconds: Uint | None = None
    reasons: tuple[str, ...] = ()
    exit_codes: tuple[Int32, ...] = ()
    including_init_containers: bool = False


class RemovePodsHavingTooManyRestartsArgs(Args, frozen=True):
    """Arguments of RemovePodsHavingTooManyRestarts."""

    namespaces: Namespaces | None = None
    label_selector: LabelSelector | None = None
    pod_restart_threshold: Int32 = 0
    including_init_containers: bool = False
    states: tuple[str, ...] = ()


class RemovePodsViolatingInterPodAntiAffinityArgs(Args, frozen=True):
    """Arguments of RemovePodsViolatingInterPodAntiAffinity."""

    namespaces: Namespaces | None = None
    label_selector: LabelSelector | None = None


class RemovePodsViolatingNodeAffinityArgs(Args, frozen=True):
    """Arguments of RemovePodsViolatingNodeAffinity."""

    namespaces: Namespaces | None = None
    label_selector: LabelSelector | None = None
    node_affinity_type: tuple[str, ...] = ()


class RemovePodsViolatingTopologySpreadConstraintArgs(Args, frozen=True):
    """Arguments of RemovePodsViolatingTopologySpreadConstraint."""

    namespaces: Namespaces | None = None
    label_selector: LabelSelector | None = None
    constraints: tuple[str, ...] = ()
    topology_balance_node_fit: bool | None = field(default=None)


def low_node_problems(args: LowNodeUtilizationArgs) -> Iterator[ArgsProblem]:
    """The first thing wrong: upstream stops there for this plugin."""
    yield from _first(_low_node_problems(args))


def low_node_constructor_problems(args: LowNodeUtilizationArgs) -> Iterator[ArgsProblem]:
    """What upstream finds only when it builds the plugin with Prometheus as its source."""
    if not args.metrics_utilization or args.metrics_utilization.source != "Prometheus":
        return
    for key, given in (("thresholds", args.thresholds), ("targetThresholds", args.target_thresholds)):
        if set(given) != {"MetricResource"}:
            text = (
                f'{key} are expected to specify a single instance of "MetricResource" resource, '
                f"got [{' '.join(sorted(given))}] instead"
            )
            yield ArgsProblem(key, text)


def high_node_problems(args: HighNodeUtilizationArgs) -> Iterator[ArgsProblem]:
    """The first thing wrong: upstream stops there for this plugin."""
    yield from _first(_high_node_problems(args))


def duplicates_problems(args: RemoveDuplicatesArgs) -> Iterator[ArgsProblem]:
    """Everything wrong, in upstream's order and words."""
    yield from namespace_problems(args.namespaces)


def common_problems(
    args: RemoveFailedPodsArgs | RemovePodsViolatingInterPodAntiAffinityArgs,
) -> Iterator[ArgsProblem]:
    """Everything wrong with the plugins that only select pods by namespace and label."""
    yield from namespace_problems(args.namespaces)
    yield from selector_problems(args.label_selector)


def restarts_problems(args: RemovePodsHavingTooManyRestartsArgs) -> Iterator[ArgsProblem]:
    """Everything wrong, in upstream's order and words."""
    yield from namespace_problems(args.namespaces)
    yield from selector_problems(args.label_selector)
    if args.pod_restart_threshold < 1:
        yield ArgsProblem("podRestartThreshold", "invalid PodsHavingTooManyRestarts threshold")
    if unknown_words(args.states, ("CrashLoopBackOff", "Running")):
        yield ArgsProblem("states", "states must be one of [CrashLoopBackOff Running]")


def node_affinity_problems(args: RemovePodsViolatingNodeAffinityArgs) -> Iterator[ArgsProblem]:
    """Everything wrong, in upstream's order and words."""
    if not args.node_affinity_type:
        yield ArgsProblem("nodeAffinityType", "nodeAffinityType needs to be set")
    yield from namespace_problems(args.namespaces)
    yield from selector_problems(args.label_selector)


def topology_spread_problems(args: RemovePodsViolatingTopologySpreadConstraintArgs) -> Iterator[ArgsProblem]:
    """Everything wrong, in upstream's order and words."""
    yield from namespace_problems(args.namespaces)
    yield from selector_problems(args.label_selector)
    for word in unknown_words(args.constraints, ("DoNotSchedule", "ScheduleAnyway")):
        text = f"constraint {word} is not one of map[DoNotSchedule:{{}} ScheduleAnyway:{{}}]"
        yield ArgsProblem("constraints", text)


def _first(problems: Iterator[ArgsProblem]) -> Iterator[ArgsProblem]:
    yield from (problem for problem in [next(problems, None)] if problem)


def _low_node_problems(args: LowNodeUtilizationArgs) -> Iterator[ArgsProblem]:
    yield from _inclusion_problems(args.evictable_namespaces)
    yield from _threshold_problems("thresholds", args.thresholds, "thresholds config is not valid: ")
    prefix = "targetThresholds config is not valid: "
    yield from _threshold_problems("targetThresholds", args.target_thresholds, prefix)
    yield from _target_problems(args)
    if args.metrics_utilization:
        yield from _metrics_problems(args.metrics_utilization)


def _high_node_problems(args: HighNodeUtilizationArgs) -> Iterator[ArgsProblem]:
    yield from _inclusion_problems(args.evictable_namespaces)
    yield from _threshold_problems("thresholds", args.thresholds, "")
    for word in unknown_words(args.eviction_modes, ("OnlyThresholdingResources",)):
        yield ArgsProblem("evictionModes", f"invalid eviction mode {word}")


def _inclusion_problems(namespaces: Namespaces | None) -> Iterator[ArgsProblem]:
    if namespaces and namespaces.include:
        text = "only Exclude namespaces can be set, inclusion is not supported"
        yield ArgsProblem("evictableNamespaces.include", text)


def _threshold_problems(key: str, thresholds: Thresholds, prefix: str) -> Iterator[ArgsProblem]:
    if not thresholds:
        yield ArgsProblem(key, f"{prefix}no resource threshold is configured")
    for resource, percentage in sorted(thresholds.items()):
        if not 0 <= percentage <= 100:
            yield ArgsProblem(f"{key}.{resource}", f"{prefix}{resource} threshold not in [0, 100] range")


def _target_problems(args: LowNodeUtilizationArgs) -> Iterator[ArgsProblem]:
    low, high = args.thresholds, args.target_thresholds
    if low.keys() != high.keys():
        text = "thresholds and targetThresholds configured different resources"
        yield ArgsProblem("targetThresholds", text)
        return
    for resource in sorted(low):
        if not args.use_deviation_thresholds and low[resource] > high[resource]:
            text = f"thresholds' {resource} percentage is greater than targetThresholds'"
            yield ArgsProblem(f"thresholds.{resource}", text)


def _metrics_problems(metrics: MetricsUtilization) -> Iterator[ArgsProblem]:
    source = metrics.source
    if source == "KubernetesMetrics" and metrics.metrics_server:
        text = f'it is not allowed to set both "{source}" source and metricsServer'
        yield ArgsProblem("metricsUtilization.metricsServer", text)
    if source == "KubernetesMetrics" and metrics.prometheus:
        text = f'prometheus configuration is not allowed to set when source is set to "{source}"'
        yield ArgsProblem("metricsUtilization.prometheus", text)
    if source == "Prometheus" and not (metrics.prometheus and metrics.prometheus.query):
        text = f'prometheus query is required when metrics source is set to "{source}"'
        yield ArgsProblem("metricsUtilization.prometheus.query", text)
