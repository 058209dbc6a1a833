"""The order of rules for a new nomination (design.md section 5), as one pure function.

Rules that concern what is already on record (a human's denial in its cool-down, an approval, a back-off)
are found by ``services.verdicts`` before it asks this one.
"""

from dataclasses import dataclass

from decisions.models.enums import Rule, Verdict
from deschedui.extender.outcomes import Effect, ExtenderOutcome, FailureMode


@dataclass(frozen=True)
class Ruling:
    """A verdict and the rule that gave it."""

    verdict: Verdict
    rule: Rule


PENDING = Ruling(Verdict.PENDING, Rule.NONE)


def rule_on(
    outcome: ExtenderOutcome | None, *, frozen: bool, approval_required: bool, unattended: str
) -> Ruling:
    """What becomes of a nomination about which nothing is on record.

    Args:
        outcome: what the extenders said together; None where a human is the extender.
        frozen: a freeze takes the place of any yes that no human gave.
        approval_required: the plugin's ``approval`` is Required (the default).
        unattended: the cluster's setting: off, answers or failures.
    """
    if outcome is not None and outcome.effect is Effect.DENY:
        return Ruling(Verdict.DENIED, Rule.EXTENDER)
    if outcome is not None and outcome.effect is Effect.SKIP:
        return Ruling(Verdict.SKIPPED, Rule.EXTENDER)
    if outcome is None or frozen or approval_required or not _unattended_yes(outcome, unattended):
        return PENDING
    return Ruling(Verdict.ALLOWED, Rule.UNATTENDED)


def _unattended_yes(outcome: ExtenderOutcome, unattended: str) -> bool:
    if outcome.failure_mode is None:
        return unattended in {"answers", "failures"}
    # An open circuit asked nobody about this pod: it always waits for a human.
    return unattended == "failures" and outcome.failure_mode is not FailureMode.CIRCUIT_OPEN
