"""Django's backend of this name, except for emptying the tables."""

from django.db.backends.sqlite3 import base, operations

from tests.databases import EmptiesTheRecord


class DatabaseOperations(EmptiesTheRecord, operations.DatabaseOperations):
    """See :mod:`tests.databases`."""


class DatabaseWrapper(base.DatabaseWrapper):
    """See :mod:`tests.databases`."""

    ops_class = DatabaseOperations
