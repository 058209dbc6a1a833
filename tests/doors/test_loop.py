"""Whoever has connected is answered, also where the process had no time to notice before it was told to end."""

from __future__ import annotations

import asyncio
import logging
import socket
from contextlib import closing
from typing import Any

import pytest
from uvicorn.config import Config
from uvicorn.server import ServerState

from decisions.doors.asgi import with_doors
from decisions.doors.loop import DoorLoop
from decisions.doors.protocol import DoorProtocol
from decisions.doors.refusals import refusal
from tests.doors.edges import pod_body
from tests.doors.ignorable import Heard, answered, question, said


async def _nobody(scope: Any, receive: Any, send: Any) -> None:
    raise AssertionError("a door must not reach Django")


def _config() -> Config:
    application = with_doors(_nobody, door=lambda *_args, **_more: refusal("asked"))
    config = Config(application, http=DoorProtocol, log_config=None, lifespan="off")
    config.load()
    return config


async def _close_on(callers: int) -> list[Heard]:
    """Connect while the loop does something else; close; only then let it go on."""
    loop, config, state = asyncio.get_running_loop(), _config(), ServerState()

    def protocol() -> DoorProtocol:
        return DoorProtocol(config=config, server_state=state, app_state={})

    server = await loop.create_server(protocol, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    connections = [socket.create_connection(("127.0.0.1", port)) for _ in range(callers)]
    server.close()
    heard = await asyncio.gather(*(asyncio.to_thread(_ask_on, each) for each in connections))
    refused = await asyncio.to_thread(said, port, question(pod_body()))
    return [*heard, refused]


def _ask_on(connection: socket.socket) -> Heard:
    with connection:
        return answered(connection, question(pod_body()))


@pytest.mark.parametrize("callers", [1, 20])
def test_who_waits_to_be_taken_in_when_the_listener_closes_is_answered(callers: int) -> None:
    with asyncio.Runner(loop_factory=DoorLoop) as runner:
        *heard, late = runner.run(_close_on(callers))
    assert [str(each) for each in heard if each.evicts] == []
    assert all(each.closes for each in heard)
    assert "refused" in late.why


@pytest.mark.parametrize("wanted", [True, False])
def test_a_line_for_each_request_is_written_only_where_it_was_asked_for(wanted: bool) -> None:
    config = Config(_nobody, http=DoorProtocol, log_config=None, lifespan="off", access_log=wanted)
    config.load()
    # As Django's settings leave it: the root's handler, which masks, is its own.
    logging.getLogger("uvicorn.access").propagate = True
    with closing(DoorLoop()) as loop:
        made = DoorProtocol(config=config, server_state=ServerState(), app_state={}, _loop=loop)
    assert made.access_log is wanted
