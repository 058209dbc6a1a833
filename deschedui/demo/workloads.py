"""The controllers that keep pods alive: Deployment, ReplicaSet, StatefulSet, DaemonSet, Job; and garbage collection."""

import hashlib
import json
from collections.abc import Iterable
from datetime import datetime, timedelta

from .apiserver.admission import admit, rfc3339
from .apiserver.eviction import is_ready
from .apiserver.resources import (
    CLAIMS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    NODES,
    PODS,
    REPLICA_SETS,
    RESOURCES,
    STATEFUL_SETS,
    Resource,
)
from .apiserver.store import Json, Store, Stored, key_of
from .apiserver.views import table_of
from .apiserver.writing import delete_object
from .budgets import controller_of
from .scheduling import FINISHED, HARD, tolerates

AGE_ANNOTATION = "demo.deschedui.io/starts-aged-seconds"
"""On a pod template: how old its new pods claim to be, so that something is due again soon after each eviction."""

_SAFE = "bcdfghjklmnpqrstvwxz2456789"
_DAEMON_TOLERATIONS = [
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": effect}
    for key, effect in (
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    )
]


class Workloads:
    """One pass over all workloads; pods are grouped by their controller once."""

    def __init__(self, store: Store, now: datetime) -> None:
        self._store = store
        self._now = now
        self._owned: dict[str, list[Json]] = {}
        for pod in store.all(PODS):
            if owner := controller_of(pod):
                self._owned.setdefault(owner["uid"], []).append(pod)

    def reconcile(self) -> None:
        """Create what is missing, remove what is too much, write each status that changed."""
        for deployment in self._store.all(DEPLOYMENTS):
            self._deployment(deployment)
        for replica_set in self._store.all(REPLICA_SETS):
            self._replica_set(replica_set)
        for stateful_set in self._store.all(STATEFUL_SETS):
            self._stateful_set(stateful_set)
        for daemon_set in self._store.all(DAEMON_SETS):
            self._daemon_set(daemon_set)
        for job in self._store.all(JOBS):
            self._job(job)

    def _pods_of(self, owner: Json) -> list[Json]:
        return self._owned.get(owner["metadata"]["uid"], [])

    def _deployment(self, deployment: Json) -> None:
        spec, meta = deployment["spec"], deployment["metadata"]
        digest = _hash(spec["template"])
        current, older = self._replica_sets(deployment, digest)
        if current is None:
            current = self._new_replica_set(deployment, digest)
        self._scale(current, spec["replicas"])
        ready = current["status"].get("readyReplicas", 0)
        for replica_set in older:
            if ready >= spec["replicas"]:
                self._scale(replica_set, 0)
        replicas = current["status"].get("replicas", 0)
        status: Json = {
            "observedGeneration": meta["generation"],
            "replicas": replicas,
            "updatedReplicas": replicas,
        }
        status |= {
            "readyReplicas": ready,
            "availableReplicas": ready,
            "unavailableReplicas": max(0, spec["replicas"] - ready),
        }
        self._status(DEPLOYMENTS, deployment, status)

    def _replica_sets(self, deployment: Json, digest: str) -> tuple[Json | None, list[Json]]:
        uid = deployment["metadata"]["uid"]
        ours = [r for r in self._store.all(REPLICA_SETS) if (controller_of(r) or {}).get("uid") == uid]
        name = f"{deployment['metadata']['name']}-{digest}"
        current = next((r for r in ours if r["metadata"]["name"] == name), None)
        return current, [r for r in ours if r is not current]

    def _new_replica_set(self, deployment: Json, digest: str) -> Json:
        template, mark = deployment["spec"]["template"], {"pod-template-hash": digest}
        labels = (template.get("metadata") or {}).get("labels", {}) | mark
        selector = deployment["spec"]["selector"]
        spec = {
            "replicas": deployment["spec"]["replicas"],
            "selector": selector | {"matchLabels": (selector.get("matchLabels") or {}) | mark},
            "template": template | {"metadata": (template.get("metadata") or {}) | {"labels": labels}},
        }
        name = f"{deployment['metadata']['name']}-{digest}"
        meta = {"name": name, "labels": labels, "ownerReferences": [reference(DEPLOYMENTS, deployment)]}
        made = admit(
            REPLICA_SETS, {"metadata": meta, "spec": spec}, deployment["metadata"]["namespace"], self._store
        )
        return self._store.put(REPLICA_SETS, made).obj

    def _scale(self, replica_set: Json, replicas: int) -> None:
        if replica_set["spec"]["replicas"] != replicas:
            generation = replica_set["metadata"]["generation"] + 1
            spec, meta = (
                replica_set["spec"] | {"replicas": replicas},
                replica_set["metadata"] | {"generation": generation},
            )
            self._store.put(REPLICA_SETS, replica_set | {"spec": spec, "metadata": meta})

    def _replica_set(self, replica_set: Json) -> None:
        alive = [p for p in self._pods_of(replica_set) if _is_active(p)]
        wanted, meta = replica_set["spec"]["replicas"], replica_set["metadata"]
        for _ in range(wanted - len(alive)):
            self._new_pod(REPLICA_SETS, replica_set, {"generateName": f"{meta['name']}-"})
        for pod in sorted(alive, key=is_ready)[: max(0, len(alive) - wanted)]:
            self._delete(pod)
        ready = sum(is_ready(p) for p in alive)
        status: Json = {
            "observedGeneration": meta["generation"],
            "replicas": len(alive),
            "fullyLabeledReplicas": len(alive),
        }
        self._status(
            REPLICA_SETS, replica_set, status | _nonzero(readyReplicas=ready, availableReplicas=ready)
        )

    def _stateful_set(self, stateful_set: Json) -> None:
        spec, meta = stateful_set["spec"], stateful_set["metadata"]
        by_name = {p["metadata"]["name"]: p for p in self._pods_of(stateful_set)}
        ordered = spec["podManagementPolicy"] == "OrderedReady"
        names = [f"{meta['name']}-{i}" for i in range(spec["replicas"])]
        for index, name in enumerate(names):
            pod = by_name.get(name)
            if pod is None:
                self._stateful_pod(stateful_set, name, index)
            if ordered and (pod is None or not is_ready(pod)):
                break
        for name in set(by_name) - set(names):
            self._delete(by_name[name])
        alive = [p for p in by_name.values() if _is_active(p)]
        ready = sum(is_ready(p) for p in alive)
        status: Json = {
            "observedGeneration": meta["generation"],
            "replicas": len(alive),
            "currentReplicas": len(alive),
        }
        self._status(
            STATEFUL_SETS, stateful_set, status | {"availableReplicas": ready} | _nonzero(readyReplicas=ready)
        )

    def _stateful_pod(self, stateful_set: Json, name: str, index: int) -> None:
        volumes = [
            self._claim(stateful_set, c, name) for c in stateful_set["spec"].get("volumeClaimTemplates") or ()
        ]
        labels = {"statefulset.kubernetes.io/pod-name": name, "apps.kubernetes.io/pod-index": str(index)}
        self._new_pod(STATEFUL_SETS, stateful_set, {"name": name, "labels": labels}, volumes=volumes)

    def _claim(self, stateful_set: Json, template: Json, pod: str) -> Json:
        name, namespace = f"{template['metadata']['name']}-{pod}", stateful_set["metadata"]["namespace"]
        if self._store.get(CLAIMS, f"{namespace}/{name}") is None:
            spec = template["spec"] | {"volumeName": f"pv-{namespace}-{name}"}
            claim = admit(CLAIMS, {"metadata": {"name": name}, "spec": spec}, namespace, self._store)
            self._store.put(
                CLAIMS, claim | {"status": {"phase": "Bound", "accessModes": spec.get("accessModes", [])}}
            )
        return {"name": template["metadata"]["name"], "persistentVolumeClaim": {"claimName": name}}

    def _daemon_set(self, daemon_set: Json) -> None:
        spec = daemon_set["spec"]["template"]["spec"]
        tolerations = [*(spec.get("tolerations") or ()), *_DAEMON_TOLERATIONS]
        eligible = [n["metadata"]["name"] for n in self._store.all(NODES) if _welcomes(n, spec, tolerations)]
        pods = self._pods_of(daemon_set)
        covered = {p["spec"].get("nodeName") for p in pods}
        for node in eligible:
            if node not in covered:
                extra = {"nodeName": node, "tolerations": tolerations}
                self._new_pod(
                    DAEMON_SETS,
                    daemon_set,
                    {"generateName": f"{daemon_set['metadata']['name']}-"},
                    extra=extra,
                )
        alive = [p for p in pods if _is_active(p)]
        ready = sum(is_ready(p) for p in alive)
        status: Json = {
            "observedGeneration": daemon_set["metadata"]["generation"],
            "desiredNumberScheduled": len(eligible),
        }
        status |= {
            "currentNumberScheduled": len(alive),
            "updatedNumberScheduled": len(alive),
            "numberMisscheduled": 0,
        }
        status |= {"numberReady": ready, "numberAvailable": ready}
        self._status(DAEMON_SETS, daemon_set, status)

    def _job(self, job: Json) -> None:
        pods = self._pods_of(job)
        succeeded = sum(p["status"].get("phase") == "Succeeded" for p in pods)
        failed = sum(p["status"].get("phase") == "Failed" for p in pods)
        active = [p for p in pods if _is_active(p)]
        completions, complete = job["spec"]["completions"], succeeded >= job["spec"]["completions"]
        wanted = 0 if complete else min(job["spec"]["parallelism"], completions - succeeded)
        for _ in range(wanted - len(active)):
            self._new_pod(JOBS, job, {"generateName": f"{job['metadata']['name']}-"})
        status: Json = {"startTime": job["metadata"]["creationTimestamp"]}
        status |= _nonzero(
            active=len(active), succeeded=succeeded, failed=failed, ready=sum(is_ready(p) for p in active)
        )
        if complete:
            done = job["status"].get("completionTime", rfc3339(self._now))
            condition = {
                "type": "Complete",
                "status": "True",
                "lastProbeTime": done,
                "lastTransitionTime": done,
            }
            status |= {"completionTime": done, "conditions": [condition]}
        self._status(JOBS, job, status)

    def _new_pod(
        self,
        resource: Resource,
        owner: Json,
        meta: Json,
        *,
        volumes: Iterable[Json] = (),
        extra: Json | None = None,
    ) -> None:
        template = owner["spec"]["template"]
        about = template.get("metadata") or {}
        labels = (about.get("labels") or {}) | meta.get("labels", {})
        whole = meta | {"labels": labels, "ownerReferences": [reference(resource, owner)]}
        if about.get("annotations"):
            whole["annotations"] = about["annotations"]
        spec = template["spec"] | (extra or {})
        if mounted := [*(spec.get("volumes") or ()), *volumes]:
            spec = spec | {"volumes": mounted}
        made = admit(PODS, {"metadata": whole, "spec": spec}, owner["metadata"]["namespace"], self._store)
        self._store.put(PODS, aged(made, self._now))

    def _delete(self, pod: Json) -> None:
        if not pod["metadata"].get("deletionTimestamp"):
            stored = self._store.get(PODS, key_of(pod))
            if stored is not None:
                delete_object(self._store, PODS, stored, {})

    def _status(self, resource: Resource, obj: Json, status: Json) -> None:
        stored = self._store.get(resource, key_of(obj))
        if stored is not None and stored.obj["status"] != status:
            self._store.put(resource, stored.obj | {"status": status})


