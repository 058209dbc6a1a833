"""What a caller of the extender door says, as typed values. A body that is not understood is a clear no."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
_UID = re.compile(r"[!-~]{1,128}")
_KEYS = ("pod", "node", "podname", "podnamespace")


class NotUnderstood(Exception):  # noqa: N818 - it is told to the caller as a reason
    """The body cannot be taken as a question; the text says what is wrong with it."""


@dataclass(frozen=True)
class Question:
    """One question at the extender door. ``uid`` is empty where only a name was given."""

    namespace: str
    name: str
    uid: str = ""
    node: str = ""
    pod: Mapping[str, Any] = field(default_factory=dict)
    by_reference: bool = False


def parse(body: bytes) -> Question:
    """Read ``{"pod", "node"}`` or ``{"podName", "podNamespace"}``, keys in any case, ``node`` may be null.

    Raises:
        NotUnderstood: says what is wrong; nothing was recorded.
    """
    document = _document(body)
    if document.get("pod") is None:
        return _reference(document)
    pod = document["pod"]
    metadata = pod.get("metadata") if isinstance(pod, dict) else None
    if not isinstance(metadata, dict):
        raise NotUnderstood("pod.metadata is missing")
    return Question(
        namespace=_text(metadata.get("namespace") or "default", _NAMESPACE, "pod.metadata.namespace"),
        name=_text(metadata.get("name"), _NAME, "pod.metadata.name"),
        uid=_text(metadata["uid"], _UID, "pod.metadata.uid") if metadata.get("uid") else "",
        node=_node_name(document.get("node"), pod),
        pod=pod,
    )


def _document(body: bytes) -> dict[str, Any]:
    try:
        read = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise NotUnderstood(f"the body is not JSON: {error}"[:200]) from None
    if not isinstance(read, dict):
        raise NotUnderstood("the body is not a JSON object")
    document: dict[str, Any] = {}
    for key, value in read.items():
        folded = key.lower()
        if folded in _KEYS and folded in document and document[folded] != value:
            raise NotUnderstood(f"{folded} is given twice with different values")
        document[folded] = value
    return document


def _reference(document: Mapping[str, Any]) -> Question:
    if document.get("podname") is None:
        raise NotUnderstood("neither pod nor podName is given")
    return Question(
        namespace=_text(document.get("podnamespace") or "default", _NAMESPACE, "podNamespace"),
        name=_text(document["podname"], _NAME, "podName"),
        by_reference=True,
    )


def _node_name(node: object, pod: Mapping[str, Any]) -> str:
    metadata = node.get("metadata") if isinstance(node, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    spec = pod.get("spec")
    name = name or (spec.get("nodeName") if isinstance(spec, dict) else None) or ""
    return _text(name, _NAME, "node.metadata.name") if name else ""


def _text(value: object, pattern: re.Pattern[str], where: str) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise NotUnderstood(f"{where} is missing or not a Kubernetes name: {value!r:.80}")
    return value
