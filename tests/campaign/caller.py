"""A caller of the extender door that implements ``ignorable: true``: told yes, it evicts; a call that fails is a yes.

As a descheduler would: it goes through the pods that it cares for, asks about each, and calls the Eviction API itself.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, Literal

import httpx

from tests.campaign.accounts import Asked, Evicted
from tests.campaign.collect import CALLER_USER
from tests.campaign.notebook import Notebook
from tests.campaign.plane import HarmedPlane

TIMEOUT: Final = 20.0
NAMESPACE: Final = "stage"
# What it cares for: its own pods, and some that our policy nominates as well.
SELECTOR: Final = "labelSelector=caller%3Dyes"
PAUSE: Final = 0.25
AGE_SECONDS: Final = 4.0

Outcome = Literal["yes", "no", "failed"]


def understood(answer: httpx.Response) -> tuple[Outcome, int | None]:
    """What an answer of the door means to such a caller: anything that is no well-formed answer is a failure."""
    try:
        body = answer.json()
    except ValueError:
        return "failed", None
    if answer.status_code != 200 or not isinstance(body, dict) or not isinstance(body.get("allow"), bool):
        return "failed", None
    decision = body.get("decision")
    return "yes" if body["allow"] else "no", decision if isinstance(decision, int) else None


class Caller(threading.Thread):
    """Asks about one pod after the other, and evicts what it may."""

    def __init__(self, url: str, token: str, plane: HarmedPlane, notebook: Notebook) -> None:
        super().__init__(name="caller", daemon=True)
        self._url, self._token, self._plane, self._notebook = url, token, plane, notebook
        self.stopped = threading.Event()

    def run(self) -> None:
        while not self.stopped.wait(PAUSE):
            with suppress(OSError, ValueError, KeyError):
                self._round()

    def _round(self) -> None:
        pods = self._plane.request("GET", f"/api/v1/namespaces/{NAMESPACE}/pods?{SELECTOR}")[1]["items"]
        for pod in pods:
            if self.stopped.wait(PAUSE):
                return
            if _is_due(pod, time.time()):
                self._ask(pod)

    def _ask(self, pod: Mapping[str, Any]) -> None:
        uid, asked = pod["metadata"]["uid"], time.time()
        outcome, decision = self._hear(pod)
        place = self._notebook.asked(Asked(uid, asked, time.time(), outcome, decision))
        if outcome != "no":
            self._evict(pod, place)

    def _hear(self, pod: Mapping[str, Any]) -> tuple[Outcome, int | None]:
        headers = {"Authorization": f"Bearer {self._token}", "Connection": "close"}
        body = {"pod": pod, "node": None}
        try:
            return understood(
                httpx.post(f"{self._url}/doors/evict", json=body, headers=headers, timeout=TIMEOUT)
            )
        except httpx.HTTPError:
            return "failed", None

    def _evict(self, pod: Mapping[str, Any], because: int) -> None:
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "deleteOptions": {"preconditions": {"uid": uid}},
        }
        # Written down before it is sent: what becomes of the call stands in the audit log.
        self._notebook.evicted(Evicted(uid, time.time(), because))
        with suppress(OSError, json.JSONDecodeError):
            path = f"/api/v1/namespaces/{NAMESPACE}/pods/{name}/eviction"
            self._plane.request("POST", path, body, account=CALLER_USER)


def _is_due(pod: Mapping[str, Any], now: float) -> bool:
    started = pod["metadata"]["creationTimestamp"]
    age = now - time.mktime(time.strptime(started, "%Y-%m-%dT%H:%M:%SZ")) + time.timezone
    return age > AGE_SECONDS and "deletionTimestamp" not in pod["metadata"]
