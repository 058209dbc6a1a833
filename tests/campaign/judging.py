"""From three accounts to what must not have happened. Pure.

Ours are judged at the last test before the call, a caller's at the time its yes was sent: between these and the call
nobody can take anything back, so a call in flight is counted by itself. So is an answer that was on its way while what
it rests on was changed.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from tests.campaign.accounts import (
    CALLER,
    EVICTION_AFTER,
    VERDICT_AFTER,
    WORKER,
    Asked,
    Call,
    Campaign,
    Clicked,
    Done,
    Line,
    Row,
    Sent,
    Signals,
)

RECOVER_SECONDS: Final = 60.0
# Between the time that a commit is given and the moment in which others see it; and between two clocks' readings.
VISIBLE_SECONDS: Final = 0.25
# What is due and was not done after so long, nothing will do: ticks come every second.
OVERDUE_SECONDS: Final = 15.0
# A change is committed between the click and its answer; a little more for the rounding of clocks.
NOTED_WITHIN: Final = 0.1


@dataclass(frozen=True)
class Finding:
    """Something that must not have happened, in words."""

    what: str


@dataclass(frozen=True)
class Verdict:
    """What the accounts show together."""

    faults: Mapping[str, int]
    evictions_ours: int
    evictions_callers: int
    twice: tuple[Finding, ...]
    unallowed: tuple[Finding, ...]
    lost: tuple[Finding, ...]
    frozen: tuple[Finding, ...]
    stuck: tuple[Finding, ...]
    in_flight: int
    told_before: int
    failed_calls: int
    unaudited: int
    longest: float | None
    not_recovered: tuple[Finding, ...] = ()

    @property
    def checks(self) -> tuple[tuple[str, tuple[Finding, ...]], ...]:
        """What must be empty, by name, in the order of the table."""
        return (
            ("pods evicted twice", self.twice),
            ("evictions without an allowed decision", self.unallowed),
            ("decisions lost", self.lost),
            ("evictions during a freeze", self.frozen),
            ("decisions that nothing will ever move again", self.stuck),
            (f"faults not recovered from within {RECOVER_SECONDS:g} s", self.not_recovered),
        )

    @property
    def failed(self) -> int:
        """How many checks failed."""
        return sum(bool(found) for _, found in self.checks)


def judge(campaign: Campaign) -> Verdict:
    """Compare the accounts."""
    story = Story(campaign)
    times = [(fault, recovery(fault, campaign.signals)) for fault in campaign.faults]
    known = [seconds for _, seconds in times if seconds is not None]
    judged = [judged_call(story, call) for call in campaign.audit if call.accepted]
    return Verdict(
        faults=Counter(fault.kind for fault in campaign.faults),
        evictions_ours=sum(call.accepted and call.who == WORKER for call in campaign.audit),
        evictions_callers=sum(call.accepted and call.who == CALLER for call in campaign.audit),
        twice=tuple(evicted_twice(campaign.audit)),
        unallowed=tuple(Finding(each.why) for each in judged if each.unallowed),
        lost=tuple(lost(story)),
        frozen=tuple(Finding(each.why) for each in judged if each.frozen),
        stuck=tuple(stuck(campaign)),
        in_flight=sum(each.in_flight for each in judged),
        told_before=sum(each.told_before for each in judged),
        failed_calls=sum(each.outcome == "failed" for each in campaign.notes.asked),
        unaudited=unaudited(story),
        longest=max(known, default=None) if len(known) == len(times) else None,
        not_recovered=tuple(
            Finding(f"{fault.target}, {fault.kind} (#{fault.number}): {_slow_ones(fault, campaign.signals)}")
            for fault, seconds in times
            if seconds is None or seconds > RECOVER_SECONDS
        ),
    )


def _seconds(seconds: float | None) -> str:
    return "never" if seconds is None else f"{seconds:.1f} s"


# --- what stood when ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class State:
    """A decision at a moment."""

    verdict: str = ""
    eviction: str = "none"
    attempt: int = 0


def after(state: State, line: Line) -> State:
    """What a line of the timeline makes of a decision."""
    if line.kind in {"extender_answered", "extender_failed"}:
        denies = line.status == "deny" and state.verdict == "pending"
        return replace(state, verdict="denied") if denies else state
    verdict = VERDICT_AFTER.get(line.kind, state.verdict)
    eviction = line.status or EVICTION_AFTER.get(line.kind, state.eviction)
    if verdict != "allowed" or state.verdict != "allowed":
        eviction = "none"
    return State(verdict, eviction, line.attempt or state.attempt)


@dataclass(frozen=True)
class Story:
    """A campaign, with what is asked of it again and again."""

    campaign: Campaign

    @cached_property
    def states(self) -> Mapping[int, tuple[Sequence[float], Sequence[State]]]:
        """Every decision's states with the time of their commit."""
        return {decision: _states(lines) for decision, lines in self.lines.items()}

    @cached_property
    def lines(self) -> Mapping[int, Sequence[Line]]:
        """Every decision's timeline."""
        lines: defaultdict[int, list[Line]] = defaultdict(list)
        for line in self.campaign.database.lines:
            lines[line.decision].append(line)
        return lines

    @cached_property
    def rows(self) -> Mapping[int, Row]:
        """The decisions."""
        return {row.id: row for row in self.campaign.database.rows}

    @cached_property
    def sent(self) -> Mapping[str, Sequence[Sent]]:
        """What our workers sent, by the pod's UID."""
        found: defaultdict[str, list[Sent]] = defaultdict(list)
        for each in self.campaign.notes.sent:
            if each.decision in self.rows:
                found[self.rows[each.decision].uid].append(each)
        return found

    def at(self, decision: int, moment: float) -> State:
        """What stood at a moment: what was committed until then."""
        times, states = self.states.get(decision, ((), ()))
        place = bisect_right(times, moment)
        return states[place - 1] if place else State()

    def during(self, decision: int, start: float, end: float) -> list[State]:
        """Every state that stood at some moment of a span."""
        times, states = self.states.get(decision, ((), ()))
        first, last = bisect_right(times, start), bisect_right(times, end)
        return list(states[max(first - 1, 0) : last])

    def frozen(self, moment: float, *, since: float = 0.0) -> bool:
        """Whether a freeze was in force, for at least so long."""
        return any(span.start + since < moment < span.end for span in self.campaign.database.freezes)

    def frozen_throughout(self, start: float, end: float) -> bool:
        """Whether one freeze covers a whole span."""
        return any(span.start < start and end < span.end for span in self.campaign.database.freezes)

    def freeze_touches(self, start: float, end: float) -> bool:
        """Whether a freeze was set or in force in a span."""
        return any(span.start <= end and start <= span.end for span in self.campaign.database.freezes)


