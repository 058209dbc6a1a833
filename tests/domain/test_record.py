"""The record: append-only, chained, without gaps; an entry stands there if and only if its change does."""

import hashlib
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.db.models import ProtectedError
from django.urls import get_resolver

from decisions.models import INSTALLATION, AuditEntry, Chain, Cluster, Decision, DecisionEvent, Event
from decisions.services import record_lines, timeline, verification
from decisions.services.actors import SYSTEM, Actor
from decisions.services.chains import FIRST, canonical, digest
from deschedui.config import ROOT
from tests.builders import NOW, at, make_cluster, make_decision

pytestmark = pytest.mark.django_db
TABLES = ("decisions_decisionevent", "decisions_auditentry", "decisions_chain")


@pytest.fixture
def decision(cluster: Cluster) -> Decision:
    return make_decision(cluster)


@pytest.fixture
def printed(django_capture_on_commit_callbacks: Any) -> Iterator[Any]:
    """What goes to standard output when the block that is given commits."""
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    record_lines.log.addHandler(handler)

    def run(change: Any) -> list[dict[str, Any]]:
        with django_capture_on_commit_callbacks(execute=True):
            change()
        return [json.loads(line) for line in lines]

    yield run
    record_lines.log.removeHandler(handler)


def fails(block: Any, decision: Decision) -> None:
    """A change that appends, and then fails."""

    def change() -> None:
        with block():
            timeline.append(decision.pk, Event.APPROVED, at=NOW)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        change()


def seqs(chain: str) -> list[int]:
    """The places that are taken in a chain, by whichever table."""
    rows = [*DecisionEvent.objects.filter(chain__name=chain), *AuditEntry.objects.filter(chain__name=chain)]
    return sorted(row.seq for row in rows)


# --- one chain for a cluster ------------------------------------------------------------------------------


def test_a_clusters_timeline_and_audit_share_one_chain(cluster: Cluster, decision: Decision) -> None:
    timeline.append(decision.pk, Event.ASKED, at=NOW)
    timeline.audit("paused", at=NOW, by=SYSTEM, cluster=cluster)
    timeline.append(decision.pk, Event.APPROVED, at=NOW)
    head = Chain.objects.get()
    assert (head.name, head.seq, seqs(head.name)) == (f"cluster:{cluster.pk}", 3, [1, 2, 3])
    assert head.hash == DecisionEvent.objects.get(kind=Event.APPROVED).hash


def test_what_belongs_to_no_cluster_has_a_chain_of_its_own(cluster: Cluster) -> None:
    timeline.audit("paused", at=NOW, by=SYSTEM, cluster=cluster)
    timeline.audit("role given", at=NOW, by=SYSTEM)
    assert seqs(INSTALLATION) == [1]


def test_the_hash_covers_the_content_the_place_and_the_hash_before(decision: Decision, ada: User) -> None:
    timeline.append(decision.pk, Event.ASKED, at=NOW)
    timeline.append(decision.pk, Event.DENIED, at=at(1.5), by=Actor.person(ada), reason="é", detail={"n": 1})
    first, second = DecisionEvent.objects.all()
    written = (
        f'{{"at":"2026-11-30T03:00:01.500000+00:00","before":"{first.hash}","by_id":{ada.pk},"by_name":"ada",'
        f'"chain":"cluster:{decision.cluster_id}","decision":{decision.pk},"detail":{{"n":1}},"encoding":1,'
        '"kind":"denied","reason":"\\u00e9","seq":2,"table":"timeline"}'
    )
    assert second.hash == hashlib.sha256(written.encode()).hexdigest()
    assert first.hash == digest(first, chain=f"cluster:{decision.cluster_id}", seq=1, before=FIRST)


@pytest.mark.parametrize(
    "value",
    [
        "nul \x00",
        "half \ud800",
        "😀" * 5000,
        1.0,
        -0.0,
        0.1,
        1e-7,
        1e16,
        2**60,
        True,
        None,
        [1, {"ключ": 2.5}],
        (1,),
    ],
)
def test_whatever_was_given_the_hash_is_of_what_stands_there(cluster: Cluster, value: object) -> None:
    timeline.audit("seen", at=NOW, by=SYSTEM, cluster=cluster, subject=str(value), detail={"value": value})
    timeline.append(
        make_decision(cluster).pk, Event.ASKED, at=NOW, reason=str(value), detail={"value": value}
    )
    assert verification.verify(f"cluster:{cluster.pk}").entries == 2


def test_a_number_is_written_in_one_way_only() -> None:
    assert canonical({"b": 1, "a": "\u202e"}) == '{"a":"\\u202e","b":1}'


# --- with its change, and at its end ----------------------------------------------------------------------


