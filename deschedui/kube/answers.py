"""What an API server sends back, as data, and the error that an answer without success becomes. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Final

import msgspec

from deschedui.kube import errors
from deschedui.kube.text import mask_urls, one_line, sentence

LONGEST_RETRY_AFTER_SECONDS: Final = 600.0
_LONGEST_NAME: Final = 253


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """What came back. ``status`` 0: no answer, and ``no_answer`` says why."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    no_answer: str = ""

    @classmethod
    def missing(cls, why: str) -> RawAnswer:
        """No answer at all: the connection failed, or the time was over."""
        return cls(0, no_answer=why)

    def header(self, name: str) -> str:
        """A header's value, whatever the case of its name; empty where it is absent."""
        wanted = name.lower()
        return next((value for key, value in self.headers.items() if key.lower() == wanted), "")


def server_time(answer: RawAnswer) -> datetime | None:
    """When the server answered, by its own clock, to the second; ``None`` where it does not say."""
    try:
        said = parsedate_to_datetime(answer.header("Date")[:64])
    except (TypeError, ValueError, OverflowError):
        return None
    return said if said.tzinfo is not None else None


class StatusCause(msgspec.Struct, frozen=True):
    """One cause of a ``Status``."""

    reason: str | None = None
    message: str | None = None
    field: str | None = None


class StatusDetails(msgspec.Struct, frozen=True, rename="camel"):
    """What a ``Status`` is about."""

    name: str | None = None
    group: str | None = None
    kind: str | None = None
    causes: list[StatusCause] | None = None
    retry_after_seconds: int | None = None


class StatusBody(msgspec.Struct, frozen=True, rename="camel"):
    """A ``metav1.Status``, as far as it is read."""

    kind: str | None = None
    status: str | None = None
    message: str | None = None
    reason: str | None = None
    details: StatusDetails | None = None

    def causes(self) -> Sequence[StatusCause]:
        """The causes, an empty list where there are none."""
        return (self.details.causes if self.details else None) or ()

    @property
    def detail_kind(self) -> str:
        """The kind that the error is about, as the server writes it (``pods``)."""
        return (self.details.kind if self.details else None) or ""


_STATUS: Final = msgspec.json.Decoder(StatusBody)


def status_of(body: bytes) -> StatusBody | None:
    """The ``Status`` in a body; ``None`` for plain text, HTML or anything else."""
    try:
        found = _STATUS.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return found if found.kind == "Status" else None


def text_of(answer: RawAnswer, status: StatusBody | None) -> str:
    """The text of an answer: the message of its ``Status``, else the beginning of its body."""
    if status is not None:
        return status.message or ""
    return answer.body[:4000].decode("utf-8", "replace")


def retry_after_seconds(answer: RawAnswer, status: StatusBody | None = None) -> float | None:
    """How long the server asks us to wait, 1 s to 10 min; ``None`` where it does not say it in seconds."""
    text = answer.header("Retry-After").strip()
    seconds = int(text) if re.fullmatch(r"[0-9]{1,9}", text, re.ASCII) else 0
    if not seconds and status is not None and status.details is not None:
        seconds = status.details.retry_after_seconds or 0
    return float(min(seconds, LONGEST_RETRY_AFTER_SECONDS)) if seconds > 0 else None


_RBAC: Final = re.compile(
    r'User "[^"]*" cannot (?P<verb>\S+) (?:resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)"'
    r'|path "(?P<path>[^"]+)")'
)


def missing_right(message: str) -> tuple[str, str] | None:
    """The verb and the resource that RBAC misses (``create``, ``pods/eviction``), or ``None``."""
    found = _RBAC.search(message)
    if not found:
        return None
    verb = one_line(found["verb"], 60)
    if found["path"]:
        return verb, one_line(found["path"], _LONGEST_NAME)
    resource, group = found["resource"], found["group"]
    return verb, one_line(f"{resource}.{group}" if group else resource, _LONGEST_NAME)


def error_for(answer: RawAnswer, what: str) -> errors.KubeError:
    """The error that an answer without success becomes; ``what`` says what was tried (``list pods``)."""
    status = status_of(answer.body)
    text = sentence(mask_urls(text_of(answer, status)), 500) or "without a text"
    reason = one_line((status.reason if status else None) or "", 60)
    message, code = f"{what}: HTTP {answer.status}: {text}", answer.status
    match code:
        case 401:
            hint = f"{what}: the cluster's credentials were refused (401); check account and kubeconfig"
            return errors.Unauthorized(hint, status=code, reason=reason)
        case 403:
            return _forbidden(what, text, reason)
        case 404 if status is None:
            return errors.InvalidAnswer(
                f"{what}: 404 from something that is no Kubernetes API server: {text}"
            )
        case 404:
            return errors.NotFound(message, status=code, reason=reason)
        case 409:
            return errors.Conflict(message, status=code, reason=reason)
        case 410:
            return errors.Expired(message, status=code, reason=reason)
        case 429:
            wait = retry_after_seconds(answer, status)
            return errors.Throttled(message, status=code, reason=reason, retry_after=wait)
    if code >= 500:
        return errors.ServerError(message, status=code, reason=reason)
    return errors.ApiError(message, status=code, reason=reason)


def _forbidden(what: str, text: str, reason: str) -> errors.Forbidden:
    verb, resource = missing_right(text) or ("", "")
    hint = f"; grant {verb} on {resource} to this account" if verb else ""
    return errors.Forbidden(f"{what}: forbidden: {text}{hint}", reason=reason, verb=verb, resource=resource)
