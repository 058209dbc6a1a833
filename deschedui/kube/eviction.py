"""The Eviction call, as data: what is sent, and what each answer means. Pure: nothing here does I/O.

``policy/v1``, ``POST /api/v1/namespaces/<ns>/pods/<name>/eviction``. One status code has several causes
(429 alone has five), so an answer is told apart by its headers, its ``Status`` and its text, in the order of
the rules below. The texts are those of the API server's eviction handler
(``pkg/registry/core/pod/storage/eviction.go``), of its admission
(``plugin/webhook/errors/statuserror.go``) and of its RBAC authorizer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Literal

from deschedui.descheduler.objects import PodDisruptionBudget
from deschedui.kube.answers import (
    RawAnswer,
    StatusBody,
    StatusCause,
    missing_right,
    retry_after_seconds,
    server_time,
    status_of,
    text_of,
)
from deschedui.kube.text import mask_urls, one_line, sentence

EvictionStatus = Literal[
    "accepted", "evicted", "gone", "blocked", "queued", "failed", "in_background", "unknown"
]

MAX_REASON: Final = 1000
MAX_WHO: Final = 200
MAX_TRIES: Final = 5
FIRST_BACKOFF_SECONDS: Final = 30.0
LONGEST_BACKOFF_SECONDS: Final = 600.0
DEFAULT_THROTTLE_SECONDS: Final = 10.0
# What KubeVirt and the descheduler agreed on: the pod is being moved by somebody else.
IN_BACKGROUND_TEXT: Final = "Eviction triggered evacuation"


class EvictionCause(StrEnum):
    """Why an eviction has the status it has; the machine word beside the sentence."""

    CREATED = "created"
    NOT_FOUND = "not_found"
    REPLACED = "replaced"
    CONFLICT = "conflict"
    PDB = "pdb"
    PDB_NOT_PROCESSED = "pdb_not_processed"
    PDB_UNUSABLE = "pdb_unusable"
    SEVERAL_PDBS = "several_pdbs"
    THROTTLED = "throttled"
    IN_BACKGROUND = "in_background"
    WEBHOOK_BLOCKED = "webhook_blocked"
    WEBHOOK_DENIED = "webhook_denied"
    WEBHOOK_UNAVAILABLE = "webhook_unavailable"
    NAMESPACE_TERMINATING = "namespace_terminating"
    RBAC = "rbac"
    UNAUTHORIZED = "unauthorized"
    NO_ANSWER = "no_answer"
    OTHER = "other"


class Again(StrEnum):
    """Whether and when the same eviction is tried again."""

    NO = "no"
    FOLLOW = "follow"  # under way: watch the UID, do not send again
    BACKOFF = "backoff"  # from 30 s, until the decision expires
    AFTER = "after"  # after ``retry_after`` seconds, until the decision expires
    LIMITED = "limited"  # up to ``max_tries`` times, then it has failed
    BY_HAND = "by_hand"  # a button; not by itself
    CREDENTIALS = "credentials"  # when the cluster's credentials work again


@dataclass(frozen=True, slots=True)
class EvictionRequest:
    """One eviction to send.

    Args:
        uid: the UID that was approved; the API server evicts no other pod of this name.
        grace_period_seconds: ``None`` leaves it to the pod.
        annotations: see :func:`eviction_annotations`.
        dry_run: the API server goes through all of it and changes nothing.

    Raises:
        ValueError: no UID, or a negative grace period.
    """

    namespace: str
    name: str
    uid: str
    grace_period_seconds: int | None = None
    annotations: Mapping[str, str] = field(default_factory=dict)
    dry_run: bool = False

    def __post_init__(self) -> None:
        if not self.uid:
            raise ValueError(f"an eviction of {self.namespace}/{self.name} needs the pod's UID")
        if self.grace_period_seconds is not None and self.grace_period_seconds < 0:
            raise ValueError(f"gracePeriodSeconds must not be negative: {self.grace_period_seconds}")

    def body(self) -> dict[str, Any]:
        """The ``Eviction`` object."""
        options: dict[str, Any] = {"preconditions": {"uid": self.uid}}
        if self.grace_period_seconds is not None:
            options["gracePeriodSeconds"] = self.grace_period_seconds
        if self.dry_run:
            options["dryRun"] = ["All"]
        metadata: dict[str, Any] = {"name": self.name, "namespace": self.namespace}
        if self.annotations:
            metadata["annotations"] = dict(self.annotations)
        return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata, "deleteOptions": options}


def eviction_annotations(*, profile: str, plugin: str, reason: str, approved_by: str) -> dict[str, str]:
    """Who asks for the eviction and why, in the stock descheduler's form; bounded and on one line."""
    strategy = f"{one_line(profile, MAX_WHO)}/{one_line(plugin, MAX_WHO)}"
    why, who = one_line(reason, MAX_REASON), one_line(approved_by, MAX_WHO)
    return {"reason": f"triggered by {strategy}: {why}; approved by {who}", "requested-by": "deschedui"}


