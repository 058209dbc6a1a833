"""Events on pods (``events.k8s.io/v1``), as data. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal

from deschedui.kube.text import cut_bytes, sentence

CONTROLLER: Final = "deschedui.io/deschedui"
MAX_NOTE_BYTES: Final = 1024
_MAX_WORD: Final = 128
_MAX_NAME: Final = 253


@dataclass(frozen=True, slots=True)
class EventRequest:
    """An event to put on a pod.

    Args:
        uid: of the pod.
        reason: one CamelCase word, why (``EvictionApproved``).
        action: one CamelCase word, what was done (``Evicting``).
        note: for people; at most 1,024 bytes of it are sent.
        at: when; aware.
        key: makes the event's name unique among the events of this pod.
        instance: which of our processes.
    """

    namespace: str
    name: str
    uid: str
    reason: str
    action: str
    note: str
    at: datetime
    key: str
    type: Literal["Normal", "Warning"] = "Normal"
    instance: str = "deschedui"

    def body(self) -> dict[str, Any]:
        """The ``Event`` object, within the bounds that the API server checks."""
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": self.event_name, "namespace": self.namespace},
            "eventTime": self.at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "type": self.type,
            "reason": _word(self.reason, "Eviction"),
            "action": _word(self.action, "Evict"),
            "note": cut_bytes(sentence(self.note, MAX_NOTE_BYTES), MAX_NOTE_BYTES),
            "reportingController": CONTROLLER,
            "reportingInstance": _word(self.instance, "deschedui"),
            "regarding": {
                "apiVersion": "v1",
                "kind": "Pod",
                "namespace": self.namespace,
                "name": self.name,
                "uid": self.uid,
            },
        }

    @property
    def event_name(self) -> str:
        """The pod's name and the key, as a DNS subdomain."""
        key = re.sub(r"[^a-z0-9-]", "", self.key.lower()).strip("-")[:63] or "event"
        return f"{self.name[: _MAX_NAME - len(key) - 1].rstrip('-.')}.{key}"


def _word(value: str, otherwise: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "", value)[:_MAX_WORD] or otherwise
