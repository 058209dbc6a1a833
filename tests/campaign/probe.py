"""Watching the whole job from outside: is web ready, does a worker's round trip come back, which pods live."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import Final

import httpx
import psycopg

from tests.campaign.caller import NAMESPACE
from tests.campaign.stage import Stage

EVERY_SECONDS: Final = 0.4
PODS_EVERY_SECONDS: Final = 3.0


class Watcher(threading.Thread):
    """Looks again and again; what a look shows is kept with its time."""

    def __init__(self, name: str, every: float) -> None:
        super().__init__(name=name, daemon=True)
        self.every = every
        self.stopped = threading.Event()

    def run(self) -> None:
        while not self.stopped.wait(self.every):
            with suppress(OSError, ValueError, KeyError, httpx.HTTPError, psycopg.Error):
                self.look()

    def look(self) -> None:
        """One look."""
        raise NotImplementedError


class WebProbe(Watcher):
    """Web's own readiness, through the balancer as its users reach it."""

    def __init__(self, stage: Stage) -> None:
        super().__init__("web probe", EVERY_SECONDS)
        self._url = f"{stage.url}/healthz"
        self.ready: list[float] = []

    def look(self) -> None:
        """Ask for its readiness."""
        asked = time.time()
        if httpx.get(self._url, timeout=10, headers={"Connection": "close"}).status_code == 200:
            self.ready.append(asked)


class WorkerProbe(Watcher):
    """A worker took a message from the broker and wrote to the database: its heartbeat, read from the database."""

    def __init__(self, stage: Stage) -> None:
        super().__init__("worker probe", EVERY_SECONDS)
        self._url = stage.database_url
        self.seen: list[float] = []

    def look(self) -> None:
        """Read the last heartbeat."""
        with psycopg.connect(self._url) as connection:
            query = "SELECT extract(epoch FROM max(seen_at)) FROM decisions_heartbeat"
            last = connection.execute(query).fetchall()[0][0]
        if last is not None and (not self.seen or float(last) > self.seen[-1]):
            self.seen.append(float(last))


class PodProbe(Watcher):
    """Which pods were there, and when last."""

    def __init__(self, stage: Stage) -> None:
        super().__init__("pod probe", PODS_EVERY_SECONDS)
        self._plane = stage.plane
        self.last: dict[str, float] = {}

    def look(self) -> None:
        """List them."""
        listed = time.time()
        items = self._plane.request("GET", f"/api/v1/namespaces/{NAMESPACE}/pods")[1]["items"]
        self.last.update({pod["metadata"]["uid"]: listed for pod in items})

    def living(self, since: float) -> frozenset[str]:
        """Pods that were seen since."""
        return frozenset(uid for uid, seen in self.last.items() if seen >= since)