@dataclass(frozen=True, slots=True)
class EvictionResult:
    """What an answer means for the eviction.

    Args:
        status: ``unknown`` asks for a look at the pod, see :func:`resolve`.
        message: one sentence for people.
        retry_after: seconds that the server asked to wait, or ``None``.
        max_tries: for ``Again.LIMITED``.
        pdb: the PDB that blocks, where it is known; ``pdbs``: every one that covers the pod.
        webhook: the admission webhook that denied, or could not be called.
        verb, resource: the missing right.
        unconfirmed: the server did not say so; we looked.
        slows_cluster: the whole cluster's carry-out slows down.
        holds_namespace: what is queued for this namespace would fail alike and is held.
        server_time: when the server answered, by the clock that also dates the pods it makes.
    """

    status: EvictionStatus
    code: EvictionCause
    message: str
    again: Again
    retry_after: float | None = None
    max_tries: int | None = None
    pdb: str = ""
    pdbs: tuple[str, ...] = ()
    webhook: str = ""
    verb: str = ""
    resource: str = ""
    http_status: int = 0
    unconfirmed: bool = False
    slows_cluster: bool = False
    holds_namespace: bool = False
    dry_run: bool = False
    server_time: datetime | None = None

    def as_dict(self) -> dict[str, Any]:
        """JSON-serialisable, for the timeline."""
        at = self.server_time.isoformat() if self.server_time else ""
        return asdict(self) | {"pdbs": list(self.pdbs), "server_time": at}


EvictionAnswer = EvictionResult


# ---- which PDBs cover a pod


def matching_pdbs(
    pdbs: Iterable[PodDisruptionBudget], *, namespace: str, labels: Mapping[str, str]
) -> tuple[str, ...]:
    """Names of the PDBs that cover a pod, sorted. An empty selector covers all pods, an absent one none."""
    return tuple(
        sorted(
            pdb.metadata.name
            for pdb in pdbs
            if pdb.metadata.namespace in {namespace, ""}
            and pdb.spec.selector is not None
            and pdb.spec.selector.matches(labels)
        )
    )


# ---- what an answer means


@dataclass(frozen=True, slots=True)
class _Seen:
    """An answer with what was read out of it once."""

    answer: RawAnswer
    status: StatusBody | None
    pod: str
    pdbs: tuple[str, ...]

    @property
    def code(self) -> int:
        return self.answer.status

    @property
    def text(self) -> str:
        return text_of(self.answer, self.status)

    @property
    def retry_after(self) -> float | None:
        return retry_after_seconds(self.answer, self.status)

    def cause(self, reason: str) -> StatusCause | None:
        causes = self.status.causes() if self.status else ()
        return next((cause for cause in causes if cause.reason == reason), None)


_Rule = Callable[[_Seen], EvictionResult | None]

