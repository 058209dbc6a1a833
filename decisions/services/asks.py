"""What is asked for: one pod, by one asker, as immutable values; and how two asks for the same pod differ."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from decisions.models import Caller, Cluster, Cycle, Decision, Executor, PolicyVersion, Snapshot
from decisions.models.fields import fit
from deschedui.extender.outcomes import ExtenderOutcome

POLICY_ASKER = "policy"
NAME_CHARS, REASON_CHARS = 253, 4096


@dataclass(frozen=True)
class Ask:
    """One wish to evict one pod: a nomination of our policy, or a question at a door."""

    cluster: Cluster
    pod_uid: str
    namespace: str
    pod_name: str
    node: str = ""
    asker: str = POLICY_ASKER
    asker_name: str = "our policy"
    caller: Caller | None = None
    executor: str = Executor.US
    owner_kind: str = ""
    owner_name: str = ""
    owner_uid: str = ""
    workload: str = ""
    verified: bool = True
    cycle: Cycle | None = None
    policy: PolicyVersion | None = None
    profile: str = ""
    plugin: str = ""
    reason: str = ""
    grace_period_seconds: int | None = None
    approval_required: bool = True
    outcome: ExtenderOutcome | None = None
    outcomes: tuple[ExtenderOutcome, ...] = ()
    forecast: Mapping[str, Any] = field(default_factory=dict)
    pod_snapshot: Snapshot | None = None
    node_snapshot: Snapshot | None = None

    def facts(self) -> dict[str, Any]:
        """The columns of a decision that say why; written anew each time the pod is nominated.

        As they will be stored: what a column cuts must not count as changed the next time.
        """
        outcome = self.outcome
        facts: dict[str, Any] = {
            "node": fit(self.node, NAME_CHARS),
            "cycle": self.cycle,
            "policy": self.policy,
            "profile": fit(self.profile, NAME_CHARS),
            "plugin": fit(self.plugin, NAME_CHARS),
            "reason": fit(self.reason, REASON_CHARS),
            "grace_period_seconds": self.grace_period_seconds,
            "extender_effect": outcome.effect.value if outcome else "",
            "extender_decided_by": outcome.decided_by if outcome else "",
            "extender_reason": fit(outcome.reason, REASON_CHARS) if outcome else "",
            "failure_mode": outcome.failure_mode.value if outcome and outcome.failure_mode else "",
            "extenders": [each.as_dict() for each in self.outcomes],
            "forecast": dict(self.forecast),
        }
        if self.pod_snapshot is not None:
            facts["pod_snapshot"] = self.pod_snapshot
        if self.node_snapshot is not None:
            facts["node_snapshot"] = self.node_snapshot
        return facts

    def identity(self) -> dict[str, Any]:
        """The columns that say who asks for which pod; written once."""
        return {
            "cluster": self.cluster,
            "asker": self.asker,
            "asker_name": self.asker_name,
            "caller": self.caller,
            "executor": self.executor,
            "pod_uid": self.pod_uid,
            "namespace": self.namespace,
            "pod_name": self.pod_name,
            "owner_kind": self.owner_kind,
            "owner_name": self.owner_name,
            "owner_uid": self.owner_uid,
            "workload": self.workload,
            "verified": self.verified,
        }


def forecast_words(forecast: Mapping[str, Any]) -> str:
    """The part of a forecast that a reviewer decides on, as text: where it fits, what PDBs allow, who is left."""
    if not forecast:
        return ""
    words = ["fits elsewhere" if forecast.get("fits_on") else "no room elsewhere"]
    words += [f"PDB {pdb['name']} allows {pdb['disruptions_allowed']}" for pdb in forecast.get("pdbs", ())]
    if forecast.get("desired") is not None:
        words.append(f"{forecast.get('ready')} of {forecast['desired']} ready")
    return ", ".join(words)


def outcome_words(effect: str, decided_by: str, failure_mode: str) -> str:
    """An extender's outcome as text, without its wording or its latency."""
    return " ".join(part for part in (effect, f"by {decided_by}" if decided_by else "", failure_mode) if part)


def differences(decision: Decision, ask: Ask) -> dict[str, tuple[str, str]]:
    """What a reviewer would be shown now that differs from what the record shows: {name: (before, now)}."""
    facts = ask.facts()
    pairs = {
        "node": (decision.node, facts["node"]),
        "profile": (decision.profile, facts["profile"]),
        "plugin": (decision.plugin, facts["plugin"]),
        "extender": (
            outcome_words(decision.extender_effect, decision.extender_decided_by, decision.failure_mode),
            outcome_words(facts["extender_effect"], facts["extender_decided_by"], facts["failure_mode"]),
        ),
        "forecast": (forecast_words(decision.forecast), forecast_words(facts["forecast"])),
    }
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
