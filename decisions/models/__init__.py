"""The record: clusters, policies, cycles, decisions with their timeline, and who may."""

from decisions.models.access import ApiToken, Caller, CallerToken, RoleBinding
from decisions.models.clusters import Cluster, Freeze, PolicyVersion
from decisions.models.cycles import Cycle
from decisions.models.decisions import OPEN, Decision, Snapshot
from decisions.models.enums import (
    COMMITTED,
    ENDED,
    OCCUPYING,
    PERMISSIONS,
    RECALLABLE,
    CycleKind,
    CycleState,
    Event,
    Eviction,
    Executor,
    Permission,
    Role,
    Rule,
    Verdict,
)
from decisions.models.record import INSTALLATION, AuditEntry, Chain, DecisionEvent
from decisions.models.running import Heartbeat, Preference, TeamReason
from decisions.models.sessions import Session
from decisions.models.settings import ClusterSettings

__all__ = [
    "COMMITTED",
    "ENDED",
    "INSTALLATION",
    "OCCUPYING",
    "OPEN",
    "PERMISSIONS",
    "RECALLABLE",
    "ApiToken",
    "AuditEntry",
    "Caller",
    "CallerToken",
    "Chain",
    "Cluster",
    "ClusterSettings",
    "Cycle",
    "CycleKind",
    "CycleState",
    "Decision",
    "DecisionEvent",
    "Event",
    "Eviction",
    "Executor",
    "Freeze",
    "Heartbeat",
    "Permission",
    "PolicyVersion",
    "Preference",
    "Role",
    "RoleBinding",
    "Rule",
    "Session",
    "Snapshot",
    "TeamReason",
    "Verdict",
]
