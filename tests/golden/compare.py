"""Compares our engine with what the real descheduler did.

``python -m tests.golden.compare FOLDER`` compares every input below the folder, prints a table by plugin,
names each input that differs and how, and closes with ``N passed, N failed``.

Where we knowingly differ, this comparison knows it and not the engine: the real program sees no budgets
unless it was made to, evictions are compared as sets of UIDs, and its texts with those that we keep beside
ours.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from deschedui.descheduler.plan import Answer, AnswerKind, Answers, EvictedPods, Nomination, Plan, plan
from deschedui.descheduler.policy import LoadResult, load
from deschedui.descheduler.policy.model import Limits, Policy
from deschedui.descheduler.snapshot import Snapshot
from tests.golden.inputs import Case, Json, read_folder

_SHOWN = 5


def differences(case: Case, now: datetime) -> list[str]:
    """How we differ on this input, in sentences; empty if we do not."""
    if case.later:
        return [f"not supported yet: {', '.join(case.later)}"]
    loaded = load(case.policy, filename="policy.yaml", priority_classes=case.priorities)
    wrong = list(_policy_differences(loaded, case.golden))
    if wrong or case.golden["policyError"] is not None:
        return wrong
    if loaded.policy is None:
        return [f"we refuse the policy: {loaded.errors[0].message}"]
    snapshot = case.snapshot()
    made = _plan(case, loaded.policy, snapshot, now)
    return [
        *_eviction_differences(made, case.golden, snapshot),
        *_refusal_differences(made, case.golden, limited=loaded.policy.limits != Limits()),
        *_grace_differences(loaded.policy, case.golden),
    ]


def _plan(case: Case, policy: Policy, snapshot: Snapshot, now: datetime) -> Plan:
    assume = EvictedPods(case.options.get("onEvict", "remove"))
    faulty = {fault["pod"]: fault["code"] for fault in case.options.get("faults", ())}
    failed = {
        pod.metadata.uid: Answer(AnswerKind.FAILED, f"the API server answered {code}")
        for pod in snapshot.pods
        if (code := faulty.get(f"{pod.metadata.namespace}/{pod.metadata.name}"))
    }
    return plan(policy, snapshot, Answers(pods=failed), now, assume=assume)


def _policy_differences(loaded: LoadResult, golden: Json) -> Iterator[str]:
    theirs, ours = golden["policyError"], loaded.upstream_error
    if theirs is None or ours is None or not golden.get("errorFromGo"):
        if theirs != ours:
            yield f"policy error: theirs {theirs!r}, ours {ours!r}"
            return
    elif theirs.split(": ")[0] != ours.split(": ")[0]:
        yield f"policy error begins otherwise: theirs {theirs!r}, ours {ours!r}"
    if theirs is not None and golden["errorStage"] != loaded.upstream_stage:
        yield f"stage of the policy error: theirs {golden['errorStage']}, ours {loaded.upstream_stage}"


def _eviction_differences(made: Plan, golden: Json, snapshot: Snapshot) -> Iterator[str]:
    gone = [item for item in made.nominations if item.answer is None or item.answer.evicts]
    if golden["stable"]:
        yield from _set_differences("evicted", gone, golden["evictions"])
    elif "classes" in golden:
        yield from _class_differences(gone, golden["classes"], snapshot)
    else:
        yield from _loose_differences(gone, golden)


def _set_differences(what: str, ours: Iterable[Nomination], theirs: Iterable[Json]) -> Iterator[str]:
    our_pods = {item.pod.metadata.uid: _show(item) for item in ours}
    their_pods = {item["uid"]: f"{item['namespace']}/{item['name']} ({item['plugin']})" for item in theirs}
    if only_ours := [shown for uid, shown in our_pods.items() if uid not in their_pods]:
        yield f"{what} by us only: {_few(only_ours)}"
    if only_theirs := [shown for uid, shown in their_pods.items() if uid not in our_pods]:
        yield f"{what} by them only: {_few(only_theirs)}"


def _class_differences(
    gone: Iterable[Nomination], classes: Sequence[Json], snapshot: Snapshot
) -> Iterator[str]:
    ours = Counter(_class_of(item, snapshot) for item in gone)
    theirs = Counter({_class_key(item): item["count"] for item in classes})
    if ours != theirs:
        yield f"classes: more of ours {dict(ours - theirs)}, more of theirs {dict(theirs - ours)}"


def _loose_differences(gone: Sequence[Nomination], golden: Json) -> Iterator[str]:
    """What must hold of any run: nobody that no run evicted, and a total that occurred."""
    sample = {f"{item['namespace']}/{item['name']}" for item in golden["evictions"]}
    possible = sample | set(golden.get("sometimes", ()))
    if strangers := [_show(item) for item in gone if _show(item).split(" ")[0] not in possible]:
        yield f"evicted in no run: {_few(strangers)}"
    totals = golden.get("evictedTotals") or [golden["evicted_total"]]
    if len(gone) not in totals:
        yield f"evicted in all: ours {len(gone)}, theirs one of {totals}"


def _refusal_differences(made: Plan, golden: Json, *, limited: bool) -> Iterator[str]:
    """Who was refused. Behind a full limit the real program does not try; we say who is known to fail anyway."""
    failed = [item for item in made.nominations if item.answer and item.answer.kind is AnswerKind.FAILED]
    if limited:
        tried = {item["uid"] for item in golden.get("refused", ())}
        failed = [item for item in failed if item.pod.metadata.uid in tried]
    if golden["stable"]:
        yield from _set_differences("refused", failed, golden.get("refused", ()))


def _grace_differences(policy: Policy, golden: Json) -> Iterator[str]:
    theirs = {item.get("gracePeriodSeconds") for item in golden["evictions"]}
    if theirs and theirs != {policy.grace_period_seconds}:
        yield f"grace period: theirs {theirs}, ours {policy.grace_period_seconds}"


def _class_of(item: Nomination, snapshot: Snapshot) -> tuple[str, ...]:
    owner = snapshot.owner_of(item.pod)
    return (
        item.profile,
        item.plugin,
        item.pod.metadata.namespace,
        item.node,
        f"{owner.kind}/{owner.name}" if owner else "",
    )


def _class_key(item: Json) -> tuple[str, ...]:
    return tuple(str(item.get(word) or "") for word in ("profile", "plugin", "namespace", "node", "owner"))


def _show(item: Nomination) -> str:
    return f"{item.pod.metadata.namespace}/{item.pod.metadata.name} ({item.plugin})"


def _few(shown: Sequence[str]) -> str:
    rest = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return ", ".join(shown[:_SHOWN]) + rest


# ---- the table


def table(results: Mapping[str, tuple[int, int]]) -> str:
    """Passed and failed by plugin, as text."""
    width = max((len(name) for name in results), default=0)
    lines = [f"{'plugin'.ljust(width)}  passed  failed"]
    lines += [f"{name.ljust(width)}  {good:6}  {bad:6}" for name, (good, bad) in sorted(results.items())]
    return "\n".join(lines)


def compare(cases: Iterable[Case], now: datetime) -> tuple[dict[str, list[str]], dict[str, tuple[int, int]]]:
    """The differences by input, and passed and failed by the plugins that the policies name."""
    found: dict[str, list[str]] = {}
    counts: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for case in cases:
        found[case.name] = differences(case, now)
        for plugin in case.plugins or ("(no plugin)",):
            counts[plugin][bool(found[case.name])] += 1
    return found, {plugin: (good, bad) for plugin, (good, bad) in counts.items()}


def main(arguments: Sequence[str]) -> int:
    """Compare the folder that is named, print, and return 1 if anything differs."""
    if len(arguments) != 1 or not Path(arguments[0]).is_dir():
        sys.stderr.write("usage: python -m tests.golden.compare FOLDER (with cases/ and generated/ in it)\n")
        return 2
    now = datetime.now(UTC).replace(microsecond=0)
    found, by_plugin = compare(read_folder(Path(arguments[0]), now), now)
    failed = {name: wrong for name, wrong in found.items() if wrong}
    lines = [f"{name}: {text}" for name, wrong in failed.items() for text in wrong]
    lines += ["", table(by_plugin), "", f"{len(found) - len(failed)} passed, {len(failed)} failed"]
    sys.stdout.write("\n".join(lines).lstrip("\n") + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
