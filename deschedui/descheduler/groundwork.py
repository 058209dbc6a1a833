"""What a cycle's plans have in common: which plugin looks at which nodes, and all that no eviction changes.

Planning goes in units. A unit is one listing of pods by one plugin of one profile: all nodes at once, or
one node. Its wishes are the pods that the plugin wants and that the filters let through; those filters that
depend on the evictions assumed before are applied when the unit's turn comes (:meth:`Groundwork.listing`),
everything else here, once.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Final, NamedTuple

from .evictor import DefaultEvictor
from .nodeset import is_ready
from .objects import Node
from .overlay import Overlay
from .plugins import EXTERNAL_DECISION, ExtensionPoint
from .plugins.default_evictor_args import SYSTEM_CRITICAL_PRIORITY
from .podfilter import left_out
from .policy.model import Policy, Profile
from .snapshot import Snapshot
from .strategies import STRATEGIES, Strategy

LEAST_NODES: Final = 2
"""With fewer there is nowhere to go, and a cycle does nothing."""


class Wish(NamedTuple):
    """A pod, by number, that a plugin wants to evict, and why."""

    number: int
    reason: str


@dataclass(frozen=True, slots=True)
class Unit:
    """One listing of pods. ``args`` is Any: each plugin has its own type."""

    profile: Profile
    plugin: str
    strategy: Strategy
    args: Any
    nodes: tuple[Node, ...]


class Groundwork:
    """A policy, a snapshot and a moment, with what follows from them alone."""

    def __init__(self, policy: Policy, snapshot: Snapshot, now: datetime) -> None:
        self.policy = policy
        self.snapshot = snapshot
        self.now = now
        self._wishes: dict[int, tuple[Wish, ...]] = {}
        self._numbers: dict[int, frozenset[int]] = {}
        self._steady: dict[int, Sequence[tuple[Wish, str, bool]]] = {}

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes of the cycle: ready, and selected by the policy (semantics, section 2.2)."""
        selector = self.policy.node_selector
        return tuple(
            node
            for node in self.snapshot.nodes
            if is_ready(node) and (selector is None or selector.matches(node.metadata.labels))
        )

    @property
    def skipped(self) -> str:
        """Why the cycle does nothing, or ''."""
        if len(self.nodes) >= LEAST_NODES:
            return ""
        return (
            f"needs at least {LEAST_NODES} ready nodes that the policy selects, and found {len(self.nodes)}"
        )

    @cached_property
    def units(self) -> tuple[Unit, ...]:
        """Every listing of the cycle, in order: profiles, their plugins, nodes by name."""
        return () if self.skipped else tuple(self._units())

    @cached_property
    def evictors(self) -> tuple[DefaultEvictor, ...]:
        """The evictor of each profile."""
        return tuple(
            DefaultEvictor(self.snapshot, profile.evictor, _threshold(profile), self.now)
            for profile in self.policy.profiles
        )

    def evictor(self, unit: Unit) -> DefaultEvictor:
        """The evictor that judges this unit's pods."""
        return self.evictors[unit.profile.index]

    def listed(self, unit: Unit) -> Iterator[int]:
        """The numbers of the pods that the unit looks at, node by node."""
        found = self.snapshot.numbers_on if unit.strategy.finished_too else self.snapshot.active_on
        for node in unit.nodes:
            yield from found.get(node.metadata.name, ())

    def wishes(self, place: int) -> tuple[Wish, ...]:
        """What the unit at this place wants, before evictions are thought of, in the order it would evict."""
        found = self._wishes.get(place)
        if found is None:
            found = self._wishes[place] = tuple(self._wanted(self.units[place]))
        return found

    def numbers(self, place: int) -> frozenset[int]:
        """The pods of :meth:`wishes`."""
        found = self._numbers.get(place)
        if found is None:
            found = self._numbers[place] = frozenset(wish.number for wish in self.wishes(place))
        return found

    def listing(self, place: int, overlay: Overlay) -> Sequence[Wish]:
        """What the unit wants once these evictions have happened."""
        wishes = self.wishes(place)
        evictor = self.evictor(self.units[place])
        if not wishes or not evictor.changes_with_evictions:
            return wishes
        lost = overlay.lost
        return [
            wish
            for wish, owner, steady in self._steadiness(place, evictor)
            if (steady and not lost.get(owner)) or _passes(evictor, wish.number, overlay)
        ]

    def _steadiness(self, place: int, evictor: DefaultEvictor) -> Sequence[tuple[Wish, str, bool]]:
        """With each wish: whose losses matter to it, and whether it passes for certain while there are none."""
        found = self._steady.get(place)
        if found is None:
            nowhere = Overlay(self.snapshot)
            found = self._steady[place] = [
                (wish, evictor.counted_owner(wish.number), evictor.never_minds(wish.number))
                for wish in self.wishes(place)
                if not evictor.changing(wish.number, nowhere)  # replicas only ever get fewer
            ]
        return found

    def asks(self, unit: Unit, number: int) -> bool:
        """Whether the extenders of the profile are asked about this unit's nomination of the pod."""
        index = unit.profile.index
        if index not in self._asking:
            return False
        return unit.plugin == EXTERNAL_DECISION or number in self._gated[index]

    @cached_property
    def _asking(self) -> frozenset[int]:
        """The profiles that have extenders to ask."""
        return frozenset(
            profile.index
            for profile in self.policy.profiles
            if profile.external_decision is not None and profile.external_decision.asked
        )

    @cached_property
    def _gated(self) -> tuple[Container[int], ...]:
        """By profile, the pods for which it has a gate. The others wait for a human."""
        return tuple(self._gate_of(profile) for profile in self.policy.profiles)

    def _gate_of(self, profile: Profile) -> Container[int]:
        """A gate is asked about the pods of its own pod filter."""
        args = profile.external_decision
        if args is None or not _is_gate(profile):
            return ()
        everybody = range(len(self.snapshot.pods))
        if args.namespaces is None and args.label_selector is None:
            return everybody
        return frozenset(number for number in everybody if left_out(self.snapshot.pods[number], args) is None)

    def _units(self) -> Iterator[Unit]:
        for profile in self.policy.profiles:
            for plugin in profile.enabled(ExtensionPoint.DESCHEDULE):
                strategy, args = STRATEGIES[plugin], profile.args[plugin]
                if strategy.all_at_once:
                    yield Unit(profile, plugin, strategy, args, self.nodes)
                else:
                    yield from (Unit(profile, plugin, strategy, args, (node,)) for node in self.nodes)

    def _wanted(self, unit: Unit) -> list[Wish]:
        wanted = list(self._eligible_wishes(unit))
        if (sort_key := unit.strategy.sort_key) is not None:
            pods = self.snapshot.pods
            wanted.sort(key=lambda wish: sort_key(pods[wish.number]))
        return wanted

    def _eligible_wishes(self, unit: Unit) -> Iterator[Wish]:
        evictor, pods, args = self.evictor(unit), self.snapshot.pods, unit.args
        nowhere = Overlay(self.snapshot)
        for number in self.listed(unit):
            pod = pods[number]
            node = self.snapshot.node(pod.spec.node_name)
            if node is None or not pod.metadata.uid or left_out(pod, args) is not None:
                continue
            reason = unit.strategy.decide(pod, node, args, self.now)
            if reason is None or any(evictor.fixed(number)):
                continue
            if evictor.changes_with_evictions or not evictor.before_eviction(number, nowhere):
                yield Wish(number, reason)


def _passes(evictor: DefaultEvictor, number: int, overlay: Overlay) -> bool:
    if number in overlay.evicted or evictor.changing(number, overlay):
        return False
    return not evictor.before_eviction(number, overlay)


def _is_gate(profile: Profile) -> bool:
    return EXTERNAL_DECISION in profile.filter or EXTERNAL_DECISION in profile.preevictionfilter


def _threshold(profile: Profile) -> int:
    """The threshold of a bound profile. One that was never bound protects what the lowest could: everything."""
    if profile.priority_threshold is not None:
        return profile.priority_threshold
    threshold = profile.evictor.priority_threshold
    if threshold is None:
        return SYSTEM_CRITICAL_PRIORITY
    return threshold.value if threshold.value is not None else -(2**31)