def _states(lines: Iterable[Line]) -> tuple[list[float], list[State]]:
    times: list[float] = []
    states: list[State] = []
    state = State()
    for line in lines:
        state = after(state, line)
        times.append(line.committed)
        states.append(state)
    return times, states


# --- single counts ------------------------------------------------------------------------------------------


def evicted_twice(audit: Iterable[Call]) -> Iterator[Finding]:
    """Pods whose eviction the API server accepted more than once."""
    accepted = [call for call in audit if call.accepted]
    for uid, count in Counter(call.uid for call in accepted).items():
        if count > 1:
            calls = ", ".join(f"{call.who} at {call.received:.3f}" for call in accepted if call.uid == uid)
            yield Finding(f"pod {uid} was evicted {count} times: {calls}")


@dataclass(frozen=True)
class Judged:
    """One accepted eviction: what is wrong with it, if anything, and whether something changed on its way."""

    why: str = ""
    unallowed: bool = False
    frozen: bool = False
    in_flight: bool = False
    told_before: bool = False


def judged_call(story: Story, call: Call) -> Judged:
    """Whether an accepted eviction was allowed."""
    if call.who == WORKER:
        return _ours(story, call)
    if call.who == CALLER:
        return _callers(story, call)
    return Judged(f"pod {call.uid} was evicted by {call.who}, whom nobody knows", unallowed=True)


def _ours(story: Story, call: Call) -> Judged:
    before = [each for each in story.sent.get(call.uid, ()) if each.tested <= call.received + VISIBLE_SECONDS]
    if not before:
        return Judged(f"pod {call.uid}: we evicted it, and no test came before", unallowed=True)
    sent = max(before, key=lambda each: each.tested)
    name = f"pod {call.uid}, decision {sent.decision}, attempt {sent.attempt}, tested at {sent.tested:.3f}"
    late = list(story.during(sent.decision, sent.tested - VISIBLE_SECONDS, sent.tested))
    if not any(_may_go(state, sent.attempt) for state in late):
        return Judged(f"{name}: it was {late[-1] if late else 'unknown'}", unallowed=True)
    if story.frozen(sent.tested, since=VISIBLE_SECONDS):
        return Judged(f"{name}: a freeze was in force", frozen=True)
    now = story.at(sent.decision, call.received)
    changed = not _may_go(now, sent.attempt) and now.eviction not in {"accepted", "evicted"}
    return Judged(
        in_flight=changed or story.frozen(call.received),
        told_before=not _may_go(late[-1], sent.attempt) or story.frozen(sent.tested),
    )


def _may_go(state: State, attempt: int) -> bool:
    return state == State("allowed", "evicting", attempt)


