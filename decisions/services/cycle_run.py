"""One cycle from its policy to its decisions: read, list, plan, ask, plan again, record.

The same code runs a dry run, which takes no lock and leaves no decision. Whatever ends a cycle early is an
:class:`Ended` with a sentence that says what to do; nothing that was recorded before is undone.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from django.conf import settings

from decisions.models import Cluster, CycleState, Freeze, documents
from decisions.services import connections, cycle_record, freezes, policies
from decisions.services.cycle_asking import (
    Asking,
    Bodies,
    Clients,
    ConfigError,
    ExtenderClientFactory,
    needs_whole_pods,
    would_wait,
)
from decisions.services.cycle_record import Known, Recorder, Room, Seen
from decisions.services.cycle_row import CycleRow
from deschedui.descheduler.policy.model import Policy
from deschedui.descheduler.policy.priority import PriorityError
from deschedui.descheduler.results import Answer, Nomination, Plan, QuestionKey
from deschedui.descheduler.rounds import NOT_ASKED, decide
from deschedui.descheduler.snapshot import Snapshot
from deschedui.extender.outcomes import FailureMode
from deschedui.kube.errors import ConfigError as ClusterConfigError
from deschedui.kube.errors import Forbidden, KubeError, Stopped, Unauthorized
from deschedui.kube.lists import SnapshotLists

MAX_WARNINGS = 200


class ReadsCluster(policies.ReadsConfigMaps, Protocol):
    """What a cycle asks of a cluster; ``deschedui.kube.client.ClusterClient`` is one."""

    def snapshot_lists(
        self, should_stop: Callable[[], bool] = ..., *, keep_raw: bool = False
    ) -> SnapshotLists:
        """All that a cycle reads."""


@dataclass
class Ended(Exception):  # noqa: N818 - a cycle that ends early is an outcome
    """The cycle cannot go on; ``sentence`` stands on its page."""

    sentence: str
    state: str = CycleState.FAILED
    failure_mode: str = ""

    def __str__(self) -> str:
        return self.sentence


@dataclass
class CycleRun:
    """The work of one claimed cycle."""

    row: CycleRow
    client: ReadsCluster
    factory: ExtenderClientFactory

    @property
    def cluster(self) -> Cluster:
        """The cluster as it was when the cycle was claimed."""
        return self.row.cycle.cluster

    def go(self) -> None:
        """Run it to its end. Raises Ended, Lost, Disarmed."""
        running = self._read_policy()
        warnings = self._first_warnings(running)
        with self._clients(running) as clients:
            self.row.write(policy=running.version, warnings=warnings)
            lists = self._list(running.policy)
            snapshot = Snapshot.build(**lists.as_arguments())
            raw = {**lists.raw_pods, **lists.raw_nodes}
            bound = _bound(running.policy, snapshot)
            seen = Seen(bound, running.version, snapshot, raw, read_at=self.row.now())
            self._decide(seen, clients, warnings)

    # ---- reading

    def _read_policy(self) -> policies.Running:
        with self.row.step("policy") as step:
            try:
                running = policies.prepare(cluster=self.cluster, client=self.client, now=self.row.now())
            except policies.NoPolicy as problem:
                raise Ended(f"There is no policy that could run. {problem}") from problem
            step["detail"] = f"version {running.version.number} from {running.version.source}"
        return running

    def _clients(self, running: policies.Running) -> Clients:
        if lost := running.masked_headers:
            raise Ended(
                "The last good policy has header values or tokens that are only kept masked, so its extenders cannot "
                f"be asked ({', '.join(lost)}). Correct the policy at its source, and write ${{env:NAME}} or "
                "${file:PATH} in httpHeaders for such values.",
                failure_mode=FailureMode.CONFIG_ERROR,
            )
        try:
            return Clients(running.policy, self.factory)
        except ConfigError as problem:
            raise Ended(
                f"An extender cannot be built, so nothing was nominated. {problem}. "
                "Correct the policy, or what it names on this machine.",
                failure_mode=FailureMode.CONFIG_ERROR,
            ) from problem

    def _list(self, policy: Policy) -> SnapshotLists:
        with self.row.step("list") as step:
            keep_raw = self._asks and needs_whole_pods(policy)
            try:
                lists = self.client.snapshot_lists(self._should_stop, keep_raw=keep_raw)
            except Stopped as stopped:
                raise Ended(
                    "The cluster could not be listed before the cycle's deadline; nothing was nominated.",
                    CycleState.INCOMPLETE,
                ) from stopped
            except KubeError as problem:
                if isinstance(problem, connections.UNUSABLE):
                    connections.record_problem(self.cluster.pk, problem=str(problem), now=self.row.now())
                raise Ended(_cluster_sentence(problem)) from problem
            connections.record_contact(self.cluster.pk, now=self.row.now())
            step["detail"] = f"{len(lists.nodes)} nodes, {len(lists.pods)} pods"
        self.row.write(counts={"nodes": len(lists.nodes), "pods": len(lists.pods)})
        return lists

    def _should_stop(self) -> bool:
        self.row.beat("listing the cluster")
        return self.row.out_of_time

    @property
    def _asks(self) -> bool:
        return not self.row.cycle.dry or self.cluster.settings.dry_run_asks_extenders

    # ---- deciding

    def _decide(self, seen: Seen, clients: Clients, warnings: list[str]) -> None:
        row = self.row
        frozen = freezes.active(self.cluster.pk)
        known = cycle_record.known(self.cluster, row.now())
        asking = Asking(
            policy=seen.policy,
            clients=clients,
            bodies=Bodies(seen.snapshot, seen.raw),
            row=row,
            frozen=frozen is not None,
            unattended=self.cluster.settings.unattended,
            concurrency=settings.ENV.extender_concurrency,
        )
        plan, would_ask = self._plan(seen, known, asking)
        recorder = Recorder(
            row=row,
            seen=seen,
            known=known,
            heard=asking.heard,
            frozen=frozen_sentence(frozen),
            room=Room.of(self.cluster),
            would_ask=would_ask,
            unasked=_unasked(plan),
        )
        self._record(plan, recorder, warnings)

    def _plan(self, seen: Seen, known: Known, asking: Asking) -> tuple[Plan, frozenset[QuestionKey]]:
        """The plan when all is answered, and the questions that a dry run left unasked on purpose."""
        row, would_ask = self.row, set[QuestionKey]()

        def ask(questions: Sequence[Nomination]) -> Mapping[QuestionKey, Answer]:
            if self._asks:
                return asking(questions)
            answers = would_wait(questions, seen.policy)
            would_ask.update(answers)
            return answers

        started = row.now()
        row.write(step="plan", progress="")
        plan = decide(
            seen.policy,
            seen.snapshot,
            known.answers,
            row.began,
            ask,
            concurrency=asking.concurrency,
            out_of_time=lambda: row.out_of_time,
        )
        row.add_step("plan", (row.now() - started).total_seconds() - asking.seconds, _plan_words(plan))
        row.add_step("ask", asking.seconds, f"{len(asking.heard)} pods")
        return plan, frozenset(would_ask)

    def _record(self, plan: Plan, recorder: Recorder, warnings: list[str]) -> None:
        row, unasked = self.row, recorder.unasked
        row.write(counts=_counts(plan, recorder))
        with row.step("record") as step:
            recorder.record(cycle_record.effective(plan.nominations))
            withdrawn = 0
            if not (row.cycle.dry or unasked or plan.skipped_cycle):
                withdrawn = cycle_record.withdraw_unwanted(row=row, plan=plan, opened=recorder.known.open)
            step["detail"] = f"{withdrawn} withdrawn" if withdrawn else ""
        document = documents.build(plan.filtered, recorder.lines)
        row.end(
            CycleState.INCOMPLETE if unasked else CycleState.COMPLETED,
            counts=_counts(plan, recorder) | {"withdrawn": withdrawn},
            limits=[*_limits(plan), *recorder.room.limits()],
            warnings=[*warnings, *_late_warnings(plan, recorder)][:MAX_WARNINGS],
            unasked=len(unasked),
            error=_unasked_sentence(len(unasked)),
            document=documents.pack(document),
        )

    def _first_warnings(self, running: policies.Running) -> list[str]:
        frozen = freezes.active(self.cluster.pk)
        return [
            *running.notes,
            *([frozen_sentence(frozen)] if frozen else []),
            *_policy_warnings(running.version.warnings),
        ]


def frozen_sentence(frozen: Freeze | None) -> str:
    """That a freeze holds, and whose; empty where none does."""
    if frozen is None:
        return ""
    return f"Frozen by {frozen.set_by} since {frozen.set_at:%F %H:%M} UTC: {frozen.reason}"


def _bound(policy: Policy, snapshot: Snapshot) -> Policy:
    classes = {name: found.value for name, found in snapshot.priority_classes.items()}
    try:
        return policy.bind(classes)
    except PriorityError as problem:
        advice = (
            f"Make the PriorityClass {problem.name} in the cluster, or name another one"
            if problem.name
            else "Lower it"
        )
        sentence = f"The priority threshold cannot be used: {problem}. {advice} in DefaultEvictor's args."
        raise Ended(sentence) from problem


def _cluster_sentence(problem: KubeError) -> str:
    advice = "The next cycle tries again."
    if isinstance(problem, ClusterConfigError):
        advice = "Correct kubeconfig and context in the cluster's settings."
    elif isinstance(problem, Unauthorized):
        advice = "Renew the credentials of the cluster's kubeconfig or service account."
    elif isinstance(problem, Forbidden) and problem.resource:
        advice = (
            f"Give our service account the right to {problem.verb} {problem.resource}; deploy/ has the roles."
        )
    return f"The cluster could not be listed: {str(problem).rstrip('.')}. {advice}"


def _plan_words(plan: Plan) -> str:
    counts = plan.counts
    return f"{counts.seen} pods seen, {counts.eligible} eligible, {counts.nominated} nominated"


def _unasked(plan: Plan) -> frozenset[QuestionKey]:
    return frozenset(
        nomination.key
        for nomination in plan.nominations
        if nomination.asks and nomination.answer is not None and nomination.answer.reason == NOT_ASKED
    )


def _unasked_sentence(number: int) -> str:
    if not number:
        return ""
    return (
        f"The cycle's time was over: {number} nominated pods were not asked about. The next cycle asks again."
    )


def _counts(plan: Plan, recorder: Recorder) -> dict[str, int]:
    states = Counter(line.state for line in recorder.lines)
    counts = plan.counts
    return {
        "nodes": counts.nodes,
        "pods": counts.seen,
        "eligible": counts.eligible,
        "nominated": counts.nominated,
        "asked": len({uid for _, uid in recorder.heard}),
        "would_ask": states["would_ask"],
        "allowed": states["allowed"] + states["blocked"],
        "waiting": states["waiting"],
        "denied": states["denied"],
        "skipped": states["skipped"],
        "unasked": states["unasked"],
        "held_back": counts.held_back + states["held_back"],
        "filtered": len(plan.filtered),
    }


def _limits(plan: Plan) -> list[dict[str, Any]]:
    return [
        {
            "kind": hit.kind,
            "name": hit.name,
            "limit": hit.limit,
            "heldBack": hit.held_back,
            "filledBy": [int(decision) for decision in hit.filled_by[:50]],
        }
        for hit in plan.limits
    ]


def _policy_warnings(warnings: Sequence[Mapping[str, Any]]) -> list[str]:
    """What is to be said about the policy, each sentence once, with the first place it is about."""
    places: dict[str, list[str]] = {}
    for warning in warnings:
        places.setdefault(str(warning.get("message") or ""), []).append(str(warning.get("path") or ""))
    return [f"Policy{_where(paths)}: {message}" for message, paths in places.items()]


def _where(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f", {paths[0]}{more}" if paths[0] else ""


def _late_warnings(plan: Plan, recorder: Recorder) -> list[str]:
    found = [f"The cycle did nothing: it {plan.skipped_cycle}."] if plan.skipped_cycle else []
    for warning, pods in recorder.warnings.items():
        more = f" and {len(pods) - 3} more" if len(pods) > 3 else ""
        found.append(f"{warning} ({', '.join(pods[:3])}{more})")
    return found
