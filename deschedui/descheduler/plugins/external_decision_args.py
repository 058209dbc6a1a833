"""Arguments of ExternalDecision: who is asked about a nomination, and what their silence means."""

from collections.abc import Iterator
from enum import StrEnum

from deschedui.descheduler.plugins.arg_types import (
    Args,
    ArgsProblem,
    Namespaces,
    namespace_problems,
    selector_problems,
)
from deschedui.descheduler.selectors import LabelSelector
from deschedui.extender.config import ExtenderArgs, FailPolicy, mask_header_value


class Approval(StrEnum):
    """Whether a human has the last word. ``NotRequired`` is a wish; the cluster may not grant it."""

    REQUIRED = "Required"
    NOT_REQUIRED = "NotRequired"


class ExternalDecisionArgs(Args, frozen=True):
    """One extender, or several that must all allow, or none: then a human alone decides.

    ``fail_policy`` is the default of the extenders that name none of their own.
    """

    extender: ExtenderArgs | None = None
    extenders: tuple[ExtenderArgs, ...] = ()
    approval: Approval = Approval.REQUIRED
    fail_policy: FailPolicy | None = None
    namespaces: Namespaces | None = None
    label_selector: LabelSelector | None = None

    @property
    def asked(self) -> tuple[ExtenderArgs, ...]:
        """The extenders in the order written, with the default failPolicy filled in; empty means a human."""
        given = (self.extender, *self.extenders) if self.extender else self.extenders
        return tuple(extender.with_default_fail_policy(self.fail_policy) for extender in given)


def problems(args: ExternalDecisionArgs) -> Iterator[ArgsProblem]:
    """Everything wrong with these arguments; an extender's own fields are judged while they are read."""
    if args.extender and args.extenders:
        yield ArgsProblem("extenders", "only one of extender/extenders can be set")
    yield from namespace_problems(args.namespaces)
    yield from selector_problems(args.label_selector)


def _header_warnings(extender: ExtenderArgs) -> Iterator[str]:
    """A secret does not belong into a policy; what is stored and shown of it is a mask."""
    for name, value in extender.http_headers.items():
        if mask_header_value(value) != value:
            yield (
                f"the value of {name[:100]} stands in the policy, of which only a masked copy is stored: "
                "write ${env:NAME} or ${file:PATH}"
            )


def warnings(args: ExternalDecisionArgs) -> Iterator[ArgsProblem]:
    """What is legal and easily misread."""
    for index, extender in enumerate(args.asked):
        path = "extender" if args.extender else f"extenders[{index}]"
        yield from (ArgsProblem(f"{path}.ignorable", text) for text in extender.warnings())
        yield from (ArgsProblem(f"{path}.httpHeaders", text) for text in _header_warnings(extender))
    if not args.asked and args.fail_policy:
        yield ArgsProblem(
            "failPolicy", "failPolicy has no effect: there is no extender whose call could fail"
        )
    if not args.asked and args.approval is Approval.NOT_REQUIRED:
        text = "approval: NotRequired has no effect: there is no extender, so a human is asked every time"
        yield ArgsProblem("approval", text)
