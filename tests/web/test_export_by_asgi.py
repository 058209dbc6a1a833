"""A download is streamed by the server that production runs: its parts are sent as they are read."""

import asyncio
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import connections
from django.test import AsyncClient

from decisions.models import Cluster
from decisions.web import history
from tests.builders import make_decision

pytestmark = pytest.mark.django_db(transaction=True)


async def download(user: User, ending: str) -> list[bytes]:
    browser = AsyncClient()
    try:
        await browser.aforce_login(user)
        response: Any = await browser.get(f"/history/decisions.{ending}")
        assert response.streaming
        assert response.is_async
        return [part async for part in response.streaming_content]
    finally:
        # The test client keeps connections for its own thread; this one's would outlive the test database.
        await sync_to_async(connections.close_all)()


def test_a_csv_is_sent_part_by_part(cluster: Cluster, viewer: User) -> None:
    rows = 2 * history.LINES_AT_ONCE
    for number in range(rows):
        make_decision(cluster, owner_uid=f"o{number}")
    parts = asyncio.run(download(viewer, "csv"))
    assert len(parts) == 3
    assert b"".join(parts).count(b"\n") == rows + 1


def test_a_json_is_whole(cluster: Cluster, viewer: User) -> None:
    make_decision(cluster)
    assert b"".join(asyncio.run(download(viewer, "json"))).strip().endswith(b"]")
