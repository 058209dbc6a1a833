"""A pod as the API server shows it, without one; and callers that are registered."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from decisions.doors import extender
from decisions.models import Caller, Cluster, Decision
from decisions.services import access, moment
from decisions.services.actors import SYSTEM
from decisions.services.lookups import Looked, Sight
from tests.builders import NOW

UID = "3f6c1f0e-6a2b-4a54-9c1e-0d5b7b1a0001"


@dataclass
class FakePod:
    """:class:`decisions.services.lookups.PodEdge` in memory; change ``seen`` to change the cluster."""

    seen: Looked = field(
        default_factory=lambda: Looked(
            Sight.FOUND,
            uid=UID,
            phase="Running",
            node="n1",
            owner_kind="ReplicaSet",
            owner_name="cart-1",
            owner_uid="rs",
        )
    )
    now: moment.Now = field(default_factory=moment.Now)

    def look(self, *, max_age: float) -> Looked:
        return self.seen

    def around(self, looked: Looked) -> tuple[str, dict[str, Any]]:
        return "Deployment/cart", {"ready": 3, "desired": 3, "pdbs": []}

    def moment(self, decision: Decision) -> moment.Now:
        return self.now


GONE = Looked(Sight.GONE)
UNREACHABLE = Looked(Sight.UNKNOWN, problem="no answer from the API server")


def pod_body(
    uid: str | None = UID, *, phase: str = "Running", node: str | None = "n1", **metadata: Any
) -> bytes:
    """A question as the proposal's plugin sends it."""
    meta = {"namespace": "shop", "name": "cart-0", **({"uid": uid} if uid else {}), **metadata}
    spec = {"nodeName": node} if node else {}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": phase}}
    return json.dumps({"pod": pod, "node": {"metadata": {"name": node}} if node else None}).encode()


def register(cluster: Cluster, **fields: Any) -> tuple[Caller, str]:
    """A caller and its token."""
    fields = {"name": "nightly", **fields}
    caller = access.register_caller(cluster=cluster, by=SYSTEM, now=NOW, **fields)
    _, secret = access.issue_caller_token(caller=caller, by=SYSTEM, now=NOW)
    return caller, secret


def knock(
    token: str, *, path: tuple[str, ...] = ("evict",), method: str = "POST", address: str = "10.0.0.7"
) -> extender.Knock:
    """A request with the token in its header."""
    return extender.Knock(
        method=method, segments=path, authorization=f"Bearer {token}" if token else "", address=address
    )


def ask(
    token: str, body: bytes | None = None, *, pod: FakePod | None = None, **more: Any
) -> Mapping[str, Any]:
    """Ask at the door."""
    now = more.pop("now", NOW)
    edge = pod or FakePod()
    return extender.answer(
        knock(token, **more), body or pod_body(), now=now, edge_for=lambda _caller, _question: edge
    )
