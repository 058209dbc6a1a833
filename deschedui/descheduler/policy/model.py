"""A policy as the engine uses it: read, validated, with its defaults filled in, frozen."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Self, cast

from deschedui.descheduler.plugins import DEFAULT_EVICTOR, EXTERNAL_DECISION, ExtensionPoint
from deschedui.descheduler.plugins.arg_types import Args
from deschedui.descheduler.plugins.default_evictor_args import DefaultEvictorArgs
from deschedui.descheduler.plugins.external_decision_args import ExternalDecisionArgs
from deschedui.descheduler.policy.priority import PriorityClasses, resolve_threshold
from deschedui.descheduler.selectors import StringSelector


@dataclass(frozen=True, slots=True)
class Limits:
    """How many distinct pods one cycle may nominate; None is no limit, 0 lets nothing through."""

    total: int | None = None
    per_node: int | None = None
    per_namespace: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One profile. Extension points list enabled plugins in order; DefaultEvictor is always a filter."""

    name: str
    index: int
    deschedule: tuple[str, ...] = ()
    balance: tuple[str, ...] = ()
    filter: tuple[str, ...] = (DEFAULT_EVICTOR,)
    preevictionfilter: tuple[str, ...] = (DEFAULT_EVICTOR,)
    args: Mapping[str, Args] = field(default_factory=lambda: MappingProxyType({}))
    """Arguments by plugin name; of several entries with one name the first, as upstream does it."""
    priority_threshold: int | None = None
    """Pods of this priority and above are protected. None until ``bind`` has resolved a class's name."""

    def enabled(self, point: ExtensionPoint) -> tuple[str, ...]:
        """The plugins that are enabled at an extension point, in the policy's order."""
        return cast("tuple[str, ...]", getattr(self, point.value))

    @property
    def evictor(self) -> DefaultEvictorArgs:
        """DefaultEvictor's arguments; they are there even where the policy names none."""
        args = self.args.get(DEFAULT_EVICTOR)
        return args if isinstance(args, DefaultEvictorArgs) else DefaultEvictorArgs()

    @property
    def external_decision(self) -> ExternalDecisionArgs | None:
        """ExternalDecision's arguments if this profile enables it, else None: then a human alone is asked."""
        args = self.args.get(EXTERNAL_DECISION)
        return args if isinstance(args, ExternalDecisionArgs) else None

    def bind(self, priority_classes: PriorityClasses) -> Self:
        """The same with its threshold as a number. Raises PriorityError where the class cannot be used."""
        return replace(self, priority_threshold=resolve_threshold(self.evictor, priority_classes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A whole policy. ``node_selector`` None and one without requirements both select every node."""

    profiles: tuple[Profile, ...] = ()
    node_selector: StringSelector | None = None
    limits: Limits = Limits()
    grace_period_seconds: int | None = None
    eviction_failure_event_notification: bool = False

    def bind(self, priority_classes: PriorityClasses) -> Self:
        """The same with every priority threshold resolved: PriorityClass name to value.

        Raises PriorityError, whose text is upstream's, for the first profile that cannot be resolved.
        """
        return replace(self, profiles=tuple(profile.bind(priority_classes) for profile in self.profiles))
