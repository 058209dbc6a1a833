"""A small cluster in memory for the tests of the demo's controllers: no server, no waiting, a clock of its own."""

from datetime import UTC, datetime, timedelta
from typing import Any

from deschedui.demo.apiserver.admission import admit
from deschedui.demo.apiserver.calls import Call
from deschedui.demo.apiserver.eviction import evict, is_ready
from deschedui.demo.apiserver.resources import BUDGETS, DEPLOYMENTS, NAMESPACES, NODES, PODS, Resource
from deschedui.demo.apiserver.store import Json, Store
from deschedui.demo.controller import Controller
from deschedui.demo.kubelets import Pace

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


class Cluster:
    """A store with the namespace `shop`, its controllers, and a clock that only the test moves."""

    def __init__(self, *, drama: bool = False, pace: Pace | None = None) -> None:
        self.now = NOW
        self.store = Store(lambda: self.now)
        self.controller = Controller(self.store, drama=drama, pace=pace)
        self.add(NAMESPACES, {"metadata": {"name": "shop"}}, "")

    def add(self, resource: Resource, obj: Json, namespace: str = "shop") -> Json:
        """Create an object as the API server would."""
        return self.store.put(resource, admit(resource, obj, namespace, self.store)).obj

    def node(
        self, name: str, *, taints: list[Json] | None = None, cpu: str = "4", labels: Json | None = None
    ) -> None:
        """A node that has been there for a while."""
        all_labels = {"kubernetes.io/hostname": name, **(labels or {})}
        made = admit(NODES, {"metadata": {"name": name, "labels": all_labels}}, "", self.store)
        size = {"cpu": cpu, "memory": "16Gi", "pods": "10"}
        made |= {"spec": {"taints": taints or []}, "status": {"allocatable": size, "capacity": size}}
        self.store.put(NODES, made)

    def deployment(
        self, name: str, replicas: int = 1, *, annotations: Json | None = None, **spec: Any
    ) -> None:
        """A Deployment whose pods carry `app: <name>`."""
        about: Json = {"labels": {"app": name}, "annotations": annotations or {}}
        self.add(
            DEPLOYMENTS,
            {"metadata": {"name": name}, "spec": workload(name, about, replicas=replicas, **spec)},
        )

    def budget(self, covers: str, **terms: Any) -> None:
        """A PodDisruptionBudget over the pods of `app: <covers>`, named like them."""
        selector = {"matchLabels": {"app": covers}}
        self.add(BUDGETS, {"metadata": {"name": covers}, "spec": terms | {"selector": selector}})

    def pass_time(self, seconds: float = 0) -> None:
        """Let the time pass, then let the controllers come to rest."""
        self.now += timedelta(seconds=seconds)
        self.controller.settle(self.now)

    def pods(self) -> list[Json]:
        return list(self.store.all(PODS))

    def ready(self) -> list[str]:
        """The names of the ready pods that are not ending."""
        alive = [p for p in self.pods() if "deletionTimestamp" not in p["metadata"]]
        return [p["metadata"]["name"] for p in alive if is_ready(p)]

    def evict(self, name: str) -> None:
        """Evict a pod through the Eviction subresource."""
        body = b'{"metadata": {"name": "%s"}}' % name.encode()
        evict(self.store, Call(PODS, "shop", name, "eviction", body=body))

    def allowed(self, name: str) -> int:
        """What a budget allows now."""
        stored = self.store.get(BUDGETS, f"shop/{name}")
        assert stored is not None
        return int(stored.obj["status"]["disruptionsAllowed"])


def workload(name: str, about: Json, **spec: Any) -> Json:
    """The spec of a workload of one small container; `pod` in the keywords adds to the pod's spec."""
    extra = spec.pop("pod", {})
    container = {"name": "main", "image": "registry.example/app:1", "resources": {"requests": {"cpu": "1"}}}
    template = {"metadata": about, "spec": {"containers": [container]} | extra}
    return {"selector": {"matchLabels": {"app": name}}, "template": template} | spec
