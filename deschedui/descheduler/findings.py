"""What a plan notes beside the nominations: who was filtered out and why, and who could have gone."""

from __future__ import annotations

from collections.abc import Sequence

from .evictor import Objection
from .groundwork import Groundwork, Unit
from .overlay import Overlay
from .plugins import DEFAULT_EVICTOR
from .podfilter import left_out
from .results import FilteredOut, Nomination


class Findings:
    """What a thorough course notes beside the nominations: who was filtered out, and who could have gone."""

    def __init__(self, ground: Groundwork, overlay: Overlay) -> None:
        self._ground = ground
        self._overlay = overlay
        self._filtered: dict[tuple[int, str, int], FilteredOut] = {}
        self._judged: set[tuple[int, int]] = set()
        self.eligible: set[int] = set()

    @property
    def seen(self) -> int:
        """How many pods there are on the cycle's nodes."""
        numbers_on = self._ground.snapshot.numbers_on
        return sum(len(numbers_on.get(node.metadata.name, ())) for node in self._ground.nodes)

    def look_at(self, place: int) -> None:
        """Note what is filtered out of this unit's listing, before it is worked off."""
        unit = self._ground.units[place]
        for number in self._ground.listed(unit):
            if number not in self._overlay.evicted:
                self._look_at_pod(unit, number)
        if self._ground.evictor(unit).changes_with_evictions:
            for wish in self._ground.wishes(place):
                self._judge(unit, wish.number)

    def _look_at_pod(self, unit: Unit, number: int) -> None:
        pod = self._ground.snapshot.pods[number]
        objection = left_out(pod, unit.args)
        if objection is not None:
            self._add(unit, number, (objection,), by=unit.plugin)
        elif (unit.profile.index, number) not in self._judged:
            self._judged.add((unit.profile.index, number))
            self._judge(unit, number)

    def _judge(self, unit: Unit, number: int) -> None:
        if number in self._overlay.evicted:
            return
        evictor, pod = self._ground.evictor(unit), self._ground.snapshot.pods[number]
        objections = evictor.objections(number, self._overlay)
        objections = objections or evictor.before_eviction(number, self._overlay)
        if not objections and not pod.metadata.uid:
            upstream = f"pod {pod.metadata.namespace}/{pod.metadata.name} is missing UID"
            objections = (
                Objection("missingUid", "has no UID, so nobody could say which pod is meant", upstream),
            )
        if objections:
            self._add(unit, number, objections, by=DEFAULT_EVICTOR)
        else:
            self.eligible.add(number)

    def _add(self, unit: Unit, number: int, objections: Sequence[Objection], *, by: str) -> None:
        key = (unit.profile.index, by, number)
        if key not in self._filtered:
            self._filtered[key] = filtered_out(self._ground, unit, number, objections, by=by)

    def filtered(self, nominations: Sequence[Nomination], by_record: list[FilteredOut]) -> list[FilteredOut]:
        """All that was filtered out, without the pods that the same profile nominated after all."""
        nominated = {nomination.key for nomination in nominations}
        pods = self._ground.snapshot.pods
        kept = [
            item
            for (profile, _, number), item in self._filtered.items()
            if (profile, pods[number].metadata.uid) not in nominated
        ]
        return by_record + kept


def filtered_out(
    ground: Groundwork, unit: Unit, number: int, objections: Sequence[Objection], *, by: str
) -> FilteredOut:
    pod, first = ground.snapshot.pods[number], objections[0]
    return FilteredOut(
        uid=pod.metadata.uid,
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        node=pod.spec.node_name,
        profile=unit.profile.name,
        plugin=by,
        check=first.check,
        reason=first.reason,
        upstream=first.upstream,
        more=tuple(objections[1:]),
    )
