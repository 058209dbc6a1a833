"""The product's databases, as the tests use them: between tests the record may be emptied."""

from typing import Any

from decisions.guards import guards


class EmptiesTheRecord:
    """Emptying the tables after a test that commits lifts the triggers of the record and puts them up again."""

    connection: Any

    def sql_flush(self, *args: Any, **kwargs: Any) -> list[str]:
        """The statements that empty all tables."""
        statements: list[str] = super().sql_flush(*args, **kwargs)  # type: ignore[misc]  # of the operations class
        found = guards(self.connection.vendor)
        return [*(each.drop for each in found), *statements, *(each.create for each in found)]
