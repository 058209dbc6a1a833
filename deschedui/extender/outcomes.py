"""What an extender's answer, or its silence, means for a pod: the truth table of the protocols. Pure.

    exchange ── interpret_response ─▶ Observation ── apply_policy ─▶ ExtenderOutcome ── combine ─▶ one

                                     ignorable: false            ignorable: true
    allow: true, no error            allow (answer)              allow (answer)
    allow: false                     deny (answer)               deny (answer)
    invalid_response                 failPolicy, never allow     failPolicy, never allow
    any other failure                failPolicy                  allow (ignorable)

An outcome is stored apart from the verdict: an allow that came from a failure still waits for a human unless
the cluster says otherwise, and one of `circuit_open` always does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final, Self

from deschedui.extender.answers import InvalidAnswer, read_answer
from deschedui.extender.config import FailPolicy
from deschedui.extender.texts import REASON_LIMIT, clean, clean_bytes


class FailureMode(StrEnum):
    """How a call failed."""

    TIMEOUT = "timeout"
    CONNECTION = "connection"
    DNS = "dns"
    TLS = "tls"
    HTTP_STATUS = "http_status"
    EXTENDER_ERROR = "extender_error"
    INVALID_RESPONSE = "invalid_response"
    CIRCUIT_OPEN = "circuit_open"
    CONFIG_ERROR = "config_error"  # ends the whole cycle; never the mode of a single outcome


class Effect(StrEnum):
    """What the extender's side of the matter is: the verdict is made elsewhere."""

    ALLOW = "allow"
    DENY = "deny"
    SKIP = "skip"


class DecidedBy(StrEnum):
    """Which rule made the effect."""

    ANSWER = "answer"
    IGNORABLE = "ignorable"
    FAIL_POLICY = "failPolicy"
    MALFORMED = "malformed"  # failPolicy Allow met a malformed answer, which is never an allow


@dataclass(frozen=True, slots=True)
class Answered:
    """The extender answered within the protocol."""

    allow: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The call failed. `reason` are the extender's words where it has some, `detail` is what we saw."""

    mode: FailureMode
    detail: str
    reason: str = ""
    http_status: int | None = None


Observation = Answered | Failed

