"""Policies: read from a file, a ConfigMap or a person; stored whenever the text changed; the last good one runs.

What is stored and shown has the values of headers masked, so a literal header value lives in memory only for as
long as its own text is read: references (``${env:NAME}``, ``${file:…}``) survive a bad edit and a restart.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from django.db import IntegrityError

from decisions.models import Cluster, PolicyVersion
from decisions.models.fields import fit
from decisions.services import timeline
from decisions.services.actors import SYSTEM, Actor
from decisions.services.errors import Invalid
from deschedui.descheduler.policy import Policy, Problem, load, masked_text
from deschedui.descheduler.policy.model import Profile
from deschedui.extender.config import MASK, ExtenderArgs, mask_header_value
from deschedui.masking import door_tokens as mask_door_tokens
from deschedui.masking import masked

MAX_BYTES = 1024 * 1024  # what a ConfigMap can hold
SOURCE_CHARS = 700
_MARKS = ("descheduler", "DeschedulerPolicy", "profiles:")


class ReadsConfigMaps(Protocol):
    """The one thing that is asked of a cluster here."""

    def read_config_map(self, namespace: str, name: str) -> dict[str, str]:
        """The data of a ConfigMap. Raises an error whose text says why not."""


class SourceProblem(Exception):  # noqa: N818 - the last good policy runs all the same
    """The policy's source cannot be read; the text says which, why and what to do."""


class NoPolicy(Exception):  # noqa: N818 - an answer to "which policy runs"
    """There is no valid policy to run; the text says why."""


@dataclass(frozen=True)
class Source:
    """A policy's text as it was read just now (header values and all), and where it came from."""

    text: str
    name: str

    @property
    def digest(self) -> str:
        """SHA-256 of the text as it was read."""
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True)
class Checked:
    """What is right and wrong with a text, ready to be stored or shown: no header values in any of it."""

    policy: Policy | None
    errors: list[dict[str, Any]]
    warnings: list[dict[str, Any]]
    upstream_error: str

    @property
    def valid(self) -> bool:
        """Whether it can run."""
        return self.policy is not None and not self.errors


@dataclass(frozen=True)
class Running:
    """What a cycle runs: a policy, the version that it is on record as, and what must be said about it."""

    policy: Policy
    version: PolicyVersion
    notes: tuple[str, ...] = ()
    from_record: bool = False

    @property
    def masked_headers(self) -> tuple[str, ...]:
        """Headers whose values are lost: the text came from the record, where literals are masked."""
        return masked_headers(self.policy) if self.from_record else ()


# --- checking ---------------------------------------------------------------------------------------------


def validate(text: str, *, filename: str = "policy.yaml") -> Checked:
    """Validate a policy's text. Opens no file, resolves no name, calls nothing."""
    result = load(text, filename=filename)
    return Checked(
        policy=None if result.errors else result.policy,
        errors=_problems(result.errors),
        warnings=_problems(result.warnings),
        upstream_error=_shown(result.upstream_error or ""),
    )


def _problems(problems: Sequence[Problem]) -> list[dict[str, Any]]:
    return [{name: _shown(value) for name, value in asdict(problem).items()} for problem in problems]


def _shown(value: Any) -> Any:
    return fit(masked(value)) if isinstance(value, str) else value


def literal_headers(policy: Policy) -> tuple[str, ...]:
    """What storing would mask, headers above all: ``profile default: Authorization``."""
    headers = (where for where, value in _headers(policy) if mask_header_value(value) == MASK)
    return (*headers, *(where for where, url in _urls(policy) if mask_door_tokens(url) != url))


def masked_headers(policy: Policy) -> tuple[str, ...]:
    """Headers of a policy of the record that have ``***`` instead of their value; and URLs without their token."""
    headers = (where for where, value in _headers(policy) if value == MASK)
    return (*headers, *(where for where, url in _urls(policy) if f"/{MASK}" in url))


