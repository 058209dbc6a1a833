"""Is the record whole? Each chain is read from its first entry, and each hash computed again.

Alone, a chain shows rows that were changed, taken out or moved. Somebody who may write to the whole database can write
it anew from some entry on, or cut it off and set its head back; what they cannot reach is a head that was kept
elsewhere: exported, or the last line that a log collector has. Held against one, that shows too.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from django.db import connection
from django.db.models import Max, QuerySet

from decisions.guards import guards
from decisions.models import INSTALLATION, AuditEntry, Chain, DecisionEvent
from decisions.services.chains import ENCODING, FIRST, Row, digest
from decisions.services.record_lines import FORM, MARK

STEP: Final = 2_000
_TABLES: Final = (DecisionEvent, AuditEntry)
_CHAIN: Final = re.compile(rf"{INSTALLATION}|cluster:\d{{1,18}}")


class Wrong(StrEnum):
    """What is wrong at the first place where a chain breaks."""

    CHANGED = "changed"
    MISSING = "missing"
    REORDERED = "reordered"
    TWICE = "twice"
    TAIL = "missing tail"
    HEAD = "head"
    ANEW = "written anew"


@dataclass(frozen=True)
class Head:
    """Where a chain ended when somebody looked: its last entry, and that one's hash."""

    chain: str
    seq: int
    hash: str


@dataclass(frozen=True)
class Break:
    """The first place where a chain is not as it was written."""

    seq: int
    wrong: Wrong
    sentence: str


@dataclass(frozen=True)
class Verified:
    """What was found of one chain: so many entries are whole, from the first on, and the last of them has this hash."""

    chain: str
    entries: int
    hash: str
    broken: Break | None = None


# --- one chain --------------------------------------------------------------------------------------------


def verify(chain: str, kept: Head | None = None) -> Verified:
    """Check one chain up to where it ends now; entries that are written meanwhile are for the next time.

    Args:
        kept: a head of this chain that was kept outside the database.
    """
    # Entries and their head are committed together: read in this order, none is beyond the head.
    last = _last(chain)
    head = Chain.objects.filter(name=chain).first() or Chain(name=chain)
    before, entries = FIRST, 0
    for seq, rows in _places(head):
        broken = _wrong(head, seq, rows, before) or _other(kept, seq, rows)
        if broken is not None:
            return Verified(chain, entries, before, broken)
        before, entries = rows[0].hash, seq
    return Verified(chain, entries, before, _wrong_end(head, before, last, kept))


def _last(chain: str) -> int:
    found = (_rows(table, chain).aggregate(last=Max("seq"))["last"] for table in _TABLES)
    return max(seq or 0 for seq in found)


def _rows(table: type[DecisionEvent] | type[AuditEntry], chain: str) -> "QuerySet[Any]":
    return table._default_manager.filter(chain__name=chain)


def _places(head: Chain) -> Iterator[tuple[int, list[Row]]]:
    """Every place of a chain, in order, with what stands there: one row, if all is well."""
    for start in range(1, head.seq + 1, STEP):
        end = min(start + STEP - 1, head.seq)
        found: dict[int, list[Row]] = {seq: [] for seq in range(start, end + 1)}
        for table in _TABLES:
            for row in _rows(table, head.name).filter(seq__range=(start, end)).order_by("seq"):
                found[row.seq].append(row)
        yield from found.items()


def _wrong(head: Chain, seq: int, rows: list[Row], before: str) -> Break | None:
    if not rows:
        return _gap(head, seq)
    if len(rows) > 1:
        both = " and ".join(_called(row) for row in rows)
        return Break(seq, Wrong.TWICE, f"{both} both say that they are entry {seq}")
    row = rows[0]
    if row.encoding != ENCODING:
        return Break(seq, Wrong.CHANGED, f"{_called(row)} has encoding {row.encoding}, which there never was")
    if digest(row, chain=head.name, seq=seq, before=before) == row.hash:
        return None
    return _moved(head, seq, before) or Break(
        seq, Wrong.CHANGED, f"{_called(row)} is not as it was written: its content or its hash was changed"
    )


def _gap(head: Chain, seq: int) -> Break:
    following = [
        found
        for table in _TABLES
        if (found := _rows(table, head.name).filter(seq__gt=seq).order_by("seq").first()) is not None
    ]
    if not following:
        return Break(
            seq, Wrong.TAIL, f"{_entries(seq, head.seq)} missing: the chain's head says that it ended there"
        )
    after = min(following, key=lambda row: int(row.seq))
    return Break(seq, Wrong.MISSING, f"{_entries(seq, after.seq - 1)} missing before {_called(after)}")


