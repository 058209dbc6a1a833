"""Pages by cursor: stable while rows are added, and cheap at any depth."""

from datetime import UTC
from typing import Any

from django.utils.dateparse import parse_datetime
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request


class CursorPages(CursorPagination):
    """``?cursor=…&page_size=…``, newest first."""

    ordering: tuple[str, ...] = ("-created_at", "-id")
    page_size_query_param = "page_size"
    max_page_size = 500

    def get_page_size(self, request: Request) -> int | None:
        """At most ``max_page_size``; DRF would take what is no number for no wish."""
        wanted = request.query_params.get(self.page_size_query_param)
        if wanted is None:
            return self.page_size
        if not (wanted.isascii() and wanted.isdecimal() and wanted.strip("0")):
            raise ValidationError(
                {"page_size": [f"A number from 1; at most {self.max_page_size} come at once."]}
            )
        return min(int(wanted), self.max_page_size) if len(wanted) < 10 else self.max_page_size

    def decode_cursor(self, request: Request) -> Any:
        """The cursor. One whose place is none in this order is invalid; DRF would ask the database for it."""
        cursor = super().decode_cursor(request)
        if cursor is not None and cursor.position is not None and not self._is_place(str(cursor.position)):
            raise NotFound(str(self.invalid_cursor_message))
        return cursor

    def _is_place(self, position: str) -> bool:
        if not self.ordering[0].endswith("_at"):
            return position.isascii() and position.isdecimal() and len(position) < 19
        try:
            moment = parse_datetime(position)
            return moment is not None and moment.tzinfo is not None and bool(moment.astimezone(UTC))
        except (ValueError, OverflowError):
            return False

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        """With the least of a page's size."""
        parameters: list[dict[str, Any]] = super().get_schema_operation_parameters(view)
        for parameter in parameters:
            if parameter["name"] == self.page_size_query_param:
                parameter["schema"] |= {"minimum": 1}
        return parameters


class NewestStarted(CursorPages):
    """For cycles."""

    ordering = ("-started_at", "-id")


class NewestId(CursorPages):
    """For rows whose id says their order."""

    ordering = ("-id",)
