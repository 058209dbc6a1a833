"""What the running policy's DefaultEvictor has against one pod, read again directly before its eviction. Pure.

Only the pod, its owner and the PDBs of its namespace are read then. So what needs a list of the cluster is left
to the cycle (node fit), or counted by the owner (minReplicas); and what cannot change in the life of a pod is not
looked up again (its volumes' storage classes, its priority against a named PriorityClass).
"""

from collections.abc import Iterable
from datetime import datetime

import msgspec

from decisions.models.fields import fit
from decisions.services.asks import NAME_CHARS
from deschedui.descheduler.evictor import DefaultEvictor, Objection
from deschedui.descheduler.objects import Pod, PodDisruptionBudget
from deschedui.descheduler.plugins.default_evictor_args import SYSTEM_CRITICAL_PRIORITY, DefaultEvictorArgs
from deschedui.descheduler.policy import Policy, PriorityError, Profile
from deschedui.descheduler.snapshot import Snapshot
from deschedui.kube.owners import OwnerView

# The look before the eviction settles this one by itself: a pod that is ending is not evicted.
_TOLD_APART = frozenset({"terminating"})


def profile_of(policy: Policy, name: str) -> Profile | None:
    """The profile of this name, as a decision keeps it; None where the policy has none any more."""
    kept = fit(name, NAME_CHARS)
    return next((profile for profile in policy.profiles if fit(profile.name, NAME_CHARS) == kept), None)


def same_for(before: Policy | None, now: Policy, profile: str) -> bool:
    """Whether two policies say the same about pods of this profile."""
    old = profile_of(before, profile) if before else None
    new = profile_of(now, profile)
    if before is None or old is None or new is None:
        return False
    return _words(old) == _words(new) and before.node_selector == now.node_selector


def _words(profile: Profile) -> tuple[object, ...]:
    """What a profile says, without its place among the others."""
    return (
        profile.deschedule,
        profile.balance,
        profile.filter,
        profile.preevictionfilter,
        dict(profile.args),
        profile.priority_threshold,
    )


def protections(
    profile: Profile,
    pod: Pod,
    *,
    owner: OwnerView | None,
    pdbs: Iterable[PodDisruptionBudget],
    now: datetime,
) -> tuple[str, ...]:
    """Why this pod may not be evicted any more, as sentences; empty where it may."""
    args = msgspec.structs.replace(profile.evictor, node_fit=False, min_replicas=0)
    snapshot = Snapshot.build(nodes=(), pods=(pod,), pdbs=pdbs)
    evictor = DefaultEvictor(snapshot, args, _threshold(profile), now)
    before, after = evictor.fixed(0)
    found = [objection.reason for objection in before + after if _counts(objection, args)]
    return (*found, *_too_few_replicas(profile.evictor, owner))


def _counts(objection: Objection, args: DefaultEvictorArgs) -> bool:
    if objection.check == "pvc" and args.protected_storage_classes:
        return False
    return objection.check not in _TOLD_APART


def _threshold(profile: Profile) -> int:
    try:
        return profile.bind({}).priority_threshold or SYSTEM_CRITICAL_PRIORITY
    except PriorityError:
        return SYSTEM_CRITICAL_PRIORITY


def _too_few_replicas(args: DefaultEvictorArgs, owner: OwnerView | None) -> tuple[str, ...]:
    if args.min_replicas < 2 or owner is None or owner.desired is None or owner.desired >= args.min_replicas:
        return ()
    counts = f"{owner.desired} replica{'' if owner.desired == 1 else 's'}"
    owned = f"belongs to {owner.kind} {owner.name}, which has {counts}"
    return (f"{owned}; the policy evicts from {args.min_replicas} replicas on",)