def _headers(policy: Policy) -> Iterator[tuple[str, str]]:
    for profile, extender in _extenders(policy):
        for name, value in extender.http_headers.items():
            yield f"profile {profile.name}: {name}", value


def _urls(policy: Policy) -> Iterator[tuple[str, str]]:
    """With the slash that a decisionVerb comes after: a token may be the last part of an urlPrefix."""
    for profile, extender in _extenders(policy):
        yield f"profile {profile.name}: urlPrefix", f"{extender.url_prefix}/"


def _extenders(policy: Policy) -> Iterator[tuple[Profile, ExtenderArgs]]:
    for profile in policy.profiles:
        if profile.external_decision is not None:
            for extender in profile.external_decision.asked:
                yield profile, extender


# --- reading ----------------------------------------------------------------------------------------------


def read_source(cluster: Cluster, client: ReadsConfigMaps | None) -> Source | None:
    """The text that the cluster's file or ConfigMap has now; None where its policy comes from a person.

    Raises:
        SourceProblem: it cannot be read.
    """
    if cluster.policy_file:
        return _read_file(cluster.policy_file)
    if cluster.policy_configmap:
        return _read_config_map(cluster.policy_configmap, client)
    return None


def _read_file(path: str) -> Source:
    try:
        with Path(path).open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise SourceProblem(f"The policy file {path} cannot be read: {error.strerror or error}.") from error
    if len(raw) > MAX_BYTES:
        raise SourceProblem(f"The policy file {path} is larger than 1 MiB.")
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise SourceProblem(f"The policy file {path} is not UTF-8 text (byte {error.start}).") from error
    if text.strip() and not any(mark in text for mark in _MARKS):
        # Whatever it is instead, a kubeconfig or a key, it must not end up on a page.
        raise SourceProblem(f"The file {path} does not look like a DeschedulerPolicy; its text was not kept.")
    return Source(text, f"file {path}")


def _read_config_map(reference: str, client: ReadsConfigMaps | None) -> Source:
    namespace, name, key = reference.split("/", 2)
    if client is None:
        raise SourceProblem(f"The ConfigMap {namespace}/{name} is read with the next cycle.")
    try:
        data = client.read_config_map(namespace, name)
    except Exception as error:
        raise SourceProblem(f"The ConfigMap {namespace}/{name} cannot be read: {error}") from error
    if key not in data:
        has = ", ".join(sorted(data)[:10]) or "none"
        raise SourceProblem(f"The ConfigMap {namespace}/{name} has no key {key}; it has: {has}.")
    return Source(data[key][:MAX_BYTES], f"ConfigMap {reference}")


# --- storing ----------------------------------------------------------------------------------------------


def latest(cluster_id: int) -> PolicyVersion | None:
    """The newest version, good or bad."""
    return PolicyVersion.objects.filter(cluster_id=cluster_id).first()


def last_good(cluster_id: int) -> PolicyVersion | None:
    """The newest valid version: the one that runs."""
    return PolicyVersion.objects.filter(cluster_id=cluster_id, valid=True).first()


def store(
    *, cluster: Cluster, source: Source, checked: Checked, by: Actor = SYSTEM, now: datetime
) -> PolicyVersion:
    """Store a text as a new version unless the newest one already says the same about the same text."""
    for _ in range(3):
        newest = latest(cluster.pk)
        if newest is not None and _same(newest, source, checked):
            return newest
        try:
            with timeline.transaction():
                return _add_version(
                    cluster, source, checked, by, now, number=newest.number + 1 if newest else 1
                )
        except IntegrityError:
            continue  # Somebody stored a version at the same moment: compare with that one.
    raise SourceProblem("The policy keeps changing while it is being stored; the next cycle reads it again.")


