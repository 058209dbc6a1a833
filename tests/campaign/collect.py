"""Reading the three accounts: rows of the database, lines of the audit log, lines of the workers' logs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import psycopg

from deschedui.demo.controlplane import WORKER as WORKER_USER
from tests.campaign.accounts import CALLER, WORKER, Call, Database, Line, Row, Sent, Span

CALLER_USER: Final = "door-caller"
_WHO: Final[Mapping[str, str]] = {WORKER_USER: WORKER, CALLER_USER: CALLER}
_SENT: Final = re.compile(r"decision (\d+): \S+: attempt (\d+) is sent, allowed at ([-0-9T:.+]+)")

# Kinds of lines whose detail says what became of the decision, and where it does.
_SAYS: Final = {"lease_lost": "status", "extender_answered": "effect", "extender_failed": "effect"}

_ROWS: Final = """
SELECT id, pod_uid, executor, verdict, eviction, extract(epoch FROM expires_at), extract(epoch FROM lease_until),
       extract(epoch FROM not_before), waits_for_id, extract(epoch FROM updated_at)
FROM decisions_decision ORDER BY id
"""
# The time of the commit, not the one that a process wrote: that is what others could see, and when.
_LINES: Final = """
SELECT decision_id, kind, extract(epoch FROM pg_xact_commit_timestamp(xmin)), by_name, detail
FROM decisions_decisionevent ORDER BY id
"""
_FREEZES: Final = """
SELECT extract(epoch FROM pg_xact_commit_timestamp(began.xmin)),
       extract(epoch FROM pg_xact_commit_timestamp(ended.xmin))
FROM decisions_freeze AS held
JOIN decisions_auditentry AS began ON began.what = 'frozen' AND began.at = held.set_at
LEFT JOIN decisions_auditentry AS ended ON ended.what = 'freeze lifted' AND ended.at = held.lifted_at
"""
_CYCLES: Final = "SELECT id, extract(epoch FROM heartbeat_at) FROM decisions_cycle WHERE state = 'running'"


def read_database(url: str) -> Database:
    """The database's account, in one snapshot."""
    with psycopg.connect(url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        ask = connection.execute
        read_at = float(ask("SELECT extract(epoch FROM now())").fetchall()[0][0])
        freezes = ask(_FREEZES).fetchall()
        return Database(
            rows=tuple(_row(*columns) for columns in ask(_ROWS)),
            lines=tuple(sorted(map(_line, ask(_LINES).fetchall()), key=lambda line: line.committed)),
            freezes=tuple(Span(float(start), _number(end) or float("inf")) for start, end in freezes),
            cycles_running=tuple((pk, float(seen)) for pk, seen in ask(_CYCLES)),
            read_at=read_at,
        )


def counts(url: str) -> Mapping[str, int]:
    """How many rows there are, for the table."""
    with psycopg.connect(url) as connection:
        names = {"decisions": "decisions_decision", "cycles": "decisions_cycle"}
        return {
            name: int(connection.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0])  # noqa: S608 - our names
            for name, table in names.items()
        }


def _row(*columns: Any) -> Row:
    pk, uid, executor, verdict, eviction, expires, lease, not_before, waits_for, updated = columns
    return Row(
        id=pk,
        uid=uid,
        ours=executor == "us",
        verdict=verdict,
        eviction=eviction,
        expires_at=_number(expires),
        lease_until=_number(lease),
        not_before=_number(not_before),
        waits_for=waits_for,
        updated_at=float(updated),
    )


def _line(columns: tuple[Any, ...]) -> Line:
    decision, kind, committed, by, detail = columns
    detail = json.loads(detail) if isinstance(detail, str) else detail or {}
    return Line(
        decision=decision,
        kind=kind,
        committed=float(committed),
        by=by,
        attempt=int(detail.get("attempt", 0)) if kind == "eviction_tried" else 0,
        status=str(detail.get(_SAYS.get(kind, ""), "")),
    )


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def calls(entries: Iterable[Mapping[str, Any]]) -> Iterator[Call]:
    """The audit log's account. An eviction without a UID would be one of nobody we know."""
    for entry in entries:
        options = (entry.get("requestObject") or {}).get("deleteOptions") or {}
        user = entry["user"]["username"]
        yield Call(
            uid=(options.get("preconditions") or {}).get("uid", ""),
            who=_WHO.get(user, user),
            received=_seconds(entry["requestReceivedTimestamp"]),
            code=int((entry.get("responseStatus") or {}).get("code", 0)),
        )


def sent(logs: Iterable[Path]) -> Iterator[Sent]:
    """What the workers noted before each call."""
    for log in logs:
        for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
            if found := _SENT.search(line):
                yield Sent(int(found[1]), int(found[2]), _seconds(found[3]))


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
