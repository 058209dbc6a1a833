"""ExternalDecision: every pod that the filters let through, or a gate on what other plugins nominate.

As a ``deschedule`` plugin it nominates; as ``filter`` or ``preevictionfilter`` it only makes the profile's
nominations questions. What is asked and what an answer means is not the engine's matter: a plan lists the
questions, and takes the answers.
"""

from __future__ import annotations

from datetime import datetime

from deschedui.descheduler.objects import Node, Pod
from deschedui.descheduler.plugins.external_decision_args import ExternalDecisionArgs


def decide(_pod: Pod, _node: Node, args: ExternalDecisionArgs, _now: datetime) -> str:
    """The reason for nominating; every pod is."""
    asked = "the extender" if len(args.asked) == 1 else "the extenders" if args.asked else "a human"
    return f"ExternalDecision asks {asked} about every pod that the filters let through"
