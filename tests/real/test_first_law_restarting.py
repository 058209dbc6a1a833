"""The first law while web is restarted behind a proxy with two instances, one after the other."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.doors.edges import pod_body
from tests.doors.installed import Web, environment_of, install
from tests.real.first_law import Asking, Proxy
from tests.real.services import Missing, postgresql, skip

pytestmark = pytest.mark.real
BODIES = [pod_body(f"uid-{number}", name=f"web-{number}") for number in range(4)]
# What a Service and its ingress take to stop sending; deploy/base/web.yaml waits 5 s (preStop).
UNTIL_NOBODY_SENDS = 0.3


@pytest.fixture(scope="module")
def database_url() -> Iterator[str]:
    """An empty PostgreSQL of this module's own."""
    try:
        with postgresql() as url:
            yield url
    except Missing as missing:
        skip(str(missing))


@pytest.fixture(scope="module")
def token(database_url: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A caller's, in that database."""
    folder = tmp_path_factory.mktemp("first-law-restarting")
    return install(environment_of(folder, DESCHEDUI_DATABASE_URL=database_url))["plain"]


@pytest.fixture
def two(database_url: str, tmp_path: Path) -> Iterator[tuple[list[Web], Proxy]]:
    """Two web processes on one database, and the proxy in front."""
    with ExitStack() as stack:
        environment = environment_of(tmp_path, DESCHEDUI_DATABASE_URL=database_url)
        webs = [stack.enter_context(Web(tmp_path, environment)) for _ in range(2)]
        proxy = Proxy([web.port for web in webs])
        stack.callback(proxy.close)
        yield webs, proxy


def test_a_rolling_restart(two: tuple[list[Web], Proxy], token: str) -> None:
    webs, proxy = two
    with Asking(proxy.port, token, BODIES) as asking:
        for web in webs:
            proxy.ready.discard(web.port)
            time.sleep(UNTIL_NOBODY_SENDS)
            web.end()
            web.start()
            proxy.ready.add(web.port)
            time.sleep(0.5)
    assert asking.evictions() == []
    assert len(asking.heard) > 100


def test_a_proxy_that_learns_of_it_by_a_refused_connection(two: tuple[list[Web], Proxy], token: str) -> None:
    webs, proxy = two
    with Asking(proxy.port, token, BODIES) as asking:
        for web in webs:
            web.end()
            time.sleep(0.2)
            web.start()
    assert asking.evictions() == []
