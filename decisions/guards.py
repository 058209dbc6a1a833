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
_GOES_BACK: Final = (
    "NEW.id <> OLD.id OR NEW.name <> OLD.name OR NEW.seq < OLD.seq OR "
    "(NEW.seq = OLD.seq AND NEW.hash <> OLD.hash)"
)
# SQLite's INSERT OR REPLACE takes the row that is in its way out without asking a trigger on DELETE.
_REPLACES: Final = (
    "EXISTS (SELECT 1 FROM {table} WHERE id = NEW.id) OR "
    "EXISTS (SELECT 1 FROM {table} WHERE chain_id = NEW.chain_id AND seq = NEW.seq)"
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
    everywhere = [make(table, kind) for table in (*ROWS, HEADS) for kind in kinds]
    over = [make(table, "INSERT") for table in ROWS] if vendor == "sqlite" else []
    return (*everywhere, *over)


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


def _only_when(table: str, kind: str) -> str:
    """A head is updated with each entry and a row added; only what sets back or takes a place is refused."""
    if kind == "INSERT":
        return f"WHEN ({_REPLACES.format(table=table)})"
    return f"WHEN ({_GOES_BACK})" if (table, kind) == (HEADS, "UPDATE") else ""


def _on_postgresql(table: str, kind: str) -> Guard:
    name, when = _name(table, kind), _only_when(table, kind)
    each = "FOR EACH ROW" if when else "FOR EACH STATEMENT"
    return Guard(
        table,
        name,
        f"CREATE TRIGGER {name} BEFORE {kind} ON {table} {each} {when} EXECUTE FUNCTION decisions_refuse()",
        f"DROP TRIGGER {name} ON {table}",
    )


def _on_sqlite(table: str, kind: str) -> Guard:
    name, when = _name(table, kind), _only_when(table, kind)
    refuse = f"BEGIN SELECT RAISE(ABORT, '{REFUSAL}: {kind} of {table} refused'); END"
    return Guard(
        table,
        name,
        f"CREATE TRIGGER {name} BEFORE {kind} ON {table} FOR EACH ROW {when} {refuse}",
        f"DROP TRIGGER {name}",
    )
