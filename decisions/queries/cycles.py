"""Reads about cycles, for pages and API: the list, one cycle's funnel and lists, when the next one is due.

Lists inside a cycle show the namespaces that the reader may see; the funnel's totals are the cluster's.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.db.models import Count, Q, QuerySet

from decisions.models import Cluster, Cycle, CycleState, Decision, Eviction, Permission, Verdict, documents
from decisions.models.documents import Document, Nominated
from decisions.queries.access import Access

MOST_DECISIONS: Final = 10_000  # as many as fit into one query of every database


@dataclass(frozen=True)
class Loss:
    """Pods that got no further, and why: ``412 DaemonSet pods``."""

    count: int
    words: str
    check: str = ""
    """Names the list that shows them; empty where there is none."""


@dataclass(frozen=True)
class FunnelStep:
    """One step of the funnel: how many came so far, and what was lost on the way to the next."""

    key: str
    label: str
    count: int
    losses: tuple[Loss, ...] = ()


@dataclass(frozen=True)
class FilteredPod:
    """A pod that was left alone, with every objection as a clause about it."""

    uid: str
    namespace: str
    name: str
    node: str
    profile: str
    plugin: str
    check: str
    reason: str
    more: tuple[str, ...] = ()


@dataclass(frozen=True)
class Detail:
    """One cycle with its lists, as one person may see them."""

    cycle: Cycle
    document: Document
    namespaces: frozenset[str]
    """Those of the lists' namespaces that this person may see."""
    verdicts: Mapping[str, int] = field(default_factory=dict)
    evictions: Mapping[str, int] = field(default_factory=dict)
    hits: Sequence[Mapping[str, Any]] = ()
    warnings: Sequence[str] = ()

    @property
    def nominations(self) -> list[Nominated]:
        """What it nominated, in the plan's order."""
        return [row for row in self.document.nominations if row.namespace in self.namespaces]

    def nominated(self, state: str) -> list[Nominated]:
        """Those nominations that ended in this state (``documents.Nominated.state``)."""
        return [row for row in self.nominations if row.state == state]

    def filtered(self, check: str = "") -> list[FilteredPod]:
        """What it filtered out, for one kind of reason or for all."""
        sentences = self.document.sentences
        return [
            FilteredPod(
                uid=row.uid,
                namespace=row.namespace,
                name=row.name,
                node=row.node,
                profile=row.profile,
                plugin=row.plugin,
                check=row.check,
                reason=sentences[row.reason],
                more=tuple(sentences[place] for place in row.more),
            )
            for row in self.document.filtered
            if row.namespace in self.namespaces and (not check or row.check == check)
        ]

    @property
    def reasons(self) -> tuple[Loss, ...]:
        """Why pods were filtered out, with counts of what this person may see, the most frequent first."""
        found = [
            Loss(self._visible(reason.by_namespace), reason.words, reason.check)
            for reason in self.document.reasons
        ]
        return tuple(sorted((loss for loss in found if loss.count), key=lambda loss: -loss.count))

    @property
    def funnel(self) -> tuple[FunnelStep, ...]:
        """Pods seen, eligible, nominated, asked, allowed, evicted."""
        counts = self.cycle.counts
        evicted = self.evictions.get(Eviction.EVICTED, 0)
        return (
            FunnelStep("pods", "seen", counts.get("pods", 0), self.reasons),
            FunnelStep("eligible", "eligible", counts.get("eligible", 0), self._not_nominated()),
            FunnelStep("nominated", "nominated", counts.get("nominated", 0), self._not_allowed()),
            FunnelStep("asked", "asked", counts.get("asked", 0) + counts.get("would_ask", 0)),
            FunnelStep("allowed", "allowed", self._allowed(), self._not_evicted()),
            FunnelStep("evicted", "evicted", evicted),
        )

    def _allowed(self) -> int:
        """As the decisions stand now; a dry run left none."""
        return (
            self.cycle.counts.get("allowed", 0) if self.cycle.dry else self.verdicts.get(Verdict.ALLOWED, 0)
        )

    def _not_nominated(self) -> tuple[Loss, ...]:
        counts = self.cycle.counts
        by_limits = sum(
            hit["heldBack"] for hit in self.cycle.limits if hit["kind"] in {"total", "node", "namespace"}
        )
        unwanted = counts.get("eligible", 0) - counts.get("nominated", 0) - by_limits
        return _losses(
            (unwanted, "that no plugin wants to evict"), (by_limits, "held back by the policy's limits")
        )

    def _not_allowed(self) -> tuple[Loss, ...]:
        words = {
            "waiting": "waiting for a human",
            "denied": "denied",
            "skipped": "skipped by their extender's failure policy",
            "unasked": "not asked before the deadline",
            "held_back": "not recorded, because enough wait already",
        }
        counts = ((state, self._visible(self.document.states.get(state, {}))) for state in words)
        return tuple(Loss(count, words[state], state) for state, count in counts if count)

    def _visible(self, by_namespace: Mapping[str, int]) -> int:
        return sum(count for namespace, count in by_namespace.items() if namespace in self.namespaces)

    def _not_evicted(self) -> tuple[Loss, ...]:
        return _losses(
            *(
                (number, status.replace("_", " "))
                for status, number in self.evictions.items()
                if status != "evicted"
            )
        )

    @property
    def limits(self) -> list[str]:
        """The limits that were hit, a sentence each."""
        return [limit_sentence(hit) for hit in self.hits]


