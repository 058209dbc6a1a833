"""The record on standard output: each entry one line of JSON, after its commit, for whoever collects logs.

Always the same form, whatever ``DESCHEDUI_LOG_LEVEL`` and ``DESCHEDUI_DEBUG`` say: a copy of the record that
``manage.py verify_audit --head`` can hold against the database. ASCII only, so that nothing in it controls a terminal.
"""

import json
import logging
from collections.abc import Mapping
from datetime import UTC
from typing import Any, Final

from decisions.models import AuditEntry, DecisionEvent
from deschedui.logs import mask_event

LOGGER: Final = "deschedui.record"
MARK: Final = "deschedui"
FORM: Final = 1
# Up to this length a line is written in one piece even where several processes share a pipe (PIPE_BUF).
MOST_BYTES: Final = 4000

log = logging.getLogger(LOGGER)


def write(row: DecisionEvent | AuditEntry, context: Mapping[str, Any]) -> None:
    """Print an entry that is committed."""
    log.info("%s", line(row, context))


def line(row: DecisionEvent | AuditEntry, context: Mapping[str, Any]) -> str:
    """One line. What makes it too long is left out and said so: first the detail, then parts of the texts."""
    fields = {**_place(row), **mask_event(None, "", {**context, **_said(row)})}
    text = _json(fields)
    if len(text) > MOST_BYTES:
        text = _json(fields := {**fields, "detail": {}, "cut": True})
    longest = 1000
    while len(text) > MOST_BYTES and longest:
        text = _json({key: _cut(value, longest) for key, value in fields.items()})
        longest //= 2
    return text


def _place(row: DecisionEvent | AuditEntry) -> dict[str, Any]:
    return {
        "record": MARK,
        "form": FORM,
        "chain": row.chain.name,
        "seq": row.seq,
        "hash": row.hash,
        "at": row.at.astimezone(UTC).isoformat(timespec="microseconds"),
    }


def _said(row: DecisionEvent | AuditEntry) -> dict[str, Any]:
    about: dict[str, Any]
    if isinstance(row, DecisionEvent):
        about = {"kind": row.kind, "decision": row.decision_id}
    else:
        about = {"kind": row.what, "subject": row.subject}
    return {**about, "by": row.by_name, "by_id": row.by_id, "reason": row.reason, "detail": row.detail}


def _cut(value: Any, longest: int) -> Any:
    return value[:longest] + "…" if isinstance(value, str) and len(value) > max(longest, 64) else value


def _json(fields: Mapping[str, Any]) -> str:
    return json.dumps(fields, ensure_ascii=True, separators=(",", ":"))
