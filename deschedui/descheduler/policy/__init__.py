"""The policy document: reading, judging and showing it.

``load`` is the way in; ``Policy`` is what the engine plans with.
"""

from deschedui.descheduler.policy.lines import Lines, policy_lines
from deschedui.descheduler.policy.load import LoadResult, load
from deschedui.descheduler.policy.masking import masked_text
from deschedui.descheduler.policy.model import Limits, Policy, Profile
from deschedui.descheduler.policy.nodes import MAX_CHARACTERS
from deschedui.descheduler.policy.priority import PriorityError
from deschedui.descheduler.policy.report import Problem

__all__ = [
    "MAX_CHARACTERS",
    "Limits",
    "Lines",
    "LoadResult",
    "Policy",
    "PriorityError",
    "Problem",
    "Profile",
    "load",
    "masked_text",
    "policy_lines",
]