def _losses(*pairs: tuple[int, str]) -> tuple[Loss, ...]:
    return tuple(Loss(count, words) for count, words in pairs if count > 0)


def limit_sentence(hit: Mapping[str, Any]) -> str:
    """``The policy's limit of 2 for node n1 held back 5 pods; decisions 17 and 18 take its places.``"""
    limit, held, name = hit["limit"], hit["heldBack"], hit["name"]
    pods = f"{held} pod{'' if held == 1 else 's'}"
    if hit["kind"] == "waiting":
        return f"{limit} decisions wait at most on this cluster: {pods} not recorded."
    if hit["kind"] == "owner":
        return f"{limit} decisions of one owner wait at most: {pods} of {name} not recorded."
    where = f" for {hit['kind']} {name}" if name else ""
    filled = [str(decision) for decision in hit["filledBy"]]
    verb = "takes" if len(filled) == 1 else "take"
    shown = ", ".join(filled[:5]) + (f" and {len(filled) - 5} more" if len(filled) > 5 else "")
    by = f"; open decision{'' if len(filled) == 1 else 's'} {shown} {verb} its places" if filled else ""
    return f"The policy's limit of {limit}{where} held back {pods}{by}."


# What services.cycle_run adds to a warning: the first pods that it is about.
_PODS = re.compile(r" \((?P<pods>[a-z0-9.-]+/[^()]*)\)$")


def visible_warnings(access: Access, cycle: Cycle) -> list[str]:
    """The cycle's warnings; pods of namespaces that are not this reader's stay unnamed."""
    return [_without_strangers(access, cycle, str(warning)) for warning in cycle.warnings]


def _without_strangers(access: Access, cycle: Cycle, warning: str) -> str:
    found = _PODS.search(warning)
    named = {pod.split("/")[0] for pod in found["pods"].split(", ")} if found else set()
    if all(access.may(Permission.VIEW, cycle.cluster_id, namespace) for namespace in named):
        return warning
    return _PODS.sub("", warning)


def visible_limits(access: Access, cycle: Cycle) -> list[dict[str, Any]]:
    """The limits that were hit; those of namespaces and owners only where they are this reader's to see."""
    if access.may(Permission.VIEW, cycle.cluster_id):
        return list(cycle.limits)
    return [
        hit
        for hit in cycle.limits
        if hit["kind"] not in {"namespace", "owner"}
        or (hit["kind"] == "namespace" and access.may(Permission.VIEW, cycle.cluster_id, hit["name"]))
    ]


def listing(access: Access, *, cluster: Cluster | None = None) -> "QuerySet[Cycle]":
    """The cycles that this person may see, newest first, without their documents."""
    rows = access.cycles().select_related("cluster", "policy", "started_by").defer("document")
    return rows.filter(cluster=cluster) if cluster else rows


def latest(access: Access, cluster: Cluster) -> Cycle | None:
    """The cluster's newest cycle that ran or runs; a skipped tick did not."""
    return listing(access, cluster=cluster).exclude(state=CycleState.SKIPPED).first()


def detail(access: Access, cycle_id: int) -> Detail | None:
    """One cycle with its lists; None where there is none for this person."""
    cycle = access.cycles().select_related("cluster", "policy", "started_by").filter(pk=cycle_id).first()
    if cycle is None:
        return None
    document = documents.unpack(cycle.document)
    decisions = decisions_of(access, cycle, document)
    return Detail(
        cycle=cycle,
        document=document,
        namespaces=_visible(access, cycle.cluster_id, document),
        verdicts=_counted(decisions, "verdict"),
        evictions=_counted(decisions.filter(verdict=Verdict.ALLOWED), "eviction"),
        hits=visible_limits(access, cycle),
        warnings=visible_warnings(access, cycle),
    )


def decisions_of(access: Access, cycle: Cycle, document: Document) -> "QuerySet[Decision]":
    """The decisions behind what a cycle nominated, as they stand now.

    By the cycle's own list: a decision itself names only the last cycle that nominated its pod again.
    """
    if cycle.dry:
        return access.decisions(queryset=Decision.objects.none())
    named = sorted({row.decision for row in document.nominations if row.decision})[:MOST_DECISIONS]
    wanted = Q(pk__in=named) if named else Q(cycle=cycle)
    return access.decisions(queryset=Decision.objects.filter(wanted))


def _visible(access: Access, cluster_id: int, document: Document) -> frozenset[str]:
    there = {row.namespace for row in document.nominations}
    there |= {namespace for reason in document.reasons for namespace in reason.by_namespace}
    there |= {namespace for by_namespace in document.states.values() for namespace in by_namespace}
    return frozenset(name for name in there if access.may(Permission.VIEW, cluster_id, name))


def _counted(decisions: "QuerySet[Decision]", column: str) -> dict[str, int]:
    return dict(decisions.order_by().values_list(column).annotate(number=Count("pk")))
