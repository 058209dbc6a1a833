"""Arguments of PodLifeTime: which pods are too old, or in a state that has lasted."""

from collections.abc import Iterator

from deschedui.descheduler.plugins.arg_types import (
    Args,
    ArgsProblem,
    Int32,
    Namespaces,
    OwnerKinds,
    Uint,
    namespace_problems,
    selector_problems,
    unknown_words,
    words_hint,
)
from deschedui.descheduler.selectors import LabelSelector

STATES = (
    "Completed", "ContainerCannotRun", "ContainerCreating", "CrashLoopBackOff",
    "CreateContainerConfigError", "CreateContainerError", "DeadlineExceeded", "ErrImagePull", "Error",
    "Evicted", "Failed", "ImagePullBackOff", "InvalidImageName", "NodeAffinity", "NodeLost", "OOMKilled",
    "Pending", "PodInitializing", "Running", "Shutdown", "StartError", "Succeeded",
    "UnexpectedAdmissionError", "Unknown",
)  # fmt: skip
"""Every word that ``states`` may contain: phases, and reasons of pods and containers."""


class ConditionFilter(Args, frozen=True):
    """A pod condition to look for; every field that is set must agree, and at least one must be set."""

    type: str = ""
    status: str = ""
    reason: str = ""
    min_time_since_last_transition_seconds: Uint | None = None


class PodLifeTimeArgs(Args, frozen=True):
    """All criteria that are given must hold. ``max_pod_life_time_seconds`` may be 0; None is no criterion."""

    namespaces: Namespaces | None = None
    label_selector: LabelSelector | None = None
    owner_kinds: OwnerKinds | None = None
    max_pod_life_time_seconds: Uint | None = None
    states: tuple[str, ...] = ()
    conditions: tuple[ConditionFilter, ...] = ()
    exit_codes: tuple[Int32, ...] = ()
    including_init_containers: bool = False
    including_ephemeral_containers: bool = False


def problems(args: PodLifeTimeArgs) -> Iterator[ArgsProblem]:
    """Everything wrong with these arguments, in upstream's order and words."""
    yield from namespace_problems(args.namespaces)
    if args.owner_kinds and args.owner_kinds.include and args.owner_kinds.exclude:
        yield ArgsProblem("ownerKinds", "only one of Include/Exclude ownerKinds can be set")
    yield from selector_problems(args.label_selector)
    if unknown := unknown_words(args.states, STATES):
        text = f"states must be one of [{' '.join(STATES)}]"
        yield ArgsProblem("states", text, words_hint(unknown, STATES))
    yield from _condition_problems(args.conditions)
    if not _has_criterion(args):
        yield ArgsProblem(
            "",
            "at least one filtering criterion must be specified "
            "(maxPodLifeTimeSeconds, states, conditions, or exitCodes)",
        )


def _condition_problems(conditions: tuple[ConditionFilter, ...]) -> Iterator[ArgsProblem]:
    wanted = "at least one of type, status, reason, or minTimeSinceLastTransitionSeconds must be set"
    for index, condition in enumerate(conditions):
        if condition == ConditionFilter():
            yield ArgsProblem(f"conditions[{index}]", f"conditions[{index}]: {wanted}")


def _has_criterion(args: PodLifeTimeArgs) -> bool:
    return args.max_pod_life_time_seconds is not None or bool(
        args.states or args.conditions or args.exit_codes
    )
