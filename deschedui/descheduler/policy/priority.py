"""The priority threshold: a number, or the name of a PriorityClass that the cluster must have."""

from collections.abc import Mapping

from deschedui.descheduler.plugins.default_evictor_args import SYSTEM_CRITICAL_PRIORITY, DefaultEvictorArgs

PriorityClasses = Mapping[str, int]
"""Names of the cluster's PriorityClasses to their values."""


class PriorityError(ValueError):
    """A threshold that cannot be used. The text is upstream's; ``name`` is the PriorityClass, or ''."""

    def __init__(self, text: str, *, name: str = "") -> None:
        super().__init__(text)
        self.name = name


def named_class(args: DefaultEvictorArgs) -> str:
    """The PriorityClass that must be looked up, or '' if the threshold is a number or not set."""
    threshold = args.priority_threshold
    return threshold.name if threshold and threshold.value is None else ""


def resolve_threshold(args: DefaultEvictorArgs, priority_classes: PriorityClasses) -> int:
    """The priority at and above which pods are protected. Raises PriorityError."""
    name = named_class(args)
    if name and name not in priority_classes:
        text = (
            "unable to get priority value from the priority class: "
            f'priorityclasses.scheduling.k8s.io "{name}" not found'
        )
        raise PriorityError(text, name=name)
    value = priority_classes[name] if name else _written_value(args)
    if value > SYSTEM_CRITICAL_PRIORITY:
        text = f"priority threshold can't be greater than {SYSTEM_CRITICAL_PRIORITY}"
        raise PriorityError(text, name=name)
    return value


def _written_value(args: DefaultEvictorArgs) -> int:
    threshold = args.priority_threshold
    return SYSTEM_CRITICAL_PRIORITY if threshold is None or threshold.value is None else threshold.value
