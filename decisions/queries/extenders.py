"""Extenders: each with its effective URL, its configuration in words, and how it answered lately."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from decisions.models import Cluster, Decision, Permission, PolicyVersion
from decisions.queries import sentences
from decisions.queries.access import Access
from decisions.queries.sentences import Advice
from deschedui.descheduler.plugins.external_decision_args import Approval, ExternalDecisionArgs
from deschedui.descheduler.policy import load
from deschedui.extender.config import ExtenderArgs, FailPolicy

LOOKED_AT: Final = 1000
SHOWN: Final = 10


@dataclass(frozen=True)
class Answer:
    """One answer, or one failure, of an extender."""

    decision: Decision
    outcome: Mapping[str, Any]

    @property
    def advice(self) -> Advice:
        """In words, with the next step."""
        return sentences.extender_advice(self.outcome)


@dataclass
class Extender:
    """One extender of a policy, or one that only past decisions still know (``args`` None)."""

    url: str
    cluster: str
    profile: str = ""
    args: ExtenderArgs | None = None
    plugin: ExternalDecisionArgs | None = None
    answers: list[Answer] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    latencies: list[float] = field(default_factory=list)

    @property
    def words(self) -> list[str]:
        """The configuration in sentences."""
        return configuration_words(self.args, self.plugin) if self.args and self.plugin else []

    @property
    def failures(self) -> list[tuple[str, int]]:
        """Failure modes by how often they came."""
        return [(mode, number) for mode, number in self.counts.most_common() if mode not in {"allow", "deny"}]

    @property
    def total(self) -> int:
        """Calls that were looked at."""
        return sum(self.counts.values())

    @property
    def failed(self) -> int:
        """Calls without a good answer."""
        return sum(number for _, number in self.failures)

    @property
    def latency(self) -> str:
        """ "38 ms, slowest 2.0 s"."""
        if not self.latencies:
            return ""
        ordered = sorted(self.latencies)
        return f"{sentences.ms(ordered[len(ordered) // 2])}, slowest {sentences.ms(ordered[-1])}"


def configuration_words(args: ExtenderArgs, plugin: ExternalDecisionArgs) -> list[str]:
    """What a configuration means, sentence by sentence."""
    body = "only the pod's name and namespace" if args.pod_reference_only else "the pod and its node"
    found = [
        f"Gets {body}, and has {sentences.ms(args.timeout_seconds * 1000)} for the whole exchange.",
        _failing(args),
    ]
    found.append(_tls(args))
    if args.http_headers:
        found.append(
            f"Headers sent: {sentences.listed(sorted(args.http_headers))}; their values are not shown."
        )
    if plugin.approval is Approval.NOT_REQUIRED:
        found.append("approval: NotRequired: its answer is final where the cluster's unattended permits it.")
    else:
        found.append("A human decides after it (approval: Required).")
    return found


def _failing(args: ExtenderArgs) -> str:
    if args.ignorable:
        return (
            "ignorable: a call that fails counts as a yes, evict although nobody answered. "
            "A malformed answer never does."
        )
    meaning = {
        FailPolicy.DENY: "a call that fails is a denial, which a human may override",
        FailPolicy.ALLOW: "a call that fails counts as a yes",
        FailPolicy.IGNORE: "a call that fails leaves the pod alone this cycle",
    }
    return f"failPolicy {args.fail_policy}: {meaning[args.fail_policy]}."


def _tls(args: ExtenderArgs) -> str:
    if not args.https:
        return "Plain HTTP: nothing is encrypted and nobody is authenticated."
    against = "the CA of caCertFile" if args.tls_config.ca_cert_file else "the system's CAs"
    name = f", name {args.tls_config.server_name}" if args.tls_config.server_name else ""
    mine = "; a client certificate is sent" if args.tls_config.cert_file else ""
    return f"HTTPS, verified against {against}{name}{mine}."


def extenders(access: Access, clusters: Iterable[Cluster]) -> list[Extender]:
    """Every extender of the policies that run, and those that recent decisions asked."""
    found: list[Extender] = []
    for cluster in clusters:
        configured = _configured(cluster)
        by_url = defaultdict(list)
        for extender in configured:
            by_url[extender.url].append(extender)
        for answer in _recent(access, cluster):
            url = str(answer.outcome.get("url") or "")
            if url not in by_url:
                by_url[url].append(Extender(url=url, cluster=cluster.name))
                configured.append(by_url[url][0])
            for extender in by_url[url]:
                _add(extender, answer)
        found += configured
    return found


def _configured(cluster: Cluster) -> list[Extender]:
    running = PolicyVersion.objects.filter(cluster=cluster, valid=True).first()
    policy = load(running.text).policy if running else None
    return [
        Extender(
            url=args.url,
            cluster=cluster.name,
            profile=profile.name,
            args=args,
            plugin=profile.external_decision,
        )
        for profile in (policy.profiles if policy else ())
        if profile.external_decision
        for args in profile.external_decision.asked
    ]


def _recent(access: Access, cluster: Cluster) -> Iterable[Answer]:
    """Outcomes of the newest decisions, newest first; a bounded look at one index."""
    rows = access.decisions(Permission.VIEW).filter(cluster=cluster).order_by("-created_at", "-id")
    wanted = rows.only(
        "pk",
        "namespace",
        "pod_name",
        "created_at",
        "nominated_at",
        "extenders",
        "cluster_id",
        "extender_effect",
    )
    for row in wanted[:LOOKED_AT]:
        for outcome in row.extenders:
            yield Answer(row, outcome)


def _add(extender: Extender, answer: Answer) -> None:
    outcome = answer.outcome
    extender.counts[str(outcome.get("failure_mode") or outcome.get("effect"))] += 1
    if outcome.get("latency_ms"):
        extender.latencies.append(float(outcome["latency_ms"]))
    if len(extender.answers) < SHOWN:
        extender.answers.append(answer)
