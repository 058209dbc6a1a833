"""Asking the extenders of a policy within one cycle: who is asked what, in which order, and what it means."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import msgspec
from django.conf import settings

from decisions.models import Verdict
from decisions.services.cycle_row import CycleRow
from decisions.services.rules import rule_on
from deschedui.descheduler import objects
from deschedui.descheduler.plugins.external_decision_args import Approval
from deschedui.descheduler.policy.model import Policy, Profile
from deschedui.descheduler.results import Answer, AnswerKind, Nomination, QuestionKey
from deschedui.descheduler.snapshot import Snapshot
from deschedui.extender.breaker import DEFAULT_LIMIT as BREAKER_LIMIT
from deschedui.extender.breaker import Breakers
from deschedui.extender.client import ExtenderClient, ExtenderRequest, FileRules
from deschedui.extender.config import ExtenderArgs
from deschedui.extender.errors import ConfigErrors
from deschedui.extender.outcomes import ExtenderOutcome, combine

ExtenderClientFactory = Callable[[Sequence[ExtenderArgs]], ExtenderClient]

# Calls at most between two looks at the circuit breaker, as a multiple of those in flight: enough to keep them busy.
MOST_IN_A_ROUND = 4


class ConfigError(Exception):
    """An extender cannot be built: the whole cycle ends before anything is nominated."""


def build_client(extenders: Sequence[ExtenderArgs]) -> ExtenderClient:
    """An extender client under this installation's rules about files, variables and hosts.

    Raises:
        ConfigErrors: it cannot be built.
    """
    env = settings.ENV
    folder = Path(env.extender_files) if env.extender_files else None
    rules = FileRules(
        folder=folder,
        env_allow=frozenset(env.extender_header_env),
        file_allow=(folder,) if folder else (),
        hosts_allow=frozenset(env.extender_hosts) or None,
    )
    return ExtenderClient(extenders, files=rules, concurrency=env.extender_concurrency)


@dataclass(frozen=True)
class Heard:
    """What the extenders of a profile said about one pod."""

    outcome: ExtenderOutcome
    outcomes: tuple[ExtenderOutcome, ...]


class Clients:
    """The extender clients of a policy's profiles, built together and closed together."""

    def __init__(self, policy: Policy, factory: ExtenderClientFactory) -> None:
        self._stack = ExitStack()
        self.by_profile: dict[int, ExtenderClient] = {}
        problems: list[str] = []
        for profile in _asking(policy):
            try:
                client = factory(_extenders(profile))
            except ConfigErrors as errors:
                problems += [f"profile {profile.name}: {problem}" for problem in errors.problems]
            else:
                self.by_profile[profile.index] = self._stack.enter_context(client)
        if problems:
            self._stack.close()
            raise ConfigError("; ".join(problems))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._stack.close()


def _extenders(profile: Profile) -> tuple[ExtenderArgs, ...]:
    decision = profile.external_decision
    return decision.asked if decision else ()


def _asking(policy: Policy) -> Iterator[Profile]:
    return (profile for profile in policy.profiles if _extenders(profile))


def needs_whole_pods(policy: Policy) -> bool:
    """Whether some extender is sent the pod itself, not only its name."""
    return any(
        not extender.pod_reference_only for profile in _asking(policy) for extender in _extenders(profile)
    )


@dataclass(frozen=True)
class Bodies:
    """Pods and nodes as extenders get them: the bytes that the API server sent, by UID."""

    snapshot: Snapshot
    raw: Mapping[str, msgspec.Raw]

    def request(self, nomination: Nomination, *, whole: bool) -> ExtenderRequest:
        """The question about one pod; ``whole`` for an extender that does not want its name alone."""
        pod, node = nomination.pod, self.snapshot.node(nomination.node)
        return ExtenderRequest(
            pod=self._body(pod, "Pod") if whole else b"{}",
            node=self._body(node, "Node") if whole and node else None,
            name=pod.metadata.name,
            namespace=pod.metadata.namespace,
        )

    def _body(self, found: objects.Pod | objects.Node, kind: str) -> bytes:
        raw = self.raw.get(found.metadata.uid)
        # In a list the API server leaves kind and apiVersion out.
        return _typed(objects.encode(found) if raw is None else bytes(raw), kind)


def _typed(body: bytes, kind: str) -> bytes:
    if b'"kind":"%b"' % kind.encode() in body[:200] or not body.startswith(b"{"):
        return body
    rest = body[1:].lstrip()
    head = b'{"apiVersion":"v1","kind":"%b"' % kind.encode()
    return head + (b"}" if rest.startswith(b"}") else b"," + rest)


