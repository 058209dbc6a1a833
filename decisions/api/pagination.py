"""Pages by cursor: stable while rows are added, and cheap at any depth."""

from rest_framework.pagination import CursorPagination


class CursorPages(CursorPagination):
    """``?cursor=…&page_size=…``, newest first."""

    ordering: tuple[str, ...] = ("-created_at", "-id")
    page_size_query_param = "page_size"
    max_page_size = 500


class NewestStarted(CursorPages):
    """For cycles."""

    ordering = ("-started_at", "-id")


class NewestId(CursorPages):
    """For rows whose id says their order."""

    ordering = ("-id",)