_DENIED: Final = re.compile(
    r'\s*admission webhook "(?P<name>[^"]{1,253})" denied the request'
    r"(?:: (?P<text>.*)| without explanation)?",
    re.DOTALL,
)
_CALLING: Final = re.compile(r'failed (?:calling|to call) webhook "(?P<name>[^"]{1,253})"')
_PDB_NAME: Final = re.compile(
    r"disruption budget (?P<name>[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)\b", re.IGNORECASE
)
_OTHER_UID: Final = re.compile(r"UID in (?:the )?precondition", re.IGNORECASE)
_PDB_KINDS: Final = frozenset({"poddisruptionbudget", "poddisruptionbudgets"})


def interpret(
    answer: RawAnswer,
    *,
    namespace: str = "",
    name: str = "",
    pdbs: Iterable[PodDisruptionBudget] = (),
    labels: Mapping[str, str] | None = None,
    dry_run: bool = False,
) -> EvictionResult:
    """What the API server's answer to an eviction means: the table of the protocol, one rule a row.

    Args:
        namespace, name: of the pod, for the message.
        pdbs: the PDBs of its namespace, where they are known; named when several cover the pod.
        labels: the pod's labels.
    """
    covering = matching_pdbs(pdbs, namespace=namespace, labels=labels or {})
    seen = _Seen(answer, status_of(answer.body), f"{namespace}/{name}".strip("/") or "the pod", covering)
    found = next(result for rule in _RULES if (result := rule(seen)) is not None)
    return replace(
        found,
        http_status=answer.status,
        pdbs=covering,
        dry_run=dry_run,
        server_time=server_time(answer),
    )


def _no_answer(seen: _Seen) -> EvictionResult | None:
    if seen.code not in {0, 502, 503, 504}:
        return None
    if seen.status is not None and _DENIED.match(seen.text):
        return None
    if seen.status is not None and _CALLING.search(seen.text):
        return None
    why = seen.answer.no_answer if seen.code == 0 else f"HTTP {seen.code}: {sentence(seen.text, 300)}"
    return _look(EvictionCause.NO_ANSWER, f"no answer from the API server ({one_line(why, 400)})")


def _created(seen: _Seen) -> EvictionResult | None:
    failure = seen.status is not None and seen.status.status == "Failure"
    is_json = seen.answer.body.lstrip()[:1] == b"{"
    if failure or not (seen.code == 201 or (seen.code == 200 and is_json)):
        return None
    return EvictionResult(
        "accepted", EvictionCause.CREATED, "accepted by the API server; the pod is ending", Again.FOLLOW
    )


def _in_background(seen: _Seen) -> EvictionResult | None:
    if seen.code != 429 or IN_BACKGROUND_TEXT not in seen.text:
        return None
    return EvictionResult(
        "in_background",
        EvictionCause.IN_BACKGROUND,
        f"is being moved in the background: {sentence(seen.text)}",
        Again.FOLLOW,
        webhook=_denier(seen),
    )


def _denier(seen: _Seen) -> str:
    found = _DENIED.match(seen.text)
    return found["name"] if found else ""


def _webhook_denied(seen: _Seen) -> EvictionResult | None:
    found = _DENIED.match(seen.text)
    if not found or seen.status is None or not 400 <= seen.code < 500:
        return None
    text = sentence(found["text"] or "") or "it gave no explanation"
    message = f'admission webhook "{found["name"]}" denied the eviction: {text}'
    if seen.code == 429:
        return EvictionResult(
            "blocked", EvictionCause.WEBHOOK_BLOCKED, message, Again.BACKOFF, webhook=found["name"]
        )
    return EvictionResult(
        "failed", EvictionCause.WEBHOOK_DENIED, message, Again.BY_HAND, webhook=found["name"]
    )