def _moved(head: Chain, seq: int, before: str) -> Break | None:
    """Whether another row of the chain is the one that was written at this place."""
    for table in _TABLES:
        for row in _rows(table, head.name).iterator(STEP):
            if row.seq != seq and digest(row, chain=head.name, seq=seq, before=before) == row.hash:
                sentence = f"{_called(row)} was written as entry {seq} and stands at {row.seq} now"
                return Break(seq, Wrong.REORDERED, sentence)
    return None


def _other(kept: Head | None, seq: int, rows: list[Row]) -> Break | None:
    if kept is None or kept.seq != seq or kept.hash == rows[0].hash:
        return None
    return Break(
        seq,
        Wrong.ANEW,
        f"the chain is whole, but entry {seq} had hash {kept.hash[:12]}… when its head was kept and has "
        f"{rows[0].hash[:12]}… now: it was written anew, or an older database was restored and went on",
    )


def _wrong_end(head: Chain, before: str, last: int, kept: Head | None) -> Break | None:
    if last > head.seq or (head.seq and head.hash != before):
        return Break(head.seq, Wrong.HEAD, f"the head says entry {head.seq}, the last one there is {last}")
    if kept is not None and kept.seq > head.seq:
        return Break(
            head.seq + 1,
            Wrong.TAIL,
            f"{_entries(head.seq + 1, kept.seq)} missing: the kept head is {kept.seq}",
        )
    return None


def _entries(first: int, last: int) -> str:
    return f"entry {first} is" if first >= last else f"entries {first} to {last} are"


def _called(row: Row) -> str:
    """A row as one finds it in the database."""
    if isinstance(row, DecisionEvent):
        return f"timeline row {row.pk} (of decision {row.decision_id})"
    return f"audit row {row.pk}"


# --- all of them ------------------------------------------------------------------------------------------


def names(kept: Mapping[str, Head]) -> list[str]:
    """Every chain that there is or was."""
    return sorted({*Chain.objects.values_list("name", flat=True), *kept})


def without_head() -> list[str]:
    """A sentence for each table with rows of a chain that is not there any more, which nothing would check."""
    heads = set(Chain.objects.values_list("pk", flat=True))
    found = {
        table: set(table._default_manager.order_by().values_list("chain_id", flat=True).distinct())
        for table in _TABLES
    }
    return [
        f"{table._meta.db_table} has rows of {len(chains - heads)} chains whose head is gone"
        for table, chains in found.items()
        if chains - heads
    ]


def without_guard() -> list[str]:
    """The triggers that are missing or switched off: without them, rows can be changed by mistake."""
    query = {
        "sqlite": "SELECT name FROM sqlite_master WHERE type = 'trigger'",
        "postgresql": "SELECT tgname FROM pg_trigger WHERE tgenabled IN ('O', 'A') AND NOT tgisinternal",
    }[connection.vendor]
    with connection.cursor() as cursor:
        cursor.execute(query)
        there = {name for (name,) in cursor.fetchall()}
    return [guard.name for guard in guards(connection.vendor) if guard.name not in there]


def note(found: Verified, *, now: datetime) -> None:
    """Keep when a chain was last found whole, for the settings page."""
    Chain.objects.filter(name=found.chain).update(verified_at=now, verified_seq=found.entries)


# --- heads that are kept elsewhere ------------------------------------------------------------------------


def export(found: Iterable[Verified], *, now: datetime) -> Iterator[str]:
    """A line of JSON for each chain that was found whole, in the form of the record's own lines."""
    for each in found:
        head = {"chain": each.chain, "seq": each.entries, "hash": each.hash}
        yield json.dumps(
            {"record": MARK, "form": FORM, "head": True, **head, "at": now.astimezone(UTC).isoformat()}
        )


def kept_heads(lines: Iterable[str]) -> dict[str, Head]:
    """The last head of each chain in an export or in a log, whatever stands before a line's JSON and between lines."""
    heads: dict[str, Head] = {}
    for line in lines:
        head = _head_in(line)
        if head is not None and (head.chain not in heads or heads[head.chain].seq <= head.seq):
            heads[head.chain] = head
    return heads


def _head_in(line: str) -> Head | None:
    try:
        found = json.loads(line[line.index("{") :])
    except ValueError:
        return None
    if not isinstance(found, dict) or found.get("record") != MARK:
        return None
    chain, seq, kept = found.get("chain"), found.get("seq"), found.get("hash")
    if not isinstance(chain, str) or not isinstance(seq, int) or not isinstance(kept, str):
        return None
    return Head(chain, seq, kept) if seq > 0 and _CHAIN.fullmatch(chain) else None