def test_a_change_that_is_rolled_back_leaves_no_entry_and_no_gap(decision: Decision) -> None:
    timeline.append(decision.pk, Event.ASKED, at=NOW)
    fails(timeline.transaction, decision)
    with timeline.transaction():
        timeline.append(decision.pk, Event.APPROVED, at=NOW)
        transaction.set_rollback(True)
    timeline.append(decision.pk, Event.DENIED, at=NOW)
    assert [(row.seq, row.kind) for row in DecisionEvent.objects.all()] == [(1, "asked"), (2, "denied")]


@pytest.mark.parametrize("block", [timeline.transaction, transaction.atomic])
def test_a_savepoint_that_is_rolled_back_takes_its_entries_with_it(decision: Decision, block: Any) -> None:
    with timeline.transaction():
        timeline.append(decision.pk, Event.ASKED, at=NOW)
        fails(block, decision)
        with block():
            timeline.append(decision.pk, Event.DENIED, at=NOW)
            transaction.set_rollback(True)
        with block():
            timeline.append(decision.pk, Event.TAKEN_BACK, at=NOW)
    assert [row.kind for row in DecisionEvent.objects.all()] == ["asked", "taken_back"]


def test_entries_are_written_last_and_in_their_order(decision: Decision) -> None:
    with timeline.transaction():
        timeline.append(decision.pk, Event.ASKED, at=NOW)
        timeline.append(decision.pk, Event.APPROVED, at=NOW)
        assert not DecisionEvent.objects.exists()
    assert [row.kind for row in DecisionEvent.objects.order_by("seq")] == ["asked", "approved"]


def test_a_thousand_entries_take_a_handful_of_statements(
    decision: Decision, django_assert_max_num_queries: Any
) -> None:
    with django_assert_max_num_queries(30), timeline.transaction():
        for _ in range(1_000):
            timeline.append(decision.pk, Event.NOMINATED_AGAIN, at=NOW)
    assert verification.verify(f"cluster:{decision.cluster_id}").entries == 1_000


# --- nothing of it changes --------------------------------------------------------------------------------


@pytest.mark.parametrize("table", TABLES[:2])
@pytest.mark.parametrize("statement", ["UPDATE {} SET by_name = 'x'", "DELETE FROM {}"])
def test_the_database_refuses_to_change_an_entry(decision: Decision, table: str, statement: str) -> None:
    timeline.append(decision.pk, Event.ASKED, at=NOW)
    timeline.audit("paused", at=NOW, by=SYSTEM)
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        connection.cursor().execute(statement.format(table))


@pytest.mark.parametrize("table", TABLES[:2])
@pytest.mark.parametrize("key", ["id", "seq"])
def test_sqlite_refuses_to_put_another_entry_in_ones_place(decision: Decision, table: str, key: str) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("only SQLite has INSERT OR REPLACE")
    timeline.append(decision.pk, Event.ASKED, at=NOW)
    timeline.audit("paused", at=NOW, by=SYSTEM)
    cursor = connection.cursor()
    names = [column.name for column in connection.introspection.get_table_description(cursor, table)]
    values = {"reason": "'x'", "seq": "99", "id": "99"} | {key: key}
    chosen = ", ".join(values.get(name, name) for name in names)
    statement = "INSERT OR REPLACE INTO {0} ({1}) SELECT {2} FROM {0}"
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        cursor.execute(statement.format(table, ", ".join(names), chosen))


@pytest.mark.parametrize("table", TABLES)
def test_the_database_refuses_to_empty_it(db: None, table: str) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has no TRUNCATE")
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        connection.cursor().execute(f"TRUNCATE {table} CASCADE")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE decisions_chain SET seq = seq - 1",
        "UPDATE decisions_chain SET hash = 'x'",
        "UPDATE decisions_chain SET name = 'x'",
        "DELETE FROM decisions_chain",
    ],
)
def test_a_head_only_goes_on(decision: Decision, statement: str) -> None:
    timeline.append(decision.pk, Event.ASKED, at=NOW)
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        connection.cursor().execute(statement)


def test_what_the_record_speaks_of_stays(cluster: Cluster, decision: Decision) -> None:
    timeline.append(decision.pk, Event.ASKED, at=NOW)
    with pytest.raises(ProtectedError):
        decision.delete()
    other = make_cluster("other")
    timeline.audit("paused", at=NOW, by=SYSTEM, cluster=other)
    with pytest.raises(ProtectedError):
        other.delete()


def test_a_person_may_go_and_what_they_did_stays(decision: Decision, ada: User) -> None:
    timeline.append(decision.pk, Event.APPROVED, at=NOW, by=Actor.person(ada))
    key = ada.pk
    ada.delete()
    row = DecisionEvent.objects.get()
    assert (row.by_id, row.by_name) == (key, "ada")


def test_no_admin_site_edits_it() -> None:
    from django.apps import apps

    assert not apps.is_installed("django.contrib.admin")
    assert not [name for name in get_resolver().reverse_dict if "admin" in str(name)]
    assert "admin" not in get_resolver().namespace_dict


# --- on standard output -----------------------------------------------------------------------------------


