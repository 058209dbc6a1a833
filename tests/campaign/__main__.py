"""``make campaign FAULTS=1000 SEED=7``: harm the whole product at work, then compare three accounts of it."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NoReturn

import pytest

from tests.campaign import collect, judging
from tests.campaign.accounts import WORKER, Call, Campaign, Signals
from tests.campaign.caller import Caller
from tests.campaign.faults import sequence
from tests.campaign.harm import Harmer
from tests.campaign.notebook import Notebook
from tests.campaign.people import Admin, Api, Approver, Clicker, Person
from tests.campaign.probe import PodProbe, WebProbe, WorkerProbe
from tests.campaign.stage import Stage, stage
from tests.real.product import PASSWORD
from tests.real.services import Missing

WARM_UP_SECONDS: Final = 60.0
RECOVER_SECONDS: Final = 90.0
SETTLE_SECONDS: Final = judging.OVERDUE_SECONDS + 5
SETTLE_AT_MOST_SECONDS: Final = 180.0
SAY_EVERY: Final = 20


def say(line: str) -> None:
    """A line for whoever waits, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


class Campaigning:
    """One campaign on a stage: the work, the faults, the accounts."""

    def __init__(self, on: Stage, seed: int) -> None:
        self.stage, self.seed = on, seed
        self.notebook = Notebook(on.folder / "notes.jsonl")
        self.web, self.worker, self.pods = WebProbe(on), WorkerProbe(on), PodProbe(on)
        self.caller = Caller(on.url, on.caller_token, on.plane, self.notebook)
        self.people = self._people()
        self.harmer = Harmer(on, say)

    def _people(self) -> list[Person]:
        url, tokens = self.stage.url, self.stage.tokens
        approver = Approver("ada", self.notebook, Api(url, tokens["ada"]), pause=1.5, seed=self.seed)
        clicker = Clicker("ben", self.notebook, url, PASSWORD, pause=2.0, seed=self.seed)
        return [
            approver,
            clicker,
            Admin("root", self.notebook, Api(url, tokens["root"]), pause=2.5, seed=self.seed),
        ]

    # --- the course of it

    def work(self) -> None:
        """Begin, and wait until everything was seen to work once."""
        for each in (self.web, self.worker, self.pods, self.caller, *self.people):
            each.start()
        began = time.time()
        self._wait(lambda: self._all_work_since(began), WARM_UP_SECONDS)

    def recover(self) -> None:
        """After the last fault: until the whole job is done again."""
        ended = max((fault.ended for fault in self.harmer.done), default=time.time())
        self._wait(lambda: self._all_work_since(ended), RECOVER_SECONDS)

    def settle(self) -> None:
        """Nobody asks or clicks any more; whatever is due is to be done by itself."""
        self.caller.stopped.set()
        for person in self.people:
            person.stopped.set()
        for thread in (self.caller, *self.people):
            thread.join(30)
        self._lift()
        since = time.monotonic()
        self._wait(
            lambda: time.monotonic() - since > SETTLE_SECONDS and judging.is_settled(self._as_it_stands()),
            SETTLE_AT_MOST_SECONDS,
        )

    def _lift(self) -> None:
        admin = next(each for each in self.people if isinstance(each, Admin))
        while admin.find_freeze():
            admin.lift()

    def _wait(self, ready: Callable[[], bool], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not ready() and time.monotonic() < deadline:
            self.stage.tend()
            time.sleep(0.5)

    def _all_work_since(self, moment: float) -> bool:
        web = bool(self.web.ready) and self.web.ready[-1] > moment
        worker = bool(self.worker.seen) and self.worker.seen[-1] > moment
        evicted = any(call.received > moment for call in self._accepted()[-20:])
        return web and worker and evicted and self.notebook.answered_since(moment)

    def _accepted(self) -> list[Call]:
        calls = collect.calls(self.stage.plane.evictions())
        return [call for call in calls if call.accepted and call.who == WORKER]

    def progress(self, count: int) -> None:
        """Say now and then how far it is."""
        if count % SAY_EVERY == 0:
            say(f"  {count} faults, {len(self._accepted())} evictions by us")

    # --- the accounts

    def campaign(self) -> Campaign:
        """All accounts together."""
        audit = tuple(collect.calls(self.stage.plane.evictions()))
        logs = [self.stage.folder / f"{name}.log" for name in ("worker-1", "worker-2")]
        notes = self.notebook.notes(tuple(collect.sent(logs)))
        return Campaign(
            database=collect.read_database(self.stage.database_url),
            audit=audit,
            notes=notes,
            signals=Signals(
                web=tuple(self.web.ready),
                worker=tuple(self.worker.seen),
                evictions=tuple(
                    sorted(call.received for call in audit if call.accepted and call.who == WORKER)
                ),
                answers=tuple(sorted(note.asked for note in notes.asked if note.decision is not None)),
            ),
            faults=tuple(self.harmer.done),
            living=self.pods.living(time.time() - judging.OVERDUE_SECONDS),
        )

    def _as_it_stands(self) -> Campaign:
        """What says whether something is still under way."""
        return Campaign(
            database=collect.read_database(self.stage.database_url),
            audit=tuple(collect.calls(self.stage.plane.evictions())),
            living=self.pods.living(time.time() - judging.OVERDUE_SECONDS),
        )


def run(faults: int, seed: int, folder: Path) -> int:
    """One campaign; the exit code."""
    planned = sequence(seed, faults)
    began = time.monotonic()
    say(f"campaign: {len(planned)} faults, seed {seed}, about {max(f.end for f in planned) / 60 + 2:.0f} min")
    with stage(folder) as on:
        (folder / "faults.txt").write_text("".join(f"{fault.at:8.2f} {fault}\n" for fault in planned))
        course = Campaigning(on, seed)
        course.work()
        say(f"  everything works after {time.monotonic() - began:.0f} s")
        course.harmer.run(planned, course.progress)
        course.recover()
        course.settle()
        campaign = course.campaign()
        restarts = [*on.keeper.ended_by_themselves(), *on.plane.ended]
        numbers = collect.counts(on.database_url)
    verdict = judging.judge(campaign)
    about = judging.Run(
        seed=seed,
        date=datetime.now(UTC).date().isoformat(),
        minutes=(time.monotonic() - began) / 60,
        decisions=numbers["decisions"],
        cycles=numbers["cycles"],
        clicks=len(campaign.notes.clicked),
        questions=len(campaign.notes.asked),
    )
    return _report(verdict, about, restarts)


def _report(verdict: judging.Verdict, about: judging.Run, restarts: Sequence[str]) -> int:
    for line in sorted(set(restarts)):
        say(f"  {line}, {restarts.count(line)} times")
    say(f"\n{judging.table(verdict, about)}\n")
    for name, found in verdict.checks:
        if found:
            say("\n".join([f"{name}: {len(found)}", *judging.first(found)]))
    say(f"{len(verdict.checks) - verdict.failed} passed, {verdict.failed} failed")
    return 1 if verdict.failed else 0


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    """A folder for everything that is written; it stays where something failed."""
    folder = keep or Path(tempfile.mkdtemp(prefix="deschedui-campaign-"))
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o711)  # PostgreSQL runs as somebody else and has a folder in it
    try:
        yield folder
    except BaseException:
        say(f"the logs are in {folder}")
        raise


def _interrupted(_number: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a campaign as the command line says."""
    parser = argparse.ArgumentParser(prog="tests.campaign", description=__doc__)
    parser.add_argument("--faults", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where everything is written, and kept")
    options = parser.parse_args(arguments)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupted)
    try:
        with _folder(options.folder) as folder:
            code = run(options.faults, options.seed, folder)
            if code or options.folder:
                say(f"the logs are in {folder}")
            else:
                shutil.rmtree(folder, ignore_errors=True)
    except (Missing, pytest.skip.Exception) as missing:
        say(f"a campaign cannot run here: {missing}")
        return 2
    except KeyboardInterrupt:
        say("stopped")
        return 130
    return code


if __name__ == "__main__":
    sys.exit(main())
