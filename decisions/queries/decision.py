"""One decision with everything around it: why, what would happen, what happened, what else is known."""

import json
import shlex
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Any, Final

import yaml

from decisions.models import (
    OPEN,
    Cluster,
    Decision,
    DecisionEvent,
    Event,
    Permission,
    PolicyVersion,
    Snapshot,
)
from decisions.queries import sentences
from decisions.queries.access import Access
from decisions.queries.inbox import Row, as_rows, related
from decisions.queries.sentences import Advice
from deschedui.descheduler.policy import load
from deschedui.descheduler.policy import policy_lines as lines_in_policy

SYSTEM_NAME: Final = "deschedui"  # services.actors.SYSTEM, as the timeline names it
MOST_OTHERS: Final = 10
MOST_EVENTS: Final = 300
MOST_REPLACEMENTS: Final = 20


@dataclass(frozen=True)
class Moment:
    """A line of the timeline, and how long after the one before it."""

    event: DecisionEvent
    gap: str
    times: int = 1
    """How often in a row: a pod that is nominated in every cycle is one line, not hundreds."""

    @property
    def repeated(self) -> bool:
        """Whether it stands for several."""
        return self.times > 1

    @property
    def by(self) -> str:
        """Who did it; empty where it was nobody but deschedui."""
        asker = self.event.detail.get("asker") if self.event.kind == Event.ASKED else ""
        return str(asker or "") or (self.event.by_name if self.event.by_name != SYSTEM_NAME else "")

    @property
    def said(self) -> str:
        """The reason, as it goes on after the word; one that begins with the word itself does not say it twice."""
        word, reason = self.event.get_kind_display(), self.event.reason
        if not reason:
            return ""
        if not self.repeated and not self.by and reason.lower().startswith(f"{word.lower()} "):
            return reason[len(word) :]
        return f": {reason}"

    @property
    def icon(self) -> str:
        """Its icon."""
        return sentences.EVENTS.get(self.event.kind, "minus")

    @property
    def changes(self) -> list[tuple[str, str, str]]:
        """What was different: (name, before, now)."""
        found = self.event.detail.get("changes") or {}
        return [(name, pair[0], pair[1]) for name, pair in found.items() if len(pair) == 2]

    @property
    def note(self) -> str:
        """What the detail adds to the word."""
        detail = self.event.detail
        if detail.get("caller_may_have_acted"):
            return "the caller may already have acted"
        if detail.get("times"):
            return f"told {detail['times']} times"
        message = str(detail.get("message") or "")
        return message if message != self.event.reason else ""


@dataclass(frozen=True)
class Asked:
    """One extender's outcome, in words."""

    outcome: Mapping[str, Any]

    @property
    def advice(self) -> Advice:
        """What it said or how it failed, and the next step."""
        return sentences.extender_advice(self.outcome)

    @property
    def meant(self) -> str:
        """Which rule made what of a failure."""
        return sentences.what_it_meant(self.outcome)


@dataclass(frozen=True)
class Story:
    """The decision's page."""

    row: Row
    timeline: tuple[Moment, ...]
    others_for_pod: tuple[Row, ...]
    of_workload: tuple[Decision, ...]
    replacement_took: str
    policy_lines: tuple[tuple[int, str], ...]
    pod_yaml: str
    node_yaml: str
    kubectl: tuple[str, ...]
    priority: str

    @property
    def decision(self) -> Decision:
        """The decision itself."""
        return self.row.decision

    @property
    def asked(self) -> tuple[Asked, ...]:
        """Every extender that was asked."""
        return tuple(Asked(outcome) for outcome in self.decision.extenders)

    @property
    def objections(self) -> tuple[str, ...]:
        """What speaks against an approval."""
        return sentences.objections(self.decision)


def find(access: Access, pk: int) -> Decision | None:
    """The decision, if it exists for this person."""
    rows = (
        access.decisions(Permission.VIEW)
        .select_related("cluster", "caller", "cycle", "policy")
        .defer("cycle__document")
    )
    return rows.filter(pk=pk).first()


def story(decision: Decision, access: Access, now: datetime) -> Story:
    """Everything around one decision that this person may see."""
    # In the order of the index by pod: with another one SQLite would read the whole cluster in that.
    open_ones = (
        access.decisions(Permission.VIEW)
        .filter(OPEN, cluster_id=decision.cluster_id, pod_uid=decision.pod_uid)
        .order_by("asker", "-pk")
    )
    rows = as_rows([decision, *related(open_ones.exclude(pk=decision.pk))], access, now)
    pod, node = _bodies(decision)
    return Story(
        row=rows[0],
        timeline=tuple(moments(decision.events.order_by("id")[:MOST_EVENTS])),
        others_for_pod=tuple(rows[1:]),
        of_workload=tuple(_of_workload(decision, access)),
        replacement_took=replacement_took(decision, access),
        policy_lines=policy_lines(decision.policy, decision.profile, decision.plugin),
        pod_yaml=as_yaml(pod),
        node_yaml=as_yaml(node),
        kubectl=kubectl_lines(decision),
        priority=_priority(pod),
    )