def _callers(story: Story, call: Call) -> Judged:
    notes = story.campaign.notes
    tries = [
        each
        for each in notes.evicted
        if each.uid == call.uid and each.sent <= call.received + VISIBLE_SECONDS
    ]
    if not tries:
        return Judged(f"pod {call.uid}: the caller evicted it without a note", unallowed=True)
    asked = notes.asked[max(tries, key=lambda each: each.sent).because]
    if asked.outcome != "yes" or asked.decision is None:
        return Judged(
            f"pod {call.uid}: the caller's call {asked.outcome} at {asked.heard:.3f}", unallowed=True
        )
    return _told(story, call, asked, asked.decision)


def _told(story: Story, call: Call, asked: Asked, decision: int) -> Judged:
    name = f"pod {call.uid}, decision {decision}, asked at {asked.asked:.3f}, yes heard at {asked.heard:.3f}"
    states = story.during(decision, asked.asked - VISIBLE_SECONDS, asked.heard)
    if not any(_may_be_told(state) for state in states):
        return Judged(f"{name}: it was {states[-1] if states else 'unknown'}", unallowed=True)
    if story.frozen_throughout(asked.asked - VISIBLE_SECONDS, asked.heard):
        return Judged(f"{name}: a freeze was in force", frozen=True)
    now = story.at(decision, call.received)
    return Judged(
        in_flight=not (_may_be_told(now) or now.eviction == "evicted") or story.frozen(call.received),
        told_before=not _may_be_told(states[-1]) or story.freeze_touches(asked.asked, asked.heard),
    )


def _may_be_told(state: State) -> bool:
    return state.verdict == "allowed" and state.eviction == "delegated"


# --- decisions lost -----------------------------------------------------------------------------------------


def lost(story: Story) -> Iterator[Finding]:
    """What somebody was told and the database does not have; and what happened and it does not say."""
    notes = story.campaign.notes
    yield from _unknown_decisions(story, notes.asked)
    for click in notes.clicked:
        if not _is_on_record(story, click):
            yield Finding(f"{click.who} was told at {click.heard:.3f}: {click.kind} {click.decision or ''}")
    for row in story.campaign.database.rows:
        verdict = story.at(row.id, float("inf")).verdict
        if row.verdict != verdict and (row.verdict, verdict) != ("skipped", "pending"):
            yield Finding(f"decision {row.id} is {row.verdict}, by its timeline {verdict or 'unknown'}")
    yield from _unrecorded(story)


def _unknown_decisions(story: Story, asked: Iterable[Asked]) -> Iterator[Finding]:
    told = {each.decision for each in asked if each.decision is not None}
    for decision in sorted(told - story.rows.keys()):
        yield Finding(f"the door named decision {decision}, which the database does not have")


def _is_on_record(story: Story, click: Clicked) -> bool:
    start, end = click.sent - NOTED_WITHIN, click.heard + NOTED_WITHIN
    if click.decision is None:
        spans = story.campaign.database.freezes
        times = [span.start if click.kind == "frozen" else span.end for span in spans]
        return any(start <= moment <= end for moment in times) or (
            click.kind == "frozen" and any(span.start < click.heard <= span.end for span in spans)
        )
    return any(
        line.kind == click.kind and click.who in line.by and start <= line.committed <= end
        for line in story.lines.get(click.decision, ())
    )


def is_settled(campaign: Campaign) -> bool:
    """Whether nothing is overdue, and every accepted eviction is on record: a lease may have to run out first."""
    return not any(stuck(campaign)) and not any(_unrecorded(Story(campaign)))


def _unrecorded(story: Story) -> Iterator[Finding]:
    """Evictions that the API server accepted and that no decision of that pod shows as such in the end."""
    ends: defaultdict[str, set[str]] = defaultdict(set)
    for row in story.campaign.database.rows:
        ends[row.uid].add(row.eviction)
    for call in story.campaign.audit:
        if call.accepted and not ends[call.uid] & {"evicted", "accepted", "gone"}:
            yield Finding(
                f"pod {call.uid} was evicted, its decisions say {sorted(ends[call.uid]) or 'nothing'}"
            )


def unaudited(story: Story) -> int:
    """Decisions whose eviction was accepted and that the audit log does not have: the API server was killed first."""
    accepted = {call.uid for call in story.campaign.audit if call.accepted}
    said = {line.decision for line in story.campaign.database.lines if line.kind == "accepted"}
    return sum(story.rows[decision].uid not in accepted for decision in said if decision in story.rows)


# --- decisions that nothing moves ---------------------------------------------------------------------------