def _same(version: PolicyVersion, source: Source, checked: Checked) -> bool:
    """Also compares what is said about it: a newer release may understand what an older one refused."""
    return (
        version.digest == source.digest
        and version.source == fit(source.name, SOURCE_CHARS)
        and version.valid == checked.valid
        and version.errors == checked.errors
        and version.warnings == checked.warnings
    )


def _add_version(
    cluster: Cluster, source: Source, checked: Checked, by: Actor, now: datetime, *, number: int
) -> PolicyVersion:
    version = PolicyVersion.objects.create(
        cluster=cluster,
        number=number,
        text=_kept(source.text, valid=checked.valid),
        digest=source.digest,
        valid=checked.valid,
        errors=checked.errors,
        warnings=checked.warnings,
        upstream_error=checked.upstream_error,
        source=fit(source.name, SOURCE_CHARS),
        created_at=now,
        created_by=by.user,
    )
    what = "policy changed" if checked.valid else "bad policy read"
    detail = {"version": number, "errors": len(checked.errors), "warnings": len(checked.warnings)}
    timeline.audit(what, at=now, by=by, cluster=cluster, subject=source.name, detail=detail)
    return version


def _kept(text: str, *, valid: bool) -> str:
    """A text as it is stored. One that cannot run is masked more generously: nothing depends on its words."""
    kept = mask_door_tokens(masked_text(text))
    return kept if valid else masked(kept)


def save_text(*, cluster: Cluster, text: str, by: Actor, now: datetime) -> PolicyVersion:
    """Store a text that a person wrote. A bad one is stored and shown, and the last good one runs on.

    Raises:
        Invalid: the policy is read from a file or a ConfigMap; the text is too large; or it has literal
            header values or a door's token, which storing would mask.
    """
    if cluster.policy_file or cluster.policy_configmap:
        place = cluster.policy_file or f"ConfigMap {cluster.policy_configmap}"
        raise Invalid(f"This cluster's policy is read from {place}: change it there.", "text")
    if len(text.encode()) > MAX_BYTES:
        raise Invalid("A policy may have at most 1 MiB.", "text")
    checked = validate(text)
    if checked.policy is not None and (lost := literal_headers(checked.policy)):
        raise Invalid(
            "Values of headers and tokens of doors are masked when a policy is stored, so these could not be sent: "
            f"{', '.join(lost)}. Write ${{env:NAME}} or ${{file:PATH}} in httpHeaders instead.",
            "text",
        )
    source = Source(text, f"written by {by.name}")
    return store(cluster=cluster, source=source, checked=checked, by=by, now=now)


# --- running ----------------------------------------------------------------------------------------------


def prepare(*, cluster: Cluster, client: ReadsConfigMaps | None, now: datetime) -> Running:
    """Read the source, store it if it changed, and say what runs: this text, or the last good one of the record.

    Raises:
        NoPolicy: nothing valid was ever there.
    """
    try:
        source = read_source(cluster, client)
    except SourceProblem as problem:
        return _from_record(cluster, str(problem))
    if source is None:
        return _from_record(cluster, "")
    checked = validate(source.text, filename=source.name.partition(" ")[2])
    version = store(cluster=cluster, source=source, checked=checked, now=now)
    if checked.policy is not None and checked.valid:
        return Running(checked.policy, version)
    first = checked.errors[0]["message"] if checked.errors else checked.upstream_error
    return _from_record(
        cluster, f"Version {version.number} of the policy ({source.name}) is not valid: {first}"
    )


def _from_record(cluster: Cluster, problem: str) -> Running:
    good = last_good(cluster.pk)
    if good is None:
        raise NoPolicy(
            problem or "There is no policy: name a file or a ConfigMap in the settings, or write one."
        )
    checked = validate(good.text)
    if checked.policy is None:
        raise NoPolicy(
            f"{problem} Version {good.number}, the last good one, is no longer understood.".strip()
        )
    notes = (f"{problem} Version {good.number}, the last good one, runs.",) if problem else ()
    return Running(checked.policy, good, notes, from_record=True)
