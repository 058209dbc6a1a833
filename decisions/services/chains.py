"""Chains of hashes over the record: how an entry is written for its hash, and what is appended to a chain.

Each cluster has one chain over its timeline and its audit entries, the installation one for the rest. An entry's hash
covers its content, its place and the hash before it: changed, missing and moved rows show (``services.verification``).
"""

import hashlib
import json
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from decisions.models import AuditEntry, Chain, DecisionEvent
from decisions.models.fields import fit, fit_json

ENCODING: Final = 1
FIRST: Final = "0" * 64
"""Stands where the first entry of a chain has no hash before it."""
BATCH: Final = 500
# Beyond these, databases and JSON readers do not agree on what a number is.
_EXACT: Final = 2**53

Row = DecisionEvent | AuditEntry


# --- how an entry is written for its hash -----------------------------------------------------------------


def digest(row: Row, *, chain: str, seq: int, before: str) -> str:
    """The hash of an entry at this place of this chain, after an entry with the hash ``before``."""
    placed = {"encoding": row.encoding, "chain": chain, "seq": seq, "before": before, **_content(row)}
    return hashlib.sha256(canonical(placed).encode("ascii")).hexdigest()


def _content(row: Row) -> dict[str, Any]:
    """Everything that a row says; what a reader sees and what the hash covers are the same columns."""
    content: dict[str, Any] = {
        "at": row.at.astimezone(UTC).isoformat(timespec="microseconds"),
        "by_id": row.by_id,
        "by_name": row.by_name,
        "reason": row.reason,
        "detail": row.detail,
    }
    if isinstance(row, DecisionEvent):
        return {**content, "table": "timeline", "decision": row.decision_id, "kind": row.kind}
    return {
        **content,
        "table": "audit",
        "what": row.what,
        "cluster": row.cluster_id,
        "subject": row.subject,
    }


def canonical(value: Any) -> str:
    """JSON with sorted keys, no spaces, ASCII only. One way to write a value, on every database and release."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def settled(value: Any) -> Any:
    """A JSON value as every database gives it back: text that fits, and numbers that all of them keep as they are."""
    return _numbers(fit_json(value))


def _numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_numbers(item) for item in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if abs(value) >= _EXACT:
        return str(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def settled_text(row: Row, *fields: str) -> None:
    """Cut and clean these columns now as the database would, so that the hash covers what will stand there."""
    for name in fields:
        limit = getattr(row._meta.get_field(name), "max_length", None)
        setattr(row, name, fit(str(getattr(row, name)), limit))


# --- appending --------------------------------------------------------------------------------------------


def append(rows: Sequence[tuple[str, Row]], *, now: datetime) -> None:
    """Write these entries at the ends of their chains, in their order.

    Locks the chains until the transaction ends: its last statements, or others wait for what comes after.

    Args:
        rows: each with the name of its chain.
        now: when they are written, which may be later than when something happened.
    """
    heads = _locked({name for name, _ in rows})
    for name, row in rows:
        _place(row, heads[name])
    DecisionEvent.objects.bulk_create(
        [row for _, row in rows if isinstance(row, DecisionEvent)], batch_size=BATCH
    )
    AuditEntry.objects.bulk_create([row for _, row in rows if isinstance(row, AuditEntry)], batch_size=BATCH)
    for head in heads.values():
        Chain.objects.filter(pk=head.pk).update(seq=head.seq, hash=head.hash, written_at=now)


def _place(row: Row, head: Chain) -> None:
    row.chain, row.seq, row.encoding = head, head.seq + 1, ENCODING
    row.hash = digest(row, chain=head.name, seq=row.seq, before=head.hash or FIRST)
    head.seq, head.hash = row.seq, row.hash


def _locked(names: Collection[str]) -> dict[str, Chain]:
    """The heads, locked in the order of their names, those that are missing made before."""
    if len(names) > 1:
        # Made first: whoever waits for a row that somebody else is making should hold nothing yet.
        _begin(set(names) - set(Chain.objects.filter(name__in=names).values_list("name", flat=True)))
    heads = _lock(names)
    if missing := set(names) - heads.keys():
        _begin(missing)
        heads = _lock(names)
    return heads


def _lock(names: Collection[str]) -> dict[str, Chain]:
    # The key stays free: rows refer to the head.
    rows = Chain.objects.filter(name__in=names).order_by("name").select_for_update(no_key=True)
    return {row.name: row for row in rows}


def _begin(names: Collection[str]) -> None:
    if names:
        Chain.objects.bulk_create([Chain(name=name) for name in sorted(names)], ignore_conflicts=True)
