"""verify_audit finds what somebody did who may change tables: rows changed, taken out, moved, a tail cut off."""

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from decisions.models import AuditEntry, Chain, Cluster, DecisionEvent, Event
from decisions.services import record_lines, timeline
from decisions.services.actors import SYSTEM
from decisions.services.chains import digest
from tests.builders import NOW, make_cluster, make_decision
from tests.databases import guards_lifted

pytestmark = pytest.mark.django_db
ENTRIES = 6


@pytest.fixture
def chain(cluster: Cluster) -> str:
    """Six entries of one cluster: timeline and audit in turn."""
    decision = make_decision(cluster)
    for number in range(ENTRIES // 2):
        timeline.append(decision.pk, Event.NOMINATED_AGAIN, at=NOW, reason=f"reason {number}")
        timeline.audit("paused", at=NOW, by=SYSTEM, cluster=cluster, subject=f"subject {number}")
    return Chain.objects.get().name


def run(*arguments: object) -> str:
    """What it prints when all is well."""
    out = StringIO()
    call_command("verify_audit", *map(str, arguments), stdout=out)
    return out.getvalue()


def finds(*arguments: object) -> str:
    """What it prints when something is wrong: the sentence of the break."""
    out = StringIO()
    with pytest.raises(CommandError) as end:
        call_command("verify_audit", *map(str, arguments), stdout=out)
    assert end.value.returncode == 1
    return out.getvalue()


def forge(change: Callable[[], Any]) -> None:
    """As somebody who may change tables, and knows of the triggers."""
    with guards_lifted():
        change()


def cut_tail(chain: str, last: int) -> None:
    """Leave nothing behind entry ``last``, and set the head back to it."""
    DecisionEvent.objects.filter(chain__name=chain, seq__gt=last).delete()
    AuditEntry.objects.filter(chain__name=chain, seq__gt=last).delete()
    row = AuditEntry.objects.filter(seq=last).first() or DecisionEvent.objects.get(seq=last)
    Chain.objects.filter(name=chain).update(seq=last, hash=row.hash)


def test_a_whole_record_is_found_whole_and_counted(chain: str) -> None:
    assert f"{chain} (prod): {ENTRIES} entries" in run()
    assert f"{ENTRIES} entries of 1 chains checked: all as they were written." in run("--cluster", "prod")


@pytest.mark.parametrize(
    "columns", [{"reason": "x"}, {"by_name": "x"}, {"detail": {"a": 1}}, {"hash": "0" * 64}]
)
def test_a_changed_row_of_the_timeline(chain: str, columns: dict[str, Any]) -> None:
    row = DecisionEvent.objects.get(seq=3)
    forge(lambda: DecisionEvent.objects.filter(pk=row.pk).update(**columns))
    assert f"broken at entry 3, changed: timeline row {row.pk}" in finds()


def test_a_changed_row_of_the_audit(chain: str) -> None:
    row = AuditEntry.objects.get(seq=4)
    forge(lambda: AuditEntry.objects.filter(pk=row.pk).update(subject="x"))
    assert f"broken at entry 4, changed: audit row {row.pk}" in finds()


def test_a_changed_row_whose_hash_was_made_to_fit(chain: str) -> None:
    row, before = DecisionEvent.objects.get(seq=3), AuditEntry.objects.get(seq=2).hash
    row.reason = "nobody knows"
    made = digest(row, chain=chain, seq=3, before=before)
    forge(lambda: DecisionEvent.objects.filter(pk=row.pk).update(reason=row.reason, hash=made))
    assert "broken at entry 4, changed" in finds()


def test_a_row_that_was_taken_out(chain: str) -> None:
    forge(lambda: DecisionEvent.objects.filter(seq=3).delete())
    assert (
        f"broken at entry 3, missing: entry 3 is missing before audit row {AuditEntry.objects.get(seq=4).pk}"
        in finds()
    )


def test_two_rows_that_changed_places(chain: str) -> None:
    first, second = DecisionEvent.objects.filter(seq__in=(1, 5)).order_by("seq")

    def swap() -> None:
        DecisionEvent.objects.filter(pk=first.pk).update(seq=100)
        DecisionEvent.objects.filter(pk=second.pk).update(seq=1)
        DecisionEvent.objects.filter(pk=first.pk).update(seq=5)

    forge(swap)
    found = finds()
    assert "broken at entry 1, reordered" in found
    assert f"timeline row {first.pk}" in found


def test_a_row_of_the_other_table_at_the_same_place(chain: str) -> None:
    forge(lambda: AuditEntry.objects.filter(seq=4).update(seq=3))
    assert "broken at entry 3, twice" in finds()


def test_a_tail_that_is_missing_by_the_chains_own_head(chain: str) -> None:
    forge(lambda: AuditEntry.objects.filter(seq=6).delete())
    assert "broken at entry 6, missing tail" in finds()


def test_a_head_that_was_set_back(chain: str) -> None:
    row = DecisionEvent.objects.get(seq=5)
    forge(lambda: Chain.objects.update(seq=5, hash=row.hash))
    assert "broken at entry 5, head" in finds()


def test_a_tail_cut_off_with_its_head_shows_against_an_exported_head(chain: str, tmp_path: Path) -> None:
    kept = tmp_path / "head"
    run("--export-head", kept)
    forge(lambda: cut_tail(chain, 4))
    assert "4 entries" in run()
    assert "broken at entry 5, missing tail: entries 5 to 6 are missing" in finds("--head", kept)


def test_or_against_the_last_lines_of_a_log(chain: str, tmp_path: Path) -> None:
    log = tmp_path / "web.log"
    lines = [record_lines.line(row, {}) for row in DecisionEvent.objects.order_by("seq")]
    noise = [
        '{"event": "started"}',
        "Traceback {",
        '{"record": "deschedui", "chain": "x", "seq": 99, "hash": "a"}',
    ]
    log.write_text("\n".join([*noise, *(f"2026-11-30T03:00:00Z stdout F {line}" for line in lines)]))
    assert "held against entry 5" in run("--head", log)
    forge(lambda: cut_tail(chain, 4))
    assert "missing tail" in finds("--head", log)


def test_a_chain_that_was_written_anew_shows_against_a_kept_head(chain: str, tmp_path: Path) -> None:
    kept = tmp_path / "head"
    run("--export-head", kept)
    forge(lambda: cut_tail(chain, 4))
    for _ in range(3):
        timeline.append(DecisionEvent.objects.all()[0].decision_id, Event.APPROVED, at=NOW)
    assert "7 entries" in run()
    assert "broken at entry 6, written anew" in finds("--head", kept)


def test_a_chain_that_is_gone_altogether_shows_against_a_kept_head(chain: str, tmp_path: Path) -> None:
    kept = tmp_path / "head"
    kept.write_text(json.dumps({"record": "deschedui", "chain": "cluster:77", "seq": 2, "hash": "f" * 64}))
    assert "cluster:77: broken at entry 1, missing tail" in finds("--head", kept)


def test_only_a_broken_cluster_is_named(chain: str) -> None:
    other = make_cluster("other")
    timeline.audit("paused", at=NOW, by=SYSTEM, cluster=other)
    forge(lambda: AuditEntry.objects.filter(cluster=other).update(what="resumed"))
    assert "all as they were written" in run("--cluster", "prod")
    assert "(other): broken at entry 1" in finds()


def test_triggers_that_are_gone_are_said(chain: str) -> None:
    with guards_lifted():
        assert (
            "triggers that keep the record append-only are gone: decisions_decisionevent_no_update" in finds()
        )


def test_a_file_without_a_head_is_refused(chain: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text("nothing of the record\n")
    for file in (tmp_path / "log", tmp_path / "missing"):
        with pytest.raises(CommandError, match=r"has no head|cannot be read"):
            run("--head", file)


def test_an_export_is_kept_only_of_what_is_whole(chain: str, tmp_path: Path) -> None:
    forge(lambda: DecisionEvent.objects.filter(seq=1).update(reason="x"))
    finds("--export-head", tmp_path / "head")
    assert not (tmp_path / "head").exists()


def test_when_it_was_found_whole_is_kept(chain: str) -> None:
    run()
    head = Chain.objects.get()
    assert head.verified_at is not None
    assert head.verified_seq == ENTRIES
