"""Watches on the real API server: everything that became of some objects, in order."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode, urlsplit

from deschedui.demo.controlplane import ControlPlane


class Watch:
    """All events of a collection, read by a thread from the moment of the listing on; a context manager."""

    def __init__(self, plane: ControlPlane, path: str) -> None:
        self.plane, self.path = plane, path
        self.events: list[tuple[str, dict[str, Any]]] = []
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Self:
        _, listed = self.plane.request("GET", self.path)
        self.events += [("LISTED", item) for item in listed["items"]]
        address = urlsplit(self.plane.server)
        context = ssl.create_default_context(cafile=str(self.plane.ca))
        self._connection = http.client.HTTPSConnection(
            str(address.hostname), address.port, context=context, timeout=600
        )
        query = urlencode({"watch": 1, "resourceVersion": listed["metadata"]["resourceVersion"]})
        token = self.plane.accounts["admin"].token
        self._connection.request("GET", f"{self.path}?{query}", headers={"Authorization": f"Bearer {token}"})
        self._answer = self._connection.getresponse()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._connection.sock is not None:
            self._connection.sock.close()
        self._thread.join(timeout=0.2)

    def _read(self) -> None:
        try:
            for line in self._answer:
                event = json.loads(line)
                self.events.append((event["type"], event["object"]))
        except (OSError, ValueError, http.client.HTTPException, AttributeError):
            return  # The connection was closed.


def ready_counts(events: list[tuple[str, dict[str, Any]]]) -> Iterator[int]:
    """From a watch on pods: how many were Ready and not ending, after the listing and after each event."""
    ready: set[str] = set()
    listed = [uid_of(pod) for kind, pod in events if kind == "LISTED" and is_ready(pod)]
    ready.update(listed)
    yield len(ready)
    for kind, pod in events:
        if kind == "LISTED":
            continue
        (ready.add if kind != "DELETED" and is_ready(pod) else ready.discard)(uid_of(pod))
        yield len(ready)


def uid_of(pod: dict[str, Any]) -> str:
    """A pod's UID."""
    return str(pod["metadata"]["uid"])


def is_ready(pod: dict[str, Any]) -> bool:
    """Whether a pod serves: Ready and not ending."""
    conditions = pod.get("status", {}).get("conditions", [])
    ready = any(found["type"] == "Ready" and found["status"] == "True" for found in conditions)
    return ready and "deletionTimestamp" not in pod["metadata"]
