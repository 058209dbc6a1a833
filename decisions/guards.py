"""Triggers that keep the record append-only, whatever speaks to the database: our code, a shell, a wrong tool.

They stop mistakes and whoever has no more than our own statements; who may change tables can also drop a trigger, which
is what the chain of hashes and a head that is kept elsewhere are for (``verify_audit``).
"""

from dataclasses import dataclass
from typing import Final

ROWS: Final = ("decisions_decisionevent", "decisions_auditentry")
HEADS: Final = "decisions_chain"
REFUSAL: Final = "the record is append-only"
# What the update of a head may not do.
_GOES_BACK: Final = " OR ".join(
    (
        "NEW.id <> OLD.id",
        "NEW.name <> OLD.name",
        "NEW.seq < OLD.seq",
        "(NEW.seq = OLD.seq AND NEW.hash <> OLD.hash)",
    )
)


@dataclass(frozen=True)
class Guard:
    """One trigger: how it is made and dropped."""

    table: str
    name: str
    create: str
    drop: str


def guards(vendor: str) -> tuple[Guard, ...]:
    """The triggers for a database, ``sqlite`` or ``postgresql``."""
    make = {"sqlite": _on_sqlite, "postgresql": _on_postgresql}[vendor]
    kinds = ("UPDATE", "DELETE", "TRUNCATE") if vendor == "postgresql" else ("UPDATE", "DELETE")
    return tuple(make(table, kind) for table in (*ROWS, HEADS) for kind in kinds)


FUNCTION: Final = f"""
CREATE FUNCTION decisions_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '{REFUSAL}: % of % refused', TG_OP, TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END
$$
"""
DROP_FUNCTION: Final = "DROP FUNCTION decisions_refuse()"


def _name(table: str, kind: str) -> str:
    return f"{table}_no_{kind.lower()}"


def _only_backwards(table: str, kind: str) -> str:
    """A head is updated with each entry; only what would set it back is refused."""
    return f"WHEN ({_GOES_BACK})" if (table, kind) == (HEADS, "UPDATE") else ""


def _on_postgresql(table: str, kind: str) -> Guard:
    name, when = _name(table, kind), _only_backwards(table, kind)
    each = "FOR EACH ROW" if when else "FOR EACH STATEMENT"
    return Guard(
        table,
        name,
        f"CREATE TRIGGER {name} BEFORE {kind} ON {table} {each} {when} EXECUTE FUNCTION decisions_refuse()",
        f"DROP TRIGGER {name} ON {table}",
    )


def _on_sqlite(table: str, kind: str) -> Guard:
    name, when = _name(table, kind), _only_backwards(table, kind)
    refuse = f"BEGIN SELECT RAISE(ABORT, '{REFUSAL}: {kind} of {table} refused'); END"
    return Guard(
        table,
        name,
        f"CREATE TRIGGER {name} BEFORE {kind} ON {table} FOR EACH ROW {when} {refuse}",
        f"DROP TRIGGER {name}",
    )