def test_an_entry_is_one_line_of_json(printed: Any, decision: Decision, ada: User) -> None:
    (line,) = printed(
        lambda: timeline.append(
            decision.pk, Event.DENIED, at=NOW, by=Actor.person(ada), reason="no\n\x1b[31m"
        )
    )
    row = DecisionEvent.objects.get()
    assert (line["chain"], line["seq"], line["hash"]) == (f"cluster:{decision.cluster_id}", 1, row.hash)
    assert (line["kind"], line["by"], line["reason"]) == ("denied", "ada", "no\n\x1b[31m")
    assert (line["cluster"], line["pod"], line["decision"]) == ("prod", decision.pod, decision.pk)


def test_an_audit_entry_is_one_too(printed: Any, cluster: Cluster) -> None:
    (line,) = printed(
        lambda: timeline.audit("armed", at=NOW, by=SYSTEM, cluster=cluster, subject="prod", detail={"a": 1})
    )
    assert (line["kind"], line["cluster"], line["subject"], line["detail"]) == (
        "armed",
        "prod",
        "prod",
        {"a": 1},
    )


def test_what_is_rolled_back_is_not_printed(printed: Any, decision: Decision) -> None:
    def change() -> None:
        with timeline.transaction():
            timeline.append(decision.pk, Event.ASKED, at=NOW)
            transaction.set_rollback(True)

    assert printed(change) == []


def test_an_entry_that_cannot_be_printed_holds_up_nothing(printed: Any, cluster: Cluster) -> None:
    def breaks(record: logging.LogRecord) -> bool:
        assert "paused" not in record.getMessage()
        return True

    def change() -> None:
        with timeline.transaction():
            timeline.audit("paused", at=NOW, by=SYSTEM, cluster=cluster)
            timeline.audit("resumed", at=NOW, by=SYSTEM, cluster=cluster)

    record_lines.log.addFilter(breaks)
    try:
        assert [line["kind"] for line in printed(change)] == ["resumed"]
    finally:
        record_lines.log.removeFilter(breaks)


def test_a_line_is_bounded_printable_and_without_secrets(decision: Decision) -> None:
    row = DecisionEvent(
        decision=decision, kind="denied", at=NOW, seq=7, hash="f" * 64, chain=Chain(name=INSTALLATION)
    )
    row.reason, row.detail = "\x1b\u202e😀" * 4096, {"many": ["x" * 100] * 1000}
    text = record_lines.line(row, {"pod": "/doors/dui_secret123456/evict"})
    line = json.loads(text)
    assert (line["seq"], line["hash"], line["cut"], line["detail"]) == (7, "f" * 64, True, {})
    assert len(text) <= record_lines.MOST_BYTES
    assert text.isascii()
    assert text.isprintable()
    assert "secret123456" not in text


def test_lines_pass_the_log_by(settings: Any) -> None:
    logger = settings.LOGGING["loggers"][record_lines.LOGGER]
    handler = settings.LOGGING["handlers"]["record"]
    assert (logger["level"], logger["propagate"], logger["handlers"]) == ("INFO", False, ["record"])
    assert (handler["stream"], settings.LOGGING["formatters"]["record"]) == (
        "ext://sys.__stdout__",
        {"format": "%(message)s"},
    )


PRINTS_ONE: Final = """
import django; django.setup()
import logging
from datetime import UTC, datetime
from decisions.models import AuditEntry, Chain
from decisions.services import record_lines
from deschedui.celery import app
app.log.redirect_stdouts_to_logger(logging.getLogger("celery.redirected"))
row = AuditEntry(what="paused", at=datetime.now(UTC), seq=1, hash="f", chain=Chain(name="installation"))
record_lines.write(row, {})
"""


@pytest.mark.parametrize("debug", ["0", "1"])
def test_lines_stay_as_they_are_in_a_worker_and_under_debug(debug: str) -> None:
    """Celery makes everything that is printed a line of its log, and a quiet log drops what is less than an error."""
    quiet = {"DESCHEDUI_DEBUG": debug, "DESCHEDUI_DEMO": "1", "DESCHEDUI_LOG_LEVEL": "ERROR"}
    environ = {**os.environ, **quiet, "DJANGO_SETTINGS_MODULE": "deschedui.settings"}
    argv = [sys.executable, "-c", PRINTS_ONE]
    ended = subprocess.run(argv, capture_output=True, text=True, check=True, cwd=ROOT, env=environ)
    assert [json.loads(line)["kind"] for line in ended.stdout.splitlines()] == ["paused"]


# --- who opens which transaction --------------------------------------------------------------------------


def test_services_write_their_entries_at_the_end_of_their_transaction() -> None:
    """A bare ``atomic()`` around an entry would hold the chain's lock while the rest takes others."""
    services = Path(timeline.__file__).parent
    users = [path for path in services.glob("*.py") if "timeline." in path.read_text(encoding="utf-8")]
    users.remove(Path(timeline.__file__))
    bare = [path.name for path in users if "atomic(" in path.read_text(encoding="utf-8")]
    assert len(users) > 8
    assert bare == []
