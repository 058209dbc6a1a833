"""Arguments of RemovePodsViolatingNodeTaints: which taints a pod must tolerate to stay."""

from collections.abc import Iterator

from deschedui.descheduler.plugins.arg_types import (
    Args,
    ArgsProblem,
    Namespaces,
    namespace_problems,
    selector_problems,
)
from deschedui.descheduler.selectors import LabelSelector


class RemovePodsViolatingNodeTaintsArgs(Args, frozen=True):
    """Taints are ``key`` or ``key=value``. ``included_taints`` None means all taints, empty means none."""

    namespaces: Namespaces | None = None
    label_selector: LabelSelector | None = None
    include_prefer_no_schedule: bool = False
    excluded_taints: tuple[str, ...] = ()
    included_taints: tuple[str, ...] | None = None


def problems(args: RemovePodsViolatingNodeTaintsArgs) -> Iterator[ArgsProblem]:
    """Everything wrong with these arguments, in upstream's order and words."""
    yield from namespace_problems(args.namespaces)
    yield from selector_problems(args.label_selector)
    if args.excluded_taints and args.included_taints:
        text = "either includedTaints or excludedTaints can be set, but not both"
        yield ArgsProblem("includedTaints", text)


def warnings(args: RemovePodsViolatingNodeTaintsArgs) -> Iterator[ArgsProblem]:
    """What is legal and hardly meant."""
    if args.included_taints == ():
        yield ArgsProblem(
            "includedTaints",
            "includedTaints is an empty list: no taint counts and nothing is nominated; "
            "remove the key to look at all taints",
        )
