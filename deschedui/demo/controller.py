"""What keeps the demo's cluster alive: workloads, scheduler, kubelets, budgets and drama, in one loop."""

import asyncio
import logging
from datetime import datetime, timedelta

from . import budgets, scheduling
from .apiserver.admission import rfc3339
from .apiserver.resources import EVENTS, NODES, PODS
from .apiserver.store import Json, Store, key_of
from .kubelets import INSTANT, Pace, reconcile_nodes, reconcile_pods
from .workloads import Workloads, collect_garbage

TICK_SECONDS = 0.2
MAINTENANCE = timedelta(minutes=3)
EVENTS_KEPT = timedelta(hours=1)
TAINT = {"key": "maintenance", "value": "kernel-update", "effect": "NoSchedule"}

_log = logging.getLogger(__name__)


class Controller:
    """`drama`: things take their time and go wrong, for the demo; without it all is instant and calm, for tests."""

    def __init__(self, store: Store, *, drama: bool, pace: Pace | None = None) -> None:
        self._store = store
        self._drama = drama
        self._pace = pace or (Pace() if drama else INSTANT)
        self._moved: datetime | None = None
        self._swept: datetime | None = None

    async def run(self) -> None:
        """Step until cancelled. A step that fails is logged; the next one tries again."""
        while True:
            try:
                self.step(self._store.clock())
            except Exception:  # noqa: BLE001 - the cluster goes on whatever one object looks like
                _log.exception("a step of the demo's controllers failed")
            await asyncio.sleep(TICK_SECONDS)

    def step(self, now: datetime) -> None:
        """One pass of every controller."""
        store = self._store
        if self._drama:
            self._move_maintenance(now)
        reconcile_nodes(store, now)
        collect_garbage(store)
        self._forget_events(now)
        Workloads(store, now).reconcile()
        scheduling.reconcile(store, store.all(PODS), now)
        reconcile_pods(store, self._pace, now)
        budgets.reconcile(store, store.all(PODS), now)

    def settle(self, now: datetime, *, steps: int = 40) -> None:
        """Step until nothing changes any more."""
        for _ in range(steps):
            before = self._store.revision
            self.step(now)
            if self._store.revision == before:
                return

    def _forget_events(self, now: datetime) -> None:
        """Remove events that are older than an hour, as a real server does; looked at once a minute."""
        if self._swept and now < self._swept + timedelta(minutes=1):
            return
        self._swept = now
        for event in self._store.all(EVENTS):
            if datetime.fromisoformat(event["metadata"]["creationTimestamp"]) + EVENTS_KEPT < now:
                self._store.remove(EVENTS, key_of(event))

    def _move_maintenance(self, now: datetime) -> None:
        """Take the maintenance taint to the next node, every few minutes."""
        if self._moved and now < self._moved + MAINTENANCE:
            return
        self._moved = now
        candidates = [
            n for n in self._store.all(NODES) if (n["metadata"].get("labels") or {}).get("pool") == "general"
        ]
        if not candidates:
            return
        marked = [i for i, n in enumerate(candidates) if _is_marked(n)]
        for index in marked:
            self._taint(
                candidates[index],
                [t for t in candidates[index]["spec"]["taints"] if t["key"] != TAINT["key"]],
            )
        chosen = candidates[(marked[0] + 1) % len(candidates) if marked else 0]
        fresh = TAINT | {"timeAdded": rfc3339(now)}
        self._taint(chosen, [*(chosen["spec"].get("taints") or ()), fresh])

    def _taint(self, node: Json, taints: list[Json]) -> None:
        self._store.put(NODES, node | {"spec": node["spec"] | {"taints": taints}})


def _is_marked(node: Json) -> bool:
    return any(t["key"] == TAINT["key"] for t in node["spec"].get("taints") or ())