@dataclass
class Asking:
    """The ``ask`` of :func:`deschedui.descheduler.rounds.decide` for one cycle; remembers what was heard."""

    policy: Policy
    clients: Clients
    bodies: Bodies
    row: CycleRow
    frozen: bool
    unattended: str
    concurrency: int
    heard: dict[QuestionKey, Heard] = field(default_factory=dict)
    seconds: float = 0.0
    _breakers: dict[int, Breakers] = field(default_factory=dict)
    _sizes: dict[int, int] = field(default_factory=dict)

    def __call__(self, questions: Sequence[Nomination]) -> dict[QuestionKey, Answer]:
        """Ask about these, in the plan's order; those for which time was over are left out."""
        started = self.row.now()
        self.row.beat(f"asking extenders: {len(self.heard)} pods answered", step="ask")
        answers: dict[QuestionKey, Answer] = {}
        for index in dict.fromkeys(question.profile_index for question in questions):
            mine = [question for question in questions if question.profile_index == index]
            while mine and not self.row.out_of_time:
                size = self._size(index)
                answers |= self._ask_some(self.policy.profiles[index], mine[:size])
                mine = mine[size:]
        self.seconds += (self.row.now() - started).total_seconds()
        return answers

    def _size(self, index: int) -> int:
        """How many to ask before the circuit breaker is looked at again.

        It begins with as many failures as open it and doubles from round to round; after a failure it is what
        is left to that number. So a dead extender is left alone at once, and a living one is kept busy.
        """
        most = MOST_IN_A_ROUND * self.concurrency
        each = self._breakers[index].each if index in self._breakers else ()
        failing = max((breaker.in_a_row for breaker in each if not breaker.is_open), default=0)
        wanted = BREAKER_LIMIT - failing if failing else self._sizes.get(index, BREAKER_LIMIT)
        self._sizes[index] = min(most, 2 * wanted)
        return min(most, wanted)

    def _ask_some(self, profile: Profile, questions: Sequence[Nomination]) -> dict[QuestionKey, Answer]:
        extenders = _extenders(profile)
        whole = any(not extender.pod_reference_only for extender in extenders)
        breakers = self._breakers.get(profile.index) or Breakers.closed(len(extenders))
        results = self.clients.by_profile[profile.index].ask(
            [self.bodies.request(question, whole=whole) for question in questions],
            deadline_seconds=self.row.seconds_left,
            should_stop=self._should_stop,
            breakers=breakers,
        )
        self._breakers[profile.index] = breakers.after(results)
        for question, outcomes in zip(questions, results, strict=True):
            if outcomes is not None:
                self.heard[question.key] = Heard(combine(outcomes), outcomes)
        return {
            question.key: self._meaning(profile, self.heard[question.key].outcome)
            for question, outcomes in zip(questions, results, strict=True)
            if outcomes is not None
        }

    def _should_stop(self) -> bool:
        self.row.beat(f"asking extenders: {len(self.heard)} pods answered")
        return False

    def _meaning(self, profile: Profile, outcome: ExtenderOutcome) -> Answer:
        ruling = rule_on(
            outcome,
            frozen=self.frozen,
            approval_required=approval_required(profile),
            unattended=self.unattended,
        )
        return Answer(_KINDS[ruling.verdict], outcome_sentence(outcome))


_KINDS = {
    Verdict.DENIED: AnswerKind.DENIED,
    Verdict.SKIPPED: AnswerKind.SKIPPED,
    Verdict.ALLOWED: AnswerKind.ALLOWED,
    Verdict.PENDING: AnswerKind.WAITING,
}


def approval_required(profile: Profile) -> bool:
    """Whether a human has the last word, as far as the policy is concerned."""
    decision = profile.external_decision
    return decision is None or decision.approval is Approval.REQUIRED


def outcome_sentence(outcome: ExtenderOutcome) -> str:
    """What the extenders' side said, for the list of a cycle."""
    verb = {"allow": "allows it", "deny": "denies it", "skip": "is left out of it"}[outcome.effect.value]
    by = "" if outcome.decided_by.value == "answer" else f" by {outcome.decided_by.value}"
    return f"the extender {verb}{by}" + (f": {outcome.reason}" if outcome.reason else "")


def would_wait(questions: Sequence[Nomination], policy: Policy) -> dict[QuestionKey, Answer]:
    """What a dry run that asks nobody takes for answers: it would wait for them."""
    return {
        question.key: Answer(
            AnswerKind.WAITING,
            "would ask "
            + ", ".join(each.url for each in _extenders(policy.profiles[question.profile_index])),
        )
        for question in questions
    }
