"""Pods and nodes as they were, kept once for each content: an allow-list of fields, compressed."""

import hashlib
import zlib
from collections.abc import Mapping
from typing import Any

import msgspec

from decisions.models import Snapshot

MAX_BYTES = 64 * 1024


def keep(kind: str, record: Mapping[str, Any]) -> Snapshot:
    """Store a record that ``deschedui.kube.redact`` made, or find the row that has the same content.

    Args:
        kind: ``Pod`` or ``Node``.
        record: what may be kept; its ``resourceVersion`` is dropped, because it changes when nothing else does.
    """
    body = msgspec.json.encode(_without_version(record), order="sorted")
    if len(body) > MAX_BYTES:
        body = msgspec.json.encode(
            {"kind": kind, "metadata": {}, "recordTruncated": ["metadata", "spec", "status"]}
        )
    digest = hashlib.sha256(body).hexdigest()
    found = Snapshot.objects.filter(digest=digest).first()
    if found is not None:
        return found
    return Snapshot.objects.get_or_create(
        digest=digest, defaults={"kind": kind, "body": zlib.compress(body)}
    )[0]


def read(snapshot: Snapshot | None) -> dict[str, Any]:
    """The record again; empty where there is none."""
    if snapshot is None:
        return {}
    decoder = zlib.decompressobj()
    body = decoder.decompress(bytes(snapshot.body), MAX_BYTES)
    return msgspec.json.decode(body, type=dict[str, Any])


def decode(data: bytes) -> dict[str, Any]:
    """An object as the API server sent it."""
    return msgspec.json.decode(data, type=dict[str, Any])


def _without_version(record: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {
        name: value for name, value in record.get("metadata", {}).items() if name != "resourceVersion"
    }
    return {**record, "metadata": metadata}