def moments(events: Iterable[DecisionEvent]) -> Iterator[Moment]:
    """The timeline with the time between its lines."""
    before: datetime | None = None
    for run in _runs(events):
        gap = sentences.duration((run[0].at - before).total_seconds()) if before else ""
        yield Moment(run[-1], f"+{gap}" if gap and gap != "0s" else "", len(run))
        before = run[-1].at


def _runs(events: Iterable[DecisionEvent]) -> Iterator[list[DecisionEvent]]:
    """Each event by itself; those that were nominated again without a change, in a row, together."""
    run: list[DecisionEvent] = []
    for event in events:
        if run and not (_is_repeat(run[-1]) and _is_repeat(event)):
            yield run
            run = []
        run.append(event)
    if run:
        yield run


def _is_repeat(event: DecisionEvent) -> bool:
    return event.kind == Event.NOMINATED_AGAIN and not event.detail.get("changes")


def _of_workload(decision: Decision, access: Access) -> list[Decision]:
    if not decision.workload:
        return []
    rows = access.decisions(Permission.VIEW).filter(
        cluster_id=decision.cluster_id, namespace=decision.namespace, workload=decision.workload
    )
    return list(rows.exclude(pk=decision.pk).select_related("cluster").order_by("-pk")[:MOST_OTHERS])


def replacement_took(decision: Decision, access: Access) -> str:
    """How long replacements of this workload took before: "38s, at most 2m (of 5)"; empty where none is known."""
    if not decision.workload:
        return ""
    rows = access.decisions(Permission.VIEW).filter(
        cluster_id=decision.cluster_id,
        namespace=decision.namespace,
        workload=decision.workload,
        replacement_ready_at__isnull=False,
    )
    pairs = rows.order_by("-pk").values_list("accepted_at", "ended_at", "replacement_ready_at")[
        :MOST_REPLACEMENTS
    ]
    took = [
        (ready - since).total_seconds()
        for accepted, ended, ready in pairs
        if ready and (since := accepted or ended) and ready >= since
    ]
    if not took:
        return ""
    usual, longest = sentences.duration(median(took)), sentences.duration(max(took))
    return f"{usual}, at most {longest} (of {len(took)})" if len(took) > 1 else usual


def _bodies(decision: Decision) -> tuple[dict[str, Any], dict[str, Any]]:
    keys = {decision.pod_snapshot_id, decision.node_snapshot_id} - {None}
    found = Snapshot.objects.in_bulk(list(keys)) if keys else {}
    return _body(found.get(decision.pod_snapshot_id)), _body(found.get(decision.node_snapshot_id))


def _body(snapshot: Snapshot | None) -> dict[str, Any]:
    if snapshot is None:
        return {}
    try:
        found = json.loads(zlib.decompress(bytes(snapshot.body)))
    except (ValueError, zlib.error):
        return {"unreadable": f"{snapshot} cannot be read"}
    return found if isinstance(found, dict) else {}


def as_yaml(body: Mapping[str, Any]) -> str:
    """As kubectl would print it."""
    return yaml.safe_dump(dict(body), sort_keys=False, allow_unicode=True, width=120) if body else ""


def _priority(pod: Mapping[str, Any]) -> str:
    spec = pod.get("spec") or {}
    name, number = spec.get("priorityClassName"), spec.get("priority")
    if number is None and not name:
        return ""
    return f"{number} ({name})" if name and number is not None else str(name or number)


def kubectl_lines(decision: Decision) -> tuple[str, ...]:
    """What one would type to look for oneself."""
    start = ["kubectl", *_context(decision.cluster), "-n", decision.namespace]
    lines = [
        [*start, "describe", "pod", decision.pod_name],
        [*start, "logs", decision.pod_name, "--all-containers", "--tail=200"],
    ]
    lines += [[*start, "get", "pdb", str(pdb["name"])] for pdb in (decision.forecast or {}).get("pdbs", ())]
    return tuple(shlex.join(line) for line in lines)


def _context(cluster: Cluster) -> list[str]:
    return ["--context", cluster.context] if cluster.context else []


def policy_lines(policy: PolicyVersion | None, profile: str, plugin: str) -> tuple[tuple[int, str], ...]:
    """The policy's own lines that configure this plugin and enable it in this profile, with their numbers."""
    if policy is None or not plugin:
        return ()
    loaded = load(policy.text).policy
    lines = policy.text.splitlines()
    indexes = [each.index for each in loaded.profiles if each.name == profile] if loaded else []
    wanted = {
        number
        for index in indexes
        for span in lines_in_policy(policy.text, index, plugin)
        for number in range(span.start, span.end + 1)
    }
    return tuple((number, lines[number - 1]) for number in sorted(wanted)[:60] if number <= len(lines))


def recent_reasons(user_id: int, team: Iterable[str], *, most: int = 9, mine: int = 5) -> list[str]:
    """The last five reasons of this person, then those set up for the team; each once."""
    rows = (
        DecisionEvent.objects.filter(by_id=user_id, kind__in=("denied", "taken_back"))
        .exclude(reason="")
        .order_by("-id")
        .values_list("reason", flat=True)[:40]
    )
    found = list(dict.fromkeys(rows))[:mine]
    return list(dict.fromkeys([*found, *team]))[:most]
