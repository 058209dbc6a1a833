"""PodLifeTime: pods that are too old, or in a state that has lasted (the descheduler's semantics, section 5.8)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from deschedui.descheduler import durations
from deschedui.descheduler.objects import Condition, ContainerStatus, Node, Pod
from deschedui.descheduler.plugins.pod_life_time_args import ConditionFilter, PodLifeTimeArgs


def decide(pod: Pod, _node: Node, args: PodLifeTimeArgs, now: datetime) -> str | None:
    """Why the pod should go, as a sentence about it, or None. All criteria that are given must hold."""
    if not _owner_kinds_agree(pod, args):
        return None
    reasons: list[str] = []
    for wanted, find in (
        (args.max_pod_life_time_seconds is not None, _too_old),
        (bool(args.states), _in_state),
        (bool(args.conditions), _in_condition),
        (bool(args.exit_codes), _ended_with),
    ):
        if wanted:
            reason = find(pod, args, now)
            if reason is None:
                return None
            reasons.append(reason)
    return "pod " + " and ".join(reasons) if reasons else None


def _too_old(pod: Pod, args: PodLifeTimeArgs, now: datetime) -> str | None:
    """Strictly older, in whole seconds. A pod without a creation time is the oldest of all."""
    limit = timedelta(seconds=_bounded(args.max_pod_life_time_seconds or 0))
    created = pod.metadata.creation_timestamp
    if created is None:
        return f"has no creation time, the policy allows at most {durations.limit(limit)}"
    age = now - created
    if age < timedelta() or int(age.total_seconds()) <= limit.total_seconds():
        return None
    age_text, limit_text = durations.against(age, limit)
    return f"is {age_text} old, the policy allows at most {limit_text}"


def _in_state(pod: Pod, args: PodLifeTimeArgs, _now: datetime) -> str | None:
    if pod.status.phase in args.states:
        return f"is in phase {pod.status.phase}"
    if pod.status.reason and pod.status.reason in args.states:
        return f"has the status reason {pod.status.reason}"
    for kind, status in _containers(pod, args, ephemeral=args.including_ephemeral_containers):
        state = status.state
        if state.waiting and state.waiting.reason in args.states:
            return f"has {kind} {status.name} waiting with {state.waiting.reason}"
        if state.terminated and state.terminated.reason in args.states:
            return f"has {kind} {status.name} ended with {state.terminated.reason}"
    return None


def _owner_kinds_agree(pod: Pod, args: PodLifeTimeArgs) -> bool:
    chosen, owners = args.owner_kinds, pod.metadata.owner_references
    if chosen is None:
        return True
    if chosen.include:
        return any(owner.kind in chosen.include for owner in owners)
    return not any(owner.kind in chosen.exclude for owner in owners)


def _in_condition(pod: Pod, args: PodLifeTimeArgs, now: datetime) -> str | None:
    for condition in pod.status.conditions:
        if any(_agrees(condition, wanted, now) for wanted in args.conditions):
            return _describe(condition, now)
    return None


def _agrees(condition: Condition, wanted: ConditionFilter, now: datetime) -> bool:
    if wanted.type not in {"", condition.type} or wanted.status not in {"", condition.status}:
        return False
    if wanted.reason not in {"", condition.reason}:
        return False
    least = wanted.min_time_since_last_transition_seconds
    return least is None or _has_lasted(condition, least, now)


def _has_lasted(condition: Condition, seconds: int, now: datetime) -> bool:
    since = condition.last_transition_time
    return since is not None and since <= now and int((now - since).total_seconds()) >= seconds


def _describe(condition: Condition, now: datetime) -> str:
    because = f" ({condition.reason[:100]})" if condition.reason else ""
    since = condition.last_transition_time
    lasting = f" for {durations.human(now - since)}" if since is not None and since <= now else ""
    return f"has had the condition {condition.type}={condition.status}{because}{lasting}"


def _ended_with(pod: Pod, args: PodLifeTimeArgs, _now: datetime) -> str | None:
    for kind, status in _containers(pod, args, ephemeral=False):
        ended = status.state.terminated
        if ended and ended.exit_code in args.exit_codes:
            return f"has {kind} {status.name} ended with exit code {ended.exit_code}"
    return None


def _containers(pod: Pod, args: PodLifeTimeArgs, *, ephemeral: bool) -> Iterator[tuple[str, ContainerStatus]]:
    yield from (("container", status) for status in pod.status.container_statuses)
    if args.including_init_containers:
        yield from (("init container", status) for status in pod.status.init_container_statuses)
    if ephemeral:
        yield from (("ephemeral container", status) for status in pod.status.ephemeral_container_statuses)


def _bounded(seconds: int) -> int:
    """An unsigned 64 bit number may exceed what a timedelta can hold; 3,000 years are never reached."""
    return min(seconds, 100_000_000_000)
