"""The extender door: who knocks, what they ask, and the answer as a JSON object (protocols.md section 2)."""

import ipaddress
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from decisions.doors.refusals import refusal
from decisions.doors.requests import NotUnderstood, Question, parse
from decisions.models import Caller, CallerToken
from decisions.services import asking, lookups
from decisions.services.access import digest_of

log = logging.getLogger(__name__)

USED_NOTE_EVERY = timedelta(minutes=1)

# What this process learned of callers, by the digest of their token: how long they wait for an answer. It is
# only ever used to answer sooner, so that a no is in time while the database is away.
_seconds: dict[str, float] = {}


@dataclass(frozen=True)
class Knock:
    """A request as it reaches a door, before its body is read. ``segments`` come after ``/doors``."""

    method: str
    segments: tuple[str, ...] = field(repr=False)  # the token may be one of them
    authorization: str = field(repr=False)
    address: str

    @property
    def token(self) -> str:
        """The bearer token, else the one in the path."""
        scheme, _, value = self.authorization.partition(" ")
        if scheme.lower() == "bearer":
            return value.strip()
        return self.segments[0] if len(self.segments) > 1 else ""

    @property
    def in_path(self) -> bool:
        """Whether the token stands in the path."""
        return not self.authorization.lower().startswith("bearer ")

    @property
    def verb(self) -> str:
        """What follows the token: the verb that the caller is registered with."""
        return "/".join(self.segments[1:] if self.in_path else self.segments)


def learn() -> None:
    """Learn how long every caller waits, at the start: the database may be away when they ask."""
    _seconds.update(CallerToken.objects.values_list("digest", "caller__timeout_seconds"))


def seconds_for(knock: Knock, default: float) -> float:
    """How long this caller waits for an answer, as far as this process knows."""
    return _seconds.get(digest_of(knock.token), default) if knock.token else default


EdgeFor = Callable[[Caller, Question], lookups.PodEdge]


def live_pod(caller: Caller, question: Question) -> lookups.PodEdge:
    """The pod on the caller's cluster."""
    return lookups.LivePod(caller.cluster, question.namespace, question.name)


def answer(knock: Knock, body: bytes, *, now: datetime, edge_for: EdgeFor = live_pod) -> dict[str, Any]:
    """Answer one call. Database errors pass through; the edge turns them into a no."""
    if knock.method != "POST":
        return refusal("ask with POST")
    caller = _caller(knock, now)
    if isinstance(caller, str):
        return refusal(caller)
    try:
        question = parse(body)
    except NotUnderstood as error:
        return refusal(f"not understood: {error}")
    pod = asking.PodQuestion(
        namespace=question.namespace,
        name=question.name,
        uid=question.uid,
        node=question.node,
        pod=question.pod,
    )
    return asking.answer(question=pod, caller=caller, edge=edge_for(caller, question), now=now).as_dict()


def _caller(knock: Knock, now: datetime) -> Caller | str:
    """Who knocks, or why they are not let in."""
    if not knock.token:
        return "no token: send it as “Authorization: Bearer …”"
    try:
        token = CallerToken.objects.select_related("caller__cluster").get(digest=digest_of(knock.token))
    except CallerToken.DoesNotExist:
        return "unknown token"
    caller = token.caller
    _seconds[token.digest] = caller.timeout_seconds
    refused = _refused(token, caller, knock, now)
    if refused:
        return refused
    if token.last_used_at is None or token.last_used_at < now - USED_NOTE_EVERY:
        CallerToken.objects.filter(pk=token.pk).update(last_used_at=now)
    return caller


def _refused(token: CallerToken, caller: Caller, knock: Knock, now: datetime) -> str:
    if token.revoked_at is not None or caller.revoked_at is not None:
        return "this token was revoked"
    if token.expires_at is not None and token.expires_at <= now:
        return f"this token expired on {token.expires_at:%F}"
    if knock.in_path and not caller.path_token_allowed:
        return "this caller's token may not stand in the path; send it as “Authorization: Bearer …”"
    if knock.verb != caller.verb.strip("/"):
        return f"this caller is registered with the verb {caller.verb}"
    if caller.networks and not _in_networks(knock.address, caller.networks):
        return "this token may not be used from this address"
    return ""


def _in_networks(address: str, networks: list[str]) -> bool:
    try:
        source = ipaddress.ip_address(address)
        return any(source in ipaddress.ip_network(network, strict=False) for network in networks)
    except ValueError:
        return False
