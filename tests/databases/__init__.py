"""The product's databases, as the tests use them: between tests the record may be emptied."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection

from decisions.guards import guards


@contextmanager
def guards_lifted() -> Iterator[None]:
    """As somebody who may change tables: the record's triggers are gone for a while."""
    connection.check_constraints()
    found = guards(connection.vendor)
    _execute(each.drop for each in found)
    yield
    connection.check_constraints()
    _execute(each.create for each in found)


def _execute(statements: Iterator[str]) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


class EmptiesTheRecord:
    """Emptying the tables after a test that commits lifts the triggers of the record and puts them up again."""

    connection: Any

    def sql_flush(self, *args: Any, **kwargs: Any) -> list[str]:
        """The statements that empty all tables."""
        statements: list[str] = super().sql_flush(*args, **kwargs)  # type: ignore[misc]  # of the operations class
        found = guards(self.connection.vendor)
        return [*(each.drop for each in found), *statements, *(each.create for each in found)]
