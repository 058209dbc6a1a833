"""The two faces of an event: stored in the core form, served also as `events.k8s.io/v1`. All else has one face."""

from collections.abc import Mapping
from typing import Any

import msgspec

from .resources import EVENTS, NEW_EVENTS, Resource
from .store import Json, Stored

_TO_NEW = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
_TO_CORE = {new: core for core, new in _TO_NEW.items()}
_CORE_ALWAYS: Json = {
    "source": {},
    "firstTimestamp": None,
    "lastTimestamp": None,
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}
_NEW_OMITS_EMPTY = ("reportingController", "reportingInstance")


def table_of(resource: Resource) -> Resource:
    """Where a kind is stored."""
    return EVENTS if resource is NEW_EVENTS else resource


def incoming(resource: Resource, obj: Json) -> Json:
    """An object as it is stored."""
    if resource is NEW_EVENTS:
        obj = _renamed(obj, _TO_CORE)
    return _CORE_ALWAYS | obj if table_of(resource) is EVENTS else obj


def outgoing(resource: Resource, stored: Stored) -> tuple[Json, bytes]:
    """An object as this face of it is served, without kind and apiVersion, and its JSON."""
    if resource is not NEW_EVENTS:
        return stored.obj, stored.raw
    renamed = _renamed(stored.obj, _TO_NEW)
    for name in _NEW_OMITS_EMPTY:
        if not renamed.get(name):
            renamed.pop(name, None)
    return renamed, msgspec.json.encode(renamed)


def titled(resource: Resource, raw: bytes) -> bytes:
    """The JSON of one object with its kind and apiVersion in front."""
    title = f'{{"kind":"{resource.kind}","apiVersion":"{resource.group_version}",'
    return title.encode() + raw[1:]


def _renamed(obj: Mapping[str, Any], names: Mapping[str, str]) -> Json:
    return {names.get(k, k): v for k, v in obj.items()}