def _blocked_by_pdb(seen: _Seen) -> EvictionResult | None:
    cause = seen.cause("DisruptionBudget")
    told = "violate the pod's disruption budget" in seen.text and seen.status is not None
    if seen.code != 429 or not (cause or told):
        return None
    text = sentence((cause.message if cause else None) or seen.text)
    pdb = _pdb_name(text, seen)
    if seen.retry_after is not None:
        message = f"PDB {pdb} is not processed yet: {text}" if pdb else f"PDB not processed yet: {text}"
        return EvictionResult(
            "blocked", EvictionCause.PDB_NOT_PROCESSED, message, Again.AFTER, seen.retry_after, pdb=pdb
        )
    message = f"blocked by PDB {pdb}: {text}" if pdb else f"blocked by a PDB: {text}"
    return EvictionResult("blocked", EvictionCause.PDB, message, Again.BACKOFF, pdb=pdb)


def _pdb_name(text: str, seen: _Seen) -> str:
    found = _PDB_NAME.search(text)
    if found:
        return found["name"]
    return seen.pdbs[0] if len(seen.pdbs) == 1 else ""


def _throttled(seen: _Seen) -> EvictionResult | None:
    if seen.code != 429:
        return None
    return EvictionResult(
        "queued",
        EvictionCause.THROTTLED,
        f"API server is throttling: {sentence(seen.text, 300) or 'no explanation'}",
        Again.AFTER,
        seen.retry_after or DEFAULT_THROTTLE_SECONDS,
        slows_cluster=True,
    )


def _not_found(seen: _Seen) -> EvictionResult | None:
    # A bare 404 may be a proxy or a wrong address; only the API server can say that the pod is gone.
    if seen.code != 404 or seen.status is None:
        return None
    return EvictionResult(
        "gone", EvictionCause.NOT_FOUND, f"{seen.pod} was gone before the eviction", Again.NO
    )


def _conflict(seen: _Seen) -> EvictionResult | None:
    if seen.code != 409:
        return None
    if _OTHER_UID.search(seen.text):
        return _replaced(seen.pod)
    return _look(EvictionCause.CONFLICT, f"conflict: {sentence(seen.text) or 'no explanation'}")


def _replaced(pod: str) -> EvictionResult:
    message = (
        f"{pod} was replaced before the eviction: its uid is another one, the new pod needs its own decision"
    )
    return EvictionResult("gone", EvictionCause.REPLACED, message, Again.NO)


def _namespace_terminating(seen: _Seen) -> EvictionResult | None:
    told = seen.status is not None and "because it is being terminated" in seen.text
    if seen.code != 403 or not (seen.cause("NamespaceTerminating") or told):
        return None
    message = f"the namespace of {seen.pod} is being terminated, and its pods with it"
    return EvictionResult("gone", EvictionCause.NAMESPACE_TERMINATING, message, Again.NO)


def _rbac(seen: _Seen) -> EvictionResult | None:
    right = missing_right(seen.text) if seen.code == 403 else None
    if right is None:
        return None
    verb, resource = right
    message = f"the cluster does not let us {verb} {resource}: {sentence(seen.text)}"
    return EvictionResult(
        "failed",
        EvictionCause.RBAC,
        message,
        Again.BY_HAND,
        verb=verb,
        resource=resource,
        holds_namespace=True,
    )


def _pdb_unusable(seen: _Seen) -> EvictionResult | None:
    status = seen.status
    if seen.code != 403 or status is None or status.detail_kind.lower() not in _PDB_KINDS:
        return None
    pdb = one_line((status.details.name if status.details else None) or "", 253)
    return EvictionResult(
        "blocked", EvictionCause.PDB_UNUSABLE, f"PDB {pdb}: {sentence(seen.text)}", Again.BACKOFF, pdb=pdb
    )


def _unauthorized(seen: _Seen) -> EvictionResult | None:
    if seen.code != 401:
        return None
    message = "the cluster's credentials were refused (401)"
    return EvictionResult("queued", EvictionCause.UNAUTHORIZED, message, Again.CREDENTIALS)


def _several_pdbs(seen: _Seen) -> EvictionResult | None:
    if seen.code != 500 or "more than one PodDisruptionBudget" not in seen.text:
        return None
    names = ", ".join(seen.pdbs) or "the API server does not say which"
    message = f"more than one PodDisruptionBudget covers {seen.pod}, which eviction does not support: {names}"
    return EvictionResult("failed", EvictionCause.SEVERAL_PDBS, one_line(message, 1000), Again.NO)


