"""Doing the faults: begins each in its time, ends it, and sees to it that something is always left."""

from __future__ import annotations

import dataclasses
import json
import signal
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

import redis

from tests.campaign.accounts import Done
from tests.campaign.faults import WEBS, Fault, Kind, Target
from tests.campaign.links import LOOPBACK, Harm
from tests.campaign.stage import Stage

OFF_SECONDS: Final = 120
HOLD_SECONDS: Final = 45.0
STEP_SECONDS: Final = 0.05
TEND_SECONDS: Final = 0.5

Say = Callable[[str], None]


class Harmer:
    """Does the faults of a campaign on a stage; ``done`` says what was done and when."""

    def __init__(self, stage: Stage, say: Say) -> None:
        self.stage, self.say = stage, say
        self.done: list[Done] = []
        self._running: list[tuple[float, Fault, float]] = []
        self._slip = 0.0
        self._tended = 0.0

    def run(self, faults: Sequence[Fault], progress: Callable[[int], None]) -> None:
        """All of them; returns when the last is over."""
        start, waiting = time.monotonic(), deque(faults)
        while waiting or self._running:
            now = time.monotonic() - start
            self._end_due(now)
            if waiting and waiting[0].at + self._slip <= now:
                fault = waiting[0]
                late = now - fault.at - self._slip
                if self._may_begin(fault) or late > HOLD_SECONDS:
                    waiting.popleft()
                    self._slip += late
                    self._begin(fault, now)
                    progress(len(faults) - len(waiting))
            self._tend(now)
            time.sleep(STEP_SECONDS)

    def _may_begin(self, fault: Fault) -> bool:
        """One web process answers while the other is harmed: with none, nobody could say no at the door."""
        if fault.target not in WEBS:
            return True
        other = next(name for name in WEBS if name != fault.target)
        return self.stage.answers(other) and not any(each.target == other for _, each, _ in self._running)

    def _tend(self, now: float) -> None:
        if now - self._tended >= TEND_SECONDS:
            self._tended = now
            self.stage.tend()

    def _begin(self, fault: Fault, now: float) -> None:
        began = time.time()
        self._harm(fault)
        if fault.seconds:
            self._running.append((now + fault.seconds, fault, began))
        else:
            self._note(fault, began)

    def _end_due(self, now: float) -> None:
        for entry in [entry for entry in self._running if entry[0] <= now]:
            self._running.remove(entry)
            _, fault, began = entry
            self._heal(fault)
            self._note(fault, began)

    def _note(self, fault: Fault, began: float) -> None:
        done = Done(fault.number, fault.kind.value, fault.target.value, began, time.time())
        self.done.append(done)
        with (self.stage.folder / "done.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(dataclasses.asdict(done)) + "\n")

    # --- each kind

    def _harm(self, fault: Fault) -> None:
        if fault.kind is Kind.KILL:
            self._kill(fault.target)
        elif fault.kind in {Kind.STOP, Kind.STOP_PAST_LEASE}:
            self._signal(fault.target, signal.SIGSTOP)
        elif fault.kind is Kind.EMPTY:
            with redis.Redis(host=LOOPBACK, port=self.stage.ports["redis"], socket_timeout=5) as client:
                client.flushall()
        elif fault.kind is Kind.CLOCK:
            self.stage.set_clock(OFF_SECONDS if fault.ahead else -OFF_SECONDS)
        else:
            self.stage.links.harm(fault.number, fault.target, Harm(fault.kind, fault.delay))

    def _heal(self, fault: Fault) -> None:
        if fault.kind is Kind.KILL:
            self._start(fault.target)
        elif fault.kind in {Kind.STOP, Kind.STOP_PAST_LEASE}:
            self._signal(fault.target, signal.SIGCONT)
        elif fault.kind is Kind.CLOCK:
            self.stage.set_clock(0)
        else:
            self.stage.links.heal(fault.number, fault.target)

    def _kill(self, target: Target) -> None:
        if target is Target.APISERVER:
            self.stage.plane.apiserver.kill()
            self.stage.plane.apiserver.wait(10)
        else:
            self.stage.keeper[target].kill()

    def _start(self, target: Target) -> None:
        if target is Target.APISERVER:
            self.stage.plane.start_apiserver_again()
        else:
            self.stage.keeper[target].start()

    def _signal(self, target: Target, number: int) -> None:
        if target is Target.APISERVER:
            self.stage.plane.apiserver.send_signal(number)
        elif number == signal.SIGSTOP:
            self.stage.keeper[target].stop()
        else:
            self.stage.keeper[target].go_on()