def reference(resource: Resource, owner: Json) -> Json:
    """The owner reference of what a controller makes."""
    meta = owner["metadata"]
    told = {
        "apiVersion": resource.group_version,
        "kind": resource.kind,
        "name": meta["name"],
        "uid": meta["uid"],
    }
    return told | {"controller": True, "blockOwnerDeletion": True}


def aged(pod: Json, now: datetime) -> Json:
    """The pod with the age that its annotation claims."""
    claimed = int((pod["metadata"].get("annotations") or {}).get(AGE_ANNOTATION, 0))
    if not claimed:
        return pod
    born = rfc3339(now - timedelta(seconds=claimed))
    return pod | {"metadata": pod["metadata"] | {"creationTimestamp": born}}


def _hash(template: Json) -> str:
    digest = hashlib.sha256(json.dumps(template, sort_keys=True).encode()).digest()
    return "".join(_SAFE[byte % len(_SAFE)] for byte in digest[:9])


def _nonzero(**counts: int) -> Json:
    return {name: count for name, count in counts.items() if count}


def _is_active(pod: Json) -> bool:
    return not pod["metadata"].get("deletionTimestamp") and pod["status"].get("phase") not in FINISHED


def _welcomes(node: Json, spec: Json, tolerations: list[Json]) -> bool:
    labels = node["metadata"].get("labels") or {}
    if any(labels.get(k) != v for k, v in (spec.get("nodeSelector") or {}).items()):
        return False
    pod = {"spec": {"tolerations": tolerations}}
    return all(tolerates(pod, t) for t in node["spec"].get("taints") or () if t["effect"] in HARD)


def collect_garbage(store: Store) -> None:
    """Remove what belonged to something that is gone, and empty the namespaces that end."""
    alive = {o["metadata"]["uid"] for r in RESOURCES if r is table_of(r) for o in store.all(r)}
    ending = {n["metadata"]["name"] for n in store.all(NAMESPACES) if n["metadata"].get("deletionTimestamp")}
    for resource in RESOURCES:
        if resource is not table_of(resource):
            continue
        for obj in store.all(resource):
            owners = obj["metadata"].get("ownerReferences") or ()
            orphaned = owners and not any(o["uid"] in alive for o in owners)
            if orphaned or obj["metadata"].get("namespace") in ending:
                _end(store, resource, store.get(resource, key_of(obj)))
    for name in ending:
        if not any(
            o["metadata"].get("namespace") == name
            for r in RESOURCES
            if r is table_of(r)
            for o in store.all(r)
        ):
            store.remove(NAMESPACES, name)


def _end(store: Store, resource: Resource, stored: Stored | None) -> None:
    if stored is not None and not stored.obj["metadata"].get("deletionTimestamp"):
        delete_object(store, resource, stored, {})
