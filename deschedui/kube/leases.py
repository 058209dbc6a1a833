"""The Lease by which installations of deschedui see each other: who works on a cluster, and how far its count is.

``holderIdentity`` is the installation's id, an annotation its counter. Pure: :mod:`deschedui.kube.client` sends it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from deschedui.kube.errors import InvalidAnswer

COUNTER: Final = "deschedui/counter"
"""The annotation that holds the counter."""
MOST: Final = 2**53
"""A counter that no installation reaches, and that every reader of JSON can hold."""
_DIGITS: Final = re.compile(r"[0-9]{1,16}", re.ASCII)
_LONGEST_HOLDER: Final = 200


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    uid: str = ""
    resource_version: str = ""
    annotations: dict[str, str] | None = None
    labels: dict[str, str] | None = None


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None


class _Lease(msgspec.Struct, frozen=True):
    metadata: _Metadata
    spec: _Spec | None = None


_DECODER: Final = msgspec.json.Decoder(_Lease)


@dataclass(frozen=True)
class LeaseView:
    """A Lease as it was read. ``counter`` is None where it holds none that can be read."""

    holder: str
    counter: int | None
    resource_version: str
    uid: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class LeaseClaim:
    """What an installation writes into it.

    Args:
        seconds: how long others may take it for alive; for people, nobody waits for it.
    """

    holder: str
    counter: int
    at: datetime
    seconds: int = 15


def lease_view(data: bytes) -> LeaseView:
    """The Lease of an answer.

    Raises:
        InvalidAnswer: it is none.
    """
    try:
        lease = _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise InvalidAnswer("the answer is no Lease") from None
    meta = lease.metadata
    return LeaseView(
        holder=((lease.spec.holder_identity if lease.spec else None) or "")[:_LONGEST_HOLDER],
        counter=_counter((meta.annotations or {}).get(COUNTER, "")),
        resource_version=meta.resource_version,
        uid=meta.uid,
        annotations=meta.annotations or {},
        labels=meta.labels or {},
    )


def _counter(text: str) -> int | None:
    number = int(text) if _DIGITS.fullmatch(text) else MOST
    return number if number < MOST else None


def lease_body(
    namespace: str, name: str, claim: LeaseClaim, *, instead_of: LeaseView | None = None
) -> dict[str, Any]:
    """The Lease as it is sent; others' labels and annotations stay.

    Args:
        instead_of: what it replaces. Its version and UID go with it: with them the API server refuses to write
            over another version, and to make a deleted one anew.
    """
    found = instead_of or LeaseView("", None, "")
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "labels": {"app.kubernetes.io/name": "deschedui", **found.labels},
        "annotations": {**found.annotations, COUNTER: str(claim.counter)},
    }
    if instead_of is not None:
        metadata |= {"uid": found.uid, "resourceVersion": found.resource_version}
    spec = {
        "holderIdentity": claim.holder,
        "leaseDurationSeconds": claim.seconds,
        "renewTime": claim.at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
    }
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
