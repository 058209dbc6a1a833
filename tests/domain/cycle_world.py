"""A small cluster in memory, an extender in memory and a clock, for tests of cycles."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import msgspec

from decisions.models import Cluster, Cycle, CycleKind
from decisions.services import cycles
from decisions.services.actors import SYSTEM, Actor
from deschedui.descheduler import objects
from deschedui.extender.client import ExtenderClient
from deschedui.extender.config import ExtenderArgs
from deschedui.kube.errors import NotFound, Stopped
from deschedui.kube.lists import SnapshotLists
from tests.builders import NOW
from tests.engine import builders as engine

Json = dict[str, Any]
OLD = timedelta(hours=30)


def policy_text(
    *, extender: Json | None = None, approval: str = "Required", top: str = "", seconds: int = 86_400
) -> str:
    """PodLifeTime over a day; with an extender gated by ExternalDecision."""
    config: list[Json] = [{"name": "PodLifeTime", "args": {"maxPodLifeTimeSeconds": seconds}}]
    plugins: Json = {"deschedule": {"enabled": ["PodLifeTime"]}}
    if extender is not None:
        config.append({"name": "ExternalDecision", "args": {"extender": extender, "approval": approval}})
        plugins["preevictionfilter"] = {"enabled": ["ExternalDecision"]}
    profile = {"name": "default", "pluginConfig": config, "plugins": plugins}
    head = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\n"
    return f"{head}{top}profiles: {json.dumps([profile])}\n"


def extender_args(**fields: Any) -> Json:
    """An extender as a policy spells it."""
    return {
        "urlPrefix": "https://ext.example",
        "decisionVerb": "evict",
        "ignorable": False,
        "httpTimeout": "5s",
        **fields,
    }


def old_pod(name: str = "web-1", **fields: Any) -> Json:
    """A pod of 30 hours."""
    return engine.pod_manifest(name, **{"age": OLD, "now": NOW, **fields})


@dataclass
class Clock:
    """Stands still unless told otherwise; ``tick`` moves it at each look."""

    at: datetime = NOW
    tick: timedelta = timedelta(0)

    def __call__(self) -> datetime:
        self.at += self.tick
        return self.at

    def forward(self, **how_far: float) -> None:
        self.at += timedelta(**how_far)


@dataclass
class World:
    """A cluster with two nodes and what a test puts there."""

    pods: list[Json] = field(default_factory=lambda: [old_pod()])
    nodes: list[Json] = field(
        default_factory=lambda: [engine.node_manifest("n1"), engine.node_manifest("n2")]
    )
    config_maps: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    others: Json = field(default_factory=dict)
    error: Exception | None = None
    listed: int = 0

    def snapshot_lists(
        self, should_stop: Callable[[], bool] = lambda: False, *, keep_raw: bool = False
    ) -> SnapshotLists:
        self.listed += 1
        if self.error is not None:
            raise self.error
        if should_stop():
            raise Stopped("the list was stopped")
        empty: Json = {"namespaces": [], "priority_classes": [], "pdbs": [], "pvcs": []}
        return SnapshotLists(
            pods=[objects.from_builtins(pod, objects.Pod) for pod in self.pods],
            nodes=[objects.from_builtins(node, objects.Node) for node in self.nodes],
            raw_pods=_raw(self.pods) if keep_raw else {},
            raw_nodes=_raw(self.nodes) if keep_raw else {},
            **{**empty, "replica_sets": [], "stateful_sets": [], **self.others},
        )

    def read_config_map(self, namespace: str, name: str) -> dict[str, str]:
        if (namespace, name) not in self.config_maps:
            raise NotFound(f'configmaps "{name}" not found', status=404)
        return self.config_maps[namespace, name]


def _raw(found: list[Json]) -> dict[str, msgspec.Raw]:
    return {each["metadata"]["uid"]: msgspec.Raw(json.dumps(each).encode()) for each in found}


@dataclass
class FakeExtender:
    """Answers what ``says`` gives for a pod's name; keeps the bodies it was sent."""

    says: Callable[[str], Json | Exception | int] = lambda _name: {"allow": True, "reason": "fine"}
    bodies: list[Json] = field(default_factory=list)

    def factory(self, extenders: Sequence[ExtenderArgs]) -> ExtenderClient:
        return ExtenderClient(extenders, transport=httpx.MockTransport(self._answer), concurrency=4)

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(await request.aread())
        self.bodies.append(body)
        answer = self.says(body["podName"] if "podName" in body else body["pod"]["metadata"]["name"])
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer) if isinstance(answer, int) else httpx.Response(200, json=answer)


@dataclass
class Runs:
    """Starts and runs cycles of one cluster over one world."""

    cluster: Cluster
    folder: Path
    world: World = field(default_factory=World)
    extender: FakeExtender = field(default_factory=FakeExtender)
    clock: Clock = field(default_factory=Clock)

    def policy(self, text: str) -> None:
        """Write the policy file that the cluster names."""
        path = self.folder / "policy.yaml"
        path.write_text(text)
        Cluster.objects.filter(pk=self.cluster.pk).update(policy_file=str(path), policy_configmap="")

    def start(self, kind: str = CycleKind.MANUAL, by: Actor = SYSTEM) -> Cycle:
        """Start, and do not run."""
        return cycles.start(cluster_id=self.cluster.pk, kind=kind, by=by, now=self.clock())

    def run(self, kind: str = CycleKind.MANUAL, by: Actor = SYSTEM) -> Cycle:
        """Start one and run it to its end."""
        return self.finish(self.start(kind, by))

    def finish(self, cycle: Cycle) -> Cycle:
        """Run a started one."""
        cycles.run(cycle.pk, client=self.world, extender_client_factory=self.extender.factory, now=self.clock)
        cycle.refresh_from_db()
        return cycle