_SENTENCES: Final[Mapping[FailureMode, str]] = {
    FailureMode.TIMEOUT: "the extender did not answer in time",
    FailureMode.CONNECTION: "the connection to the extender failed",
    FailureMode.DNS: "the extender's name does not resolve",
    FailureMode.TLS: "the encrypted connection to the extender failed",
    FailureMode.HTTP_STATUS: "the extender answered with an HTTP status other than 200",
    FailureMode.EXTENDER_ERROR: "the extender reported an error",
    FailureMode.INVALID_RESPONSE: "the extender's answer is malformed",
    FailureMode.CIRCUIT_OPEN: "the extender failed too often in a row and was not asked",
    FailureMode.CONFIG_ERROR: "the extender's configuration cannot be used",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtenderOutcome:
    """One extender's outcome for one pod, as it is stored beside the decision."""

    effect: Effect
    decided_by: DecidedBy
    failure_mode: FailureMode | None = None
    reason: str = ""
    detail: str = ""
    http_status: int | None = None
    latency_ms: float = 0.0
    url: str = ""
    fail_policy: FailPolicy = FailPolicy.DENY
    ignorable: bool = False

    @property
    def allowed_by_failure(self) -> bool:
        """A yes that nobody said: ignorable or failPolicy made it out of a failure."""
        return self.effect is Effect.ALLOW and self.failure_mode is not None

    @property
    def always_needs_human(self) -> bool:
        """A yes that waits for a human whatever the cluster's `unattended` says."""
        return self.allowed_by_failure and self.failure_mode is FailureMode.CIRCUIT_OPEN

    def as_dict(self) -> dict[str, Any]:
        """For a JSON column."""
        return asdict(self)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """Back from `as_dict`. Raises ValueError or TypeError for what it never wrote."""
        mode = stored.get("failure_mode")
        enums = {
            "effect": Effect(stored["effect"]),
            "decided_by": DecidedBy(stored["decided_by"]),
            "failure_mode": None if mode is None else FailureMode(mode),
            "fail_policy": FailPolicy(stored["fail_policy"]),
        }
        return cls(**{**stored, **enums})


def interpret_response(
    status: int, body: bytes, *, content_encoding: str = "", location: str = ""
) -> Observation:
    """What a complete exchange says. `body` may be cut behind the first MiB, then it counts as too large."""
    encoded = content_encoding.strip().lower() not in {"", "identity"}
    if status != 200:
        return _other_status(
            status, f"a body in {clean(content_encoding, 50)}" if encoded else body, location
        )
    if encoded:
        why = f"the body is encoded as {clean(content_encoding, 50)}, which was not asked for"
        return Failed(FailureMode.INVALID_RESPONSE, why, http_status=status)
    try:
        answer = read_answer(body)
    except InvalidAnswer as error:
        return Failed(FailureMode.INVALID_RESPONSE, str(error), http_status=status)
    if answer.error and answer.allow:
        return Failed(
            FailureMode.EXTENDER_ERROR, clean(answer.error, 300), reason=answer.error, http_status=status
        )
    return Answered(answer.allow, answer.reason or answer.error)


def _other_status(status: int, body: bytes | str, location: str) -> Failed:
    shown = body if isinstance(body, str) else clean_bytes(body).strip()
    moved = f", redirects are not followed (to {_without_query(location)})" if location else ""
    return Failed(
        FailureMode.HTTP_STATUS,
        f"HTTP {status}{moved}" + (f": {shown}" if shown else ", without a body"),
        http_status=status,
    )


def _without_query(location: str) -> str:
    return clean(location.split("?", 1)[0].split("#", 1)[0], 200)


def apply_policy(
    seen: Observation,
    *,
    ignorable: bool,
    fail_policy: FailPolicy,
    latency_ms: float = 0.0,
    url: str = "",
) -> ExtenderOutcome:
    """The row of the table that `seen` belongs to."""
    effect, decided_by = effect_of(seen, ignorable=ignorable, fail_policy=fail_policy)
    failed = seen if isinstance(seen, Failed) else None
    return ExtenderOutcome(
        effect=effect,
        decided_by=decided_by,
        failure_mode=failed.mode if failed else None,
        reason=clean(seen.reason or (_SENTENCES[failed.mode] if failed else ""), REASON_LIMIT),
        detail=clean(failed.detail, REASON_LIMIT) if failed else "",
        http_status=failed.http_status if failed else 200,
        latency_ms=round(latency_ms, 3),
        url=url,
        fail_policy=fail_policy,
        ignorable=ignorable,
    )


_BY_FAIL_POLICY: Final[Mapping[FailPolicy, Effect]] = {
    FailPolicy.DENY: Effect.DENY,
    FailPolicy.ALLOW: Effect.ALLOW,
    FailPolicy.IGNORE: Effect.SKIP,
}


def effect_of(seen: Observation, *, ignorable: bool, fail_policy: FailPolicy) -> tuple[Effect, DecidedBy]:
    """Effect and the rule that made it. A malformed answer is never an allow."""
    if isinstance(seen, Answered):
        return (Effect.ALLOW if seen.allow else Effect.DENY), DecidedBy.ANSWER
    malformed = seen.mode is FailureMode.INVALID_RESPONSE
    if malformed and fail_policy is FailPolicy.ALLOW:
        return Effect.DENY, DecidedBy.MALFORMED
    if ignorable and not malformed:
        return Effect.ALLOW, DecidedBy.IGNORABLE
    return _BY_FAIL_POLICY[fail_policy], DecidedBy.FAIL_POLICY


def _doubt(outcome: ExtenderOutcome) -> tuple[bool, bool]:
    return outcome.always_needs_human, outcome.allowed_by_failure


def combine(outcomes: Sequence[ExtenderOutcome]) -> ExtenderOutcome:
    """The outcome that stands for all extenders of a plugin: any denial, then any skip, then allow.

    Among several allows the most doubtful one stands, so that one real yes does not hide another's failure.
    """
    if not outcomes:
        raise ValueError("nobody was asked: there is nothing to combine")
    for effect in (Effect.DENY, Effect.SKIP):
        if found := next((each for each in outcomes if each.effect is effect), None):
            return found
    return max(outcomes, key=_doubt)
