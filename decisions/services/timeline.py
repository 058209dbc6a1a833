"""The timeline and the audit: one entry for each change, in the transaction of the change. Append-only, chained.

An entry is held back until the transaction's end and written by its last statements (:func:`transaction`). Written at
once, it would lock its chain while the rest of the transaction takes locks of its own, and two of them would wait for
each other in a circle. What is rolled back, a savepoint included, takes its entries with it: nothing is missing in a
chain, and nothing was printed that did not happen.
"""

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.transaction import atomic, get_rollback, on_commit

from decisions.models import AuditEntry, Chain, Cluster, Decision, DecisionEvent
from decisions.services import chains, record_lines
from decisions.services.actors import SYSTEM, Actor

log = logging.getLogger(__name__)

REASON_CHARS = 4096
_Place = tuple[int, str, str, str]
"""Of a decision: its cluster's id and name, its pod's namespace and name."""


class _State(threading.local):
    """Whether this thread is in a :func:`transaction`, whose end writes the entries."""

    open = False


_state = _State()


@contextmanager
def transaction() -> Iterator[None]:
    """The transaction of a change with its entries in the record: what writes both opens this one.

    Nested ones are savepoints; the outermost writes the entries as its last statements.
    """
    if _state.open:
        with atomic():
            yield
        return
    with atomic():
        _state.open = True
        try:
            yield
            if not get_rollback():
                _write(_pending())
        finally:
            _state.open = False


def append(
    decision_id: int,
    kind: str,
    *,
    at: datetime,
    by: Actor = SYSTEM,
    reason: str = "",
    detail: Mapping[str, Any] | None = None,
) -> None:
    """Add a line to a decision's timeline. ``reason`` is bounded, ``detail`` must be JSON."""
    row = DecisionEvent(decision_id=decision_id, kind=str(kind), at=at, reason=reason)
    _add(row, by, detail)


def audit(
    what: str,
    *,
    at: datetime,
    by: Actor,
    cluster: Cluster | None = None,
    subject: str = "",
    reason: str = "",
    detail: Mapping[str, Any] | None = None,
) -> None:
    """Record what is no decision's: arming, pausing, freezes, settings, roles, tokens, policies, sign-ins."""
    row = AuditEntry(what=what, cluster=cluster, subject=subject, at=at, reason=reason)
    chains.settled_text(row, "what", "subject")
    _add(row, by, detail)


def _add(row: chains.Row, by: Actor, detail: Mapping[str, Any] | None) -> None:
    row.by_id, row.by_name = by.user.pk if by.user else None, by.name
    row.detail = chains.settled(dict(detail or {}))
    chains.settled_text(row, "by_name", "reason")
    if _state.open:
        on_commit(_Entry(row))
        return
    with transaction():
        on_commit(_Entry(row))


@dataclass
class _Entry:
    """An entry that waits for its transaction's end; called after the commit, it is printed.

    It waits among the connection's callbacks, because Django drops those of a savepoint that is rolled back.
    """

    row: chains.Row
    context: dict[str, Any] = field(default_factory=dict)
    written: bool = False

    def __call__(self) -> None:
        """Never raises: what comes after the commit goes on, and so do the entries behind this one."""
        try:
            record_lines.write(self.row, self.context)
        except Exception:
            log.exception("entry %s of the record is committed and was not printed", self.row.seq)


def _pending() -> list[_Entry]:
    waiting = (callback[1] for callback in connection.run_on_commit)
    return [entry for entry in waiting if isinstance(entry, _Entry) and not entry.written]


def _write(entries: list[_Entry]) -> None:
    if not entries:
        return
    decisions = _decisions(entry.row.decision_id for entry in entries if isinstance(entry.row, DecisionEvent))
    rows = []
    for entry in entries:
        cluster_id = _tell(entry, decisions)
        rows.append((Chain.name_for(cluster_id), entry.row))
        entry.written = True
    chains.append(rows, now=max(entry.row.at for entry in entries))


def _tell(entry: _Entry, decisions: Mapping[int, _Place]) -> int | None:
    """Whose chain it belongs to, and what its printed line says beside the row."""
    row = entry.row
    if isinstance(row, AuditEntry):
        if row.cluster is not None:
            entry.context["cluster"] = row.cluster.name
        return row.cluster_id
    cluster_id, cluster, namespace, pod = decisions[row.decision_id]
    entry.context = {"cluster": cluster, "pod": f"{namespace}/{pod}"}
    return cluster_id


def _decisions(ids: Iterable[int]) -> dict[int, _Place]:
    wanted = set(ids)
    if not wanted:
        return {}
    rows = Decision.objects.filter(pk__in=wanted).order_by()
    found = rows.values_list("pk", "cluster_id", "cluster__name", "namespace", "pod_name")
    return {pk: (cluster_id, cluster, namespace, pod) for pk, cluster_id, cluster, namespace, pod in found}