def _webhook_unavailable(seen: _Seen) -> EvictionResult | None:
    found = _CALLING.search(seen.text)
    if not found or seen.code < 500:
        return None
    message = f'admission webhook "{found["name"]}" could not be called: {sentence(mask_urls(seen.text))}'
    return EvictionResult(
        "queued",
        EvictionCause.WEBHOOK_UNAVAILABLE,
        message,
        Again.LIMITED,
        max_tries=MAX_TRIES,
        webhook=found["name"],
    )


def _anything_else(seen: _Seen) -> EvictionResult:
    text = sentence(mask_urls(seen.text)) or "without a text"
    result = _look(EvictionCause.OTHER, f"the API server answered HTTP {seen.code}: {text}")
    return replace(result, webhook=_denier(seen))


def _look(code: EvictionCause, message: str) -> EvictionResult:
    return EvictionResult("unknown", code, message, Again.LIMITED, max_tries=MAX_TRIES)


_RULES: Final[tuple[_Rule, ...]] = (
    _no_answer,
    _created,
    _in_background,
    _webhook_denied,
    _webhook_unavailable,
    _blocked_by_pdb,
    _throttled,
    _not_found,
    _conflict,
    _namespace_terminating,
    _rbac,
    _pdb_unusable,
    _unauthorized,
    _several_pdbs,
    _anything_else,
)


# ---- after the look


@dataclass(frozen=True, slots=True)
class PodLook:
    """The pod as it is now. ``uid`` empty: there is none of this name."""

    uid: str
    terminating: bool = False


def resolve(result: EvictionResult, look: PodLook, *, uid: str) -> EvictionResult:
    """Settle an ``unknown`` result by what the pod looks like now; other results stay as they are.

    The answer to an eviction can be lost after it was carried out, so a pod that has gone or is ending counts
    as evicted or accepted, ``unconfirmed``. A conflict means that nothing was carried out.
    """
    if result.status != "unknown":
        return result
    if look.uid != uid:
        return _settled_gone(result, look)
    if look.terminating:
        return replace(
            result,
            status="accepted",
            again=Again.FOLLOW,
            max_tries=None,
            unconfirmed=True,
            message=one_line(f"is ending (unconfirmed): {result.message}", 1000),
        )
    return replace(result, status="queued")


def _settled_gone(result: EvictionResult, look: PodLook) -> EvictionResult:
    if result.code is EvictionCause.CONFLICT:
        gone = _replaced("the pod")
        return replace(gone, http_status=result.http_status, pdbs=result.pdbs, dry_run=result.dry_run)
    word = "was replaced" if look.uid else "is gone"
    return replace(
        result,
        status="evicted",
        again=Again.NO,
        max_tries=None,
        unconfirmed=True,
        message=one_line(f"{word} (unconfirmed): {result.message}", 1000),
    )


def next_try_after(result: EvictionResult, *, tries: int) -> float | None:
    """Seconds until the eviction is tried again by itself, after ``tries`` tries; ``None``: not by itself.

    ``Again.LIMITED`` with no tries left is ``None`` too: then it has failed. ``Again.CREDENTIALS`` tries
    again every 30 s.
    """
    backoff = min(FIRST_BACKOFF_SECONDS * 2.0 ** max(0, min(tries, 20) - 1), LONGEST_BACKOFF_SECONDS)
    match result.again:
        case Again.BACKOFF:
            return backoff
        case Again.AFTER:
            return result.retry_after or FIRST_BACKOFF_SECONDS
        case Again.LIMITED:
            once = result.code is EvictionCause.CONFLICT and tries <= 1
            return None if tries >= (result.max_tries or MAX_TRIES) else 1.0 if once else backoff
        case Again.CREDENTIALS:
            return FIRST_BACKOFF_SECONDS
    return None
