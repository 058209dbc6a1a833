"""One way through a plan, that can be resumed in its middle.

A course walks through the units' wishes in order and notes for each what becomes of it: nominated, refused,
held back by a limit. When an answer turns out another way than was assumed, it goes back to that place
(notes are undone from the end, evictions taken back) and walks on from there. What lies before is never
done twice.

Two ways of walking. *Thorough*: to the end, with every pod that was filtered out; that makes a
:class:`Plan`. *Brief*: as far as there can still be a question, plus the candidates that would come next;
that is what rounds need.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from .evictor import Objection
from .findings import Findings, filtered_out
from .groundwork import Groundwork, Wish
from .limits import TOTAL, LimitKey, Places
from .overlay import EvictedPods, Overlay
from .plugins import ExtensionPoint
from .results import (
    Answer,
    AnswerKind,
    Answers,
    Counts,
    FilteredOut,
    LimitHit,
    Nomination,
    Plan,
    QuestionKey,
)

Position = tuple[int, int]
"""Unit, and place in its listing."""

_BEFORE_ALL: Final[Position] = (-1, 0)


@dataclass(slots=True)
class _Note:
    """What became of a wish that no limit held back, and what has to be undone with it."""

    position: Position
    wish: Wish
    answer: Answer | None
    asks: bool
    from_record: bool
    evicts: bool
    took: bool = False
    """It took places that it did not have before."""
    freed: tuple[LimitKey, ...] | None = None
    """Places of an open decision that its denial freed."""


@dataclass(frozen=True, slots=True)
class _Held:
    """A wish that a limit held back."""

    position: Position
    wish: Wish
    by: LimitKey
    hopeful: bool
    """It can be asked about, and an open question takes a place of that limit."""


class Course:
    """The state of a plan between answers. Not to be shared; one for each cycle."""

    def __init__(
        self,
        ground: Groundwork,
        answers: Answers,
        assume: EvictedPods = EvictedPods.REMOVE,
        *,
        thorough: bool = False,
    ) -> None:
        self._ground = ground
        self._pods = ground.snapshot.pods
        self._record = answers.pods
        self._known: dict[QuestionKey, Answer] = dict(answers.known)
        self._overlay = Overlay(ground.snapshot, assume)
        self._places = Places(ground.policy.limits, answers.open)
        self._thorough = Findings(ground, self._overlay) if thorough else None
        self._unit, self._at = -1, 0
        self._listing: Sequence[Wish] = ()
        self._listings: dict[int, Sequence[Wish]] = {}
        self._notes: list[_Note] = []
        self._held: list[_Held] = []
        self._hopeful = 0
        self._questions: dict[QuestionKey, _Note] = {}
        self._pending_on: Counter[LimitKey] = Counter()
        self._refused: set[QuestionKey] = set()
        self._settled: set[str] = set()
        self._open_left = self._find_open(answers)

    def _find_open(self, answers: Answers) -> set[int]:
        """Pods with an open decision: they have their place, and may come again behind a full limit."""
        uids = {pod.uid for pod in answers.open}
        return (
            {number for number, pod in enumerate(self._pods) if pod.metadata.uid in uids} if uids else set()
        )

    # ---- walking

    def walk(self, ahead: int = 0) -> None:
        """Go on to the end, or in brief until no question can follow and ``ahead`` candidates are in sight."""
        while True:
            if self._may_rest(ahead):
                if not self._leap():
                    return
            elif self._at >= len(self._listing) and not self._next_unit():
                return
            elif self._hopeful >= ahead and self._thorough is None:
                self._pass_over_blocked()
            if self._at < len(self._listing):
                self._consider(self._listing[self._at])
                self._at += 1

    def _may_rest(self, ahead: int) -> bool:
        """Nobody can be nominated any more but those who have their place already."""
        if self._thorough is not None or not self._places.full:
            return False
        return not self._pending_on[TOTAL] or self._hopeful >= ahead

    def _pass_over_blocked(self) -> None:
        """With enough candidates in sight, go to the next wish that no limit of a node or namespace stops."""
        blocked, pods, open_left, listing = self._places.blocked, self._pods, self._open_left, self._listing
        for at in range(self._at, len(listing)):
            number = listing[at].number
            pod = pods[number]
            if number in open_left or blocked(pod.spec.node_name, pod.metadata.namespace) is None:
                self._at = at
                return
        self._at = len(listing)

    def _leap(self) -> bool:
        """Go to the next wish for a pod that has its place already; False if there is none."""
        while self._open_left:
            for at in range(self._at, len(self._listing)):
                if self._listing[at].number in self._open_left:
                    self._at = at
                    return True
            if not self._next_unit_with(self._open_left):
                return False
        return False

    def _next_unit_with(self, numbers: set[int]) -> bool:
        while self._unit + 1 < len(self._ground.units):
            if self._ground.numbers(self._unit + 1).isdisjoint(numbers):
                self._unit, self._at, self._listing = self._unit + 1, 0, ()
            else:
                return self._next_unit()
        return False

    def _next_unit(self) -> bool:
        if self._unit + 1 >= len(self._ground.units):
            return False
        self._unit, self._at = self._unit + 1, 0
        if self._thorough is not None:
            self._thorough.look_at(self._unit)
        self._listing = self._ground.listing(self._unit, self._overlay)
        if self._listing:
            self._listings[self._unit] = self._listing
        return True

    def _consider(self, wish: Wish) -> None:
        """Decide what becomes of one wish, as if all before it had been carried out."""
        if wish.number in self._overlay.evicted:
            return
        unit, pod = self._ground.units[self._unit], self._pods[wish.number]
        uid = pod.metadata.uid
        recorded = self._record.get(uid)
        if recorded is not None and not recorded.evicts:
            self._note_recorded(wish, uid, recorded)
            return
        key = (unit.profile.index, uid)
        if key in self._refused:
            return
        asks = self._ground.asks(unit, wish.number)
        if not self._places.holds(uid):
            blocked = self._places.blocked(pod.spec.node_name, pod.metadata.namespace)
            if blocked is not None:
                hopeful = asks and recorded is None and key not in self._known
                self._hold(wish, blocked, hopeful=hopeful and self._pending_on[blocked] > 0)
                return
        self._note(wish, key, recorded, asks=asks)

    def _hold(self, wish: Wish, by: LimitKey, *, hopeful: bool) -> None:
        """Only a thorough course remembers those that there is no reason to ask about."""
        if hopeful or self._thorough is not None:
            self._held.append(_Held((self._unit, self._at), wish, by, hopeful))
            self._hopeful += hopeful

    def _note_recorded(self, wish: Wish, uid: str, recorded: Answer) -> None:
        """The record says no, whoever wants the pod: it is said once."""
        if uid in self._settled:
            return
        self._settled.add(uid)
        note = _Note((self._unit, self._at), wish, recorded, asks=False, from_record=True, evicts=False)
        self._free_place(note, uid)
        self._notes.append(note)

    def _note(self, wish: Wish, key: QuestionKey, recorded: Answer | None, *, asks: bool) -> None:
        answer = recorded or (self._known.get(key) if asks else None)
        evicts = answer is None or answer.evicts
        note = _Note((self._unit, self._at), wish, answer, asks, recorded is not None, evicts)
        if evicts:
            self._assume_evicted(note, key[1])
        else:
            self._refused.add(key)
            self._free_place(note, key[1])
        if asks and answer is None:
            self._questions[key] = note
            self._pending_on.update(self._places.keys_of(key[1]))
        self._notes.append(note)

    def _assume_evicted(self, note: _Note, uid: str) -> None:
        self._overlay.evict(note.wish.number)
        self._open_left.discard(note.wish.number)
        if not self._places.holds(uid):
            pod = self._pods[note.wish.number]
            self._places.take(uid, pod.spec.node_name, pod.metadata.namespace)
            note.took = True

    def _free_place(self, note: _Note, uid: str) -> None:
        """A denial closes a decision that was open; one that is skipped leaves it as it was."""
        ends = note.answer is not None and note.answer.kind in {AnswerKind.DENIED, AnswerKind.FAILED}
        if ends and self._places.holds(uid):
            note.freed = self._places.give_back(uid)
            self._open_left.discard(note.wish.number)

    # ---- answers

    def questions(self, ahead: int, most: int) -> list[Nomination]:
        """What is to be asked, in the plan's order: open questions, and up to ``ahead`` that would come next.

        Candidates are only added while there are fewer than ``most`` questions.
        """
        asked = {key: (note.position, note.wish) for key, note in self._questions.items()}
        room = min(ahead, most - len(asked))
        for held in self._held if room > 0 else ():
            key = self._key(held)
            if held.hopeful and self._pending_on[held.by] > 0 and key not in asked and key not in self._known:
                asked[key] = (held.position, held.wish)
                room -= 1
                if room == 0:
                    break
        return [self._nomination(position, wish, asks=True) for position, wish in sorted(asked.values())]

    def answer(self, new: Mapping[QuestionKey, Answer]) -> bool:
        """Take answers in; go back to the first one that changes the plan. Says whether there was one."""
        self._known.update(new)
        changed: list[Position] = []
        for key, answer in new.items():
            note = self._questions.pop(key, None)
            if note is None:
                continue
            self._pending_on.subtract(self._places.keys_of(key[1]))
            note.answer = answer
            if not answer.evicts:
                changed.append(note.position)
        if changed:
            self._go_back(min(changed))
        return bool(changed)

    def _go_back(self, position: Position) -> None:
        while self._notes and self._notes[-1].position >= position:
            self._undo(self._notes.pop())
        while self._held and self._held[-1].position >= position:
            self._hopeful -= self._held.pop().hopeful
        self._unit, self._at = position
        self._listing = self._listings[self._unit]

    def _undo(self, note: _Note) -> None:
        uid = self._pods[note.wish.number].metadata.uid
        key = (self._ground.units[note.position[0]].profile.index, uid)
        if self._questions.pop(key, None) is not None:
            self._pending_on.subtract(self._places.keys_of(uid))
        if note.evicts:
            self._overlay.take_back()
        if note.took:
            self._places.give_back(uid)
        elif self._places.holds(uid) or note.freed is not None:
            self._open_left.add(note.wish.number)
        if note.freed is not None:
            self._places.take_again(uid, note.freed)
        self._refused.discard(key)
        if note.from_record:
            self._settled.discard(uid)

    # ---- the plan

    def plan(self) -> Plan:
        """What came of it. Only a thorough course that was walked to its end knows everything."""
        nominations = tuple(
            self._nomination(note.position, note.wish, asks=note.asks, answer=note.answer)
            for note in self._notes
            if note.answer is None or note.answer.kind is not AnswerKind.FILTERED
        )
        nominated = {nomination.pod.metadata.uid for nomination in nominations}
        held = self._held_back(nominated)
        findings = self._thorough or Findings(self._ground, self._overlay)
        return Plan(
            nominations=nominations,
            filtered=tuple(findings.filtered(nominations, self._filtered_by_record())),
            limits=self._limit_hits(held),
            questions=tuple(item for item in nominations if item.asks and item.answer is None),
            counts=Counts(
                nodes=len(self._ground.nodes),
                seen=findings.seen,
                eligible=len(findings.eligible),
                held_back=len(set().union(*held.values())),
                nominated=len(nominated),
            ),
            skipped_cycle=self._ground.skipped,
        )

    def _held_back(self, nominated: set[str]) -> dict[LimitKey, set[str]]:
        found: dict[LimitKey, set[str]] = {}
        for held in self._held:
            uid = self._pods[held.wish.number].metadata.uid
            if uid not in nominated:
                found.setdefault(held.by, set()).add(uid)
        return found

    def _limit_hits(self, held: Mapping[LimitKey, set[str]]) -> tuple[LimitHit, ...]:
        places = self._places
        return tuple(
            LimitHit(key.kind, key.name, places.limit(key), len(uids), places.filled_by(key))
            for key, uids in held.items()
        )

    def _filtered_by_record(self) -> list[FilteredOut]:
        return [
            filtered_out(
                self._ground,
                self._ground.units[note.position[0]],
                note.wish.number,
                (Objection("record", note.answer.reason, ""),),
                by=self._ground.units[note.position[0]].plugin,
            )
            for note in self._notes
            if note.answer is not None and note.answer.kind is AnswerKind.FILTERED
        ]

    def _nomination(
        self, position: Position, wish: Wish, *, asks: bool, answer: Answer | None = None
    ) -> Nomination:
        unit, pod = self._ground.units[position[0]], self._pods[wish.number]
        return Nomination(
            pod=pod,
            node=pod.spec.node_name,
            profile_index=unit.profile.index,
            profile=unit.profile.name,
            plugin=unit.plugin,
            extension_point=ExtensionPoint.DESCHEDULE.value,
            reason=wish.reason,
            answer=answer,
            asks=asks,
        )

    def _key(self, held: _Held) -> QuestionKey:
        return self._ground.units[held.position[0]].profile.index, self._pods[held.wish.number].metadata.uid