def stuck(campaign: Campaign) -> Iterator[Finding]:
    """Open decisions whose next step is overdue, and cycles that hold the next one up."""
    now = campaign.database.read_at
    open_ones = {row.id for row in campaign.database.rows if is_open(row)}
    for row in campaign.database.rows:
        if why := overdue(row, now=now, living=campaign.living, open_ones=open_ones):
            yield Finding(f"decision {row.id} ({row.verdict}, {row.eviction}): {why}")
    for cycle, heartbeat in campaign.database.cycles_running:
        if heartbeat < now - 60 - OVERDUE_SECONDS:
            yield Finding(f"cycle {cycle} runs, and its worker was last heard of {now - heartbeat:.0f} s ago")


def is_open(row: Row) -> bool:
    """Pending, or allowed with an eviction that has not ended."""
    return row.verdict == "pending" or (
        row.verdict == "allowed" and row.eviction not in {"evicted", "gone", "failed"}
    )


def overdue(row: Row, *, now: float, living: frozenset[str], open_ones: set[int]) -> str:
    """Why nothing will move this decision; '' where something will, or nothing has to."""
    if not is_open(row):
        return ""
    late = now - OVERDUE_SECONDS
    if row.eviction == "evicting":
        return "" if row.lease_until is not None and row.lease_until > late else "its lease ran out"
    if row.uid not in living and row.updated_at < late:
        return "its pod is gone"
    if row.eviction in {"accepted", "in_background"}:
        return ""  # Its pod is there: the look at the cluster will see it go.
    if row.expires_at is None or row.expires_at < late:
        return "its time is over"
    if row.verdict == "allowed" and row.ours and row.eviction == "none" and row.waits_for not in open_ones:
        return "it was allowed and never queued" if row.updated_at < late else ""
    if row.eviction == "blocked" and (row.not_before is None or row.not_before < late):
        return "it was to be tried again"
    return ""


# --- recovery -----------------------------------------------------------------------------------------------


def recovery(fault: Done, signals: Signals) -> float | None:
    """Seconds from the end of a fault until everything was seen to work again; None: never."""
    parts = _parts(fault, signals).values()
    known = [seconds for seconds in parts if seconds is not None]
    return max(known) if len(known) == len(parts) else None


def _parts(fault: Done, signals: Signals) -> dict[str, float | None]:
    """Seconds from the end of a fault until each part was seen to work again."""
    firsts = {name: _first_after(getattr(signals, name), fault.ended) for name in Signals.__annotations__}
    return {name: None if moment is None else moment - fault.ended for name, moment in firsts.items()}


def _slow_ones(fault: Done, signals: Signals) -> str:
    """Which parts took too long, in words."""
    parts = _parts(fault, signals)
    slow = [name for name, seconds in parts.items() if seconds is None or seconds > RECOVER_SECONDS]
    return ", ".join(f"{name}: {_seconds(parts[name])}" for name in slow)


def _first_after(times: Sequence[float], moment: float) -> float | None:
    place = bisect_right(times, moment)
    return times[place] if place < len(times) else None


# --- what is printed ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """What a table says beside the counts."""

    seed: int
    date: str
    minutes: float
    decisions: int = 0
    clicks: int = 0
    questions: int = 0
    cycles: int = 0


def table(verdict: Verdict, run: Run) -> str:
    """The table for the documentation, in Markdown."""
    longest = "never" if verdict.longest is None else f"{verdict.longest:.1f} s"
    rows = [
        ("faults", f"{sum(verdict.faults.values())} (seed {run.seed}, {run.date}, {run.minutes:.0f} min)"),
        *((f"– {kind}", str(count)) for kind, count in sorted(verdict.faults.items())),
        ("cycles, decisions", f"{run.cycles}, {run.decisions}"),
        ("evictions by us", str(verdict.evictions_ours)),
        ("evictions by the caller at the door", str(verdict.evictions_callers)),
        ("questions at the door, of which failed", f"{run.questions}, {verdict.failed_calls}"),
        ("what people did", str(run.clicks)),
        *((f"**{name}**", f"**{len(found)}**") for name, found in verdict.checks),
        ("calls in flight when a verdict or a freeze changed", str(verdict.in_flight)),
        ("answers told while that was being committed", str(verdict.told_before)),
        ("evictions on record that the API server died before it audited", str(verdict.unaudited)),
        ("longest time to recover", longest),
    ]
    head = ["| | |", "| --- | --- |"]
    return "\n".join([*head, *(f"| {name} | {value} |" for name, value in rows)])


def first(findings: Sequence[Finding], most: int = 10) -> list[str]:
    """The first of them, as lines."""
    more = len(findings) - most
    lines = [f"  {finding.what}" for finding in itertools.islice(findings, most)]
    return [*lines, f"  … and {more} more"] if more > 0 else lines
