"""The question as JSON: `{"pod", "node"}`, or `{"podName", "podNamespace"}` for a reference alone. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"

JSONObject = bytes | Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtenderRequest:
    """One pod to ask about. `pod` and `node` are the API server's objects, decoded or as their JSON bytes.

    `node` is None for a pod that is on no node.
    """

    pod: JSONObject
    node: JSONObject | None
    name: str
    namespace: str


class Bodies:
    """Builds the bodies of one batch of questions; nodes, which many pods share, are encoded once."""

    def __init__(self, keep: int = 512) -> None:
        self._keep = keep
        self._nodes: dict[int, tuple[JSONObject, bytes]] = {}  # the object is held: its id stays its own

    def full(self, request: ExtenderRequest) -> bytes:
        """Pod and node, without `managedFields` and the last applied configuration."""
        return b'{"pod":%b,"node":%b}' % (slim(request.pod), self._node(request.node))

    def reference(self, request: ExtenderRequest) -> bytes:
        """The pod's name alone."""
        return msgspec.json.encode({"podName": request.name, "podNamespace": request.namespace})

    def _node(self, node: JSONObject | None) -> bytes:
        if node is None:
            return b"null"
        if (known := self._nodes.get(id(node))) is not None:
            return known[1]
        if len(self._nodes) >= self._keep:
            self._nodes.clear()
        encoded = slim(node)
        self._nodes[id(node)] = (node, encoded)
        return encoded


_Outer = dict[str, msgspec.Raw]
_OUTER: Final = msgspec.json.Decoder(_Outer)
_INNER: Final = msgspec.json.Decoder(_Outer | None)


def slim(found: JSONObject) -> bytes:
    """An object of the API server as JSON, without what only its own bookkeeping needs."""
    if isinstance(found, bytes):
        return _slim_bytes(found)
    return msgspec.json.encode(_slim_mapping(found))


def _slim_bytes(found: bytes) -> bytes:
    """Only the outer layers are decoded."""
    outer = _OUTER.decode(found)
    if meta := _INNER.decode(outer.get("metadata", b"null")):
        if notes := _INNER.decode(meta.get("annotations", b"null")):
            notes.pop(LAST_APPLIED, None)
            meta["annotations"] = msgspec.Raw(msgspec.json.encode(notes))
        meta.pop("managedFields", None)
        outer["metadata"] = msgspec.Raw(msgspec.json.encode(meta))
    return msgspec.json.encode(outer)


def _slim_mapping(found: Mapping[str, Any]) -> dict[str, Any]:
    outer = dict(found)
    if isinstance(meta := outer.get("metadata"), Mapping):
        outer["metadata"] = {key: value for key, value in meta.items() if key != "managedFields"}
        if isinstance(notes := meta.get("annotations"), Mapping):
            kept = {key: value for key, value in notes.items() if key != LAST_APPLIED}
            outer["metadata"]["annotations"] = kept
    return outer
