"""The three patch formats: JSON patch (RFC 6902), JSON merge patch (RFC 7386), strategic merge patch."""

import copy
from typing import Any

from .errors import bad_request, rejected_patch

_MERGE_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "ephemeralContainers": "name",
    "volumes": "name",
    "env": "name",
    "imagePullSecrets": "name",
    "volumeMounts": "mountPath",
    "ports": "containerPort",
    "hostAliases": "ip",
    "conditions": "type",
    "addresses": "type",
    "taints": "key",
    "ownerReferences": "uid",
    "topologySpreadConstraints": "topologyKey",
}
_SET_LISTS = {"finalizers", "podCIDRs"}


def merge(target: Any, patch: Any) -> Any:
    """A JSON merge patch: null removes, objects merge, everything else replaces."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged


def strategic(target: Any, patch: Any, name: str = "") -> Any:
    """A strategic merge patch: as a merge patch, but lists with a merge key merge by it. `name`: the field patched."""
    if isinstance(patch, dict):
        return _strategic_object(target if isinstance(target, dict) else {}, patch)
    if isinstance(patch, list) and isinstance(target, list):
        if name in _SET_LISTS:
            return [*target, *(p for p in patch if p not in target)]
        if name in _MERGE_KEYS and all(isinstance(p, dict) for p in patch):
            return _strategic_list(target, patch, _MERGE_KEYS[name])
    return copy.deepcopy(patch)


def _strategic_object(target: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    if patch.get("$patch") == "replace":
        return {k: v for k, v in patch.items() if k != "$patch"}
    merged = dict(target)
    for key, value in patch.items():
        if key.startswith("$deleteFromPrimitiveList/"):
            field = key.partition("/")[2]
            merged[field] = [v for v in merged.get(field) or [] if v not in value]
        elif key.startswith("$"):
            continue
        elif value is None:
            merged.pop(key, None)
        else:
            merged[key] = strategic(merged.get(key), value, key)
    return merged


def _strategic_list(target: list[Any], patch: list[Any], key: str) -> list[Any]:
    if any(p.get("$patch") == "replace" for p in patch):
        return [p for p in patch if "$patch" not in p]
    if missing := [p for p in patch if key not in p]:
        raise bad_request(f"map: {missing[0]} does not contain declared merge key: {key}")
    gone = {p[key] for p in patch if p.get("$patch") == "delete"}
    wanted = {p[key]: p for p in patch if p[key] not in gone}
    known = {t.get(key) for t in target}
    fresh = [_strategic_object({}, p) for k, p in wanted.items() if k not in known]
    kept = [t for t in target if t.get(key) not in gone]
    return fresh + [_strategic_object(t, wanted[t[key]]) if t.get(key) in wanted else t for t in kept]


def json_patch(target: Any, operations: list[Any]) -> Any:
    """Apply the operations in order to a copy. Raises the server's 422 where one does not apply."""
    document = copy.deepcopy(target)
    for operation in operations:
        try:
            document = _apply(document, operation)
        except (KeyError, IndexError, ValueError, TypeError, AttributeError) as fault:
            raise rejected_patch() from fault
    return document


def _apply(document: Any, operation: dict[str, Any]) -> Any:
    path = _pointer(operation["path"])
    match operation["op"]:
        case "add":
            return _add(document, path, copy.deepcopy(operation["value"]))
        case "remove":
            _remove(document, path)
        case "replace":
            _find(document, path)
            _remove(document, path)
            return _add(document, path, copy.deepcopy(operation["value"]))
        case "test":
            if _find(document, path) != operation.get("value"):
                raise ValueError("test failed")
        case "copy":
            return _add(document, path, copy.deepcopy(_find(document, _pointer(operation["from"]))))
        case "move":
            return _add(document, path, _remove(document, _pointer(operation["from"])))
        case other:
            raise ValueError(other)
    return document


def _pointer(text: str) -> list[str]:
    if text and not text.startswith("/"):
        raise ValueError(text)
    return [step.replace("~1", "/").replace("~0", "~") for step in text.split("/")[1:]]


def _find(document: Any, path: list[str]) -> Any:
    for step in path:
        document = document[int(step)] if isinstance(document, list) else document[step]
    return document


def _add(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent = _find(document, path[:-1])
    if isinstance(parent, list):
        at = len(parent) if path[-1] == "-" else int(path[-1])
        if at > len(parent):
            raise IndexError(at)
        parent.insert(at, value)
    else:
        parent[path[-1]] = value
    return document


def _remove(document: Any, path: list[str]) -> Any:
    parent = _find(document, path[:-1])
    return parent.pop(int(path[-1]) if isinstance(parent, list) else path[-1])
