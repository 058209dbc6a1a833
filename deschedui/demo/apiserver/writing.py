"""Create, update, patch and delete."""

from datetime import datetime, timedelta
from typing import Any

import msgspec

from . import errors
from .admission import admit, check_micro_time, check_namespace, new_event_faults, rfc3339
from .calls import Call, Reply, checked_dry_run, read_object, read_options
from .patches import json_patch, merge, strategic
from .reading import found, selected
from .resources import NAMESPACES, NEW_EVENTS, PODS, Resource
from .store import Json, Store, Stored, key_of
from .views import incoming, outgoing, table_of, titled

_KEPT = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "generateName",
)
_POD_CHANGES = ("activeDeadlineSeconds", "terminationGracePeriodSeconds", "tolerations")
_POD_FORBIDDEN = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def create(store: Store, call: Call) -> Reply:
    """A new object. Raises 400, 403, 404, 409, 422 as the server does."""
    resource, table = call.resource, table_of(call.resource)
    obj = read_object(call, resource.kind, resource.group_version)
    check_micro_time(obj, resource)
    dry = call.dry_run()
    name = obj["metadata"].get("name", "")
    if resource.namespaced:
        check_namespace(resource, call.namespace, name, store)
    if resource is NEW_EVENTS:
        _check_new_event(obj, call, store)
    made = admit(table, incoming(resource, obj), call.namespace, store)
    if store.get(table, key_of(made)) is not None:
        raise errors.already_exists(resource, made["metadata"]["name"])
    return _answer(resource, _kept(store, table, made, dry=dry), 201)


def _check_new_event(obj: Json, call: Call, store: Store) -> None:
    stamped = admit(NEW_EVENTS, obj, call.namespace, store)
    if causes := new_event_faults(stamped):
        raise errors.invalid("Event", "", stamped["metadata"]["name"], causes)


def update(store: Store, call: Call) -> Reply:
    """Replace an object, or its status. Raises 404, and 409 for a stale resourceVersion or another UID."""
    resource = call.resource
    obj = read_object(call, resource.kind, resource.group_version)
    _same_name(obj, call)
    uid = obj["metadata"].get("uid")
    _check_version(store, call, obj["metadata"], uid)
    old = found(store, call)
    if uid and uid != old.obj["metadata"]["uid"]:
        raise errors.conflict(resource.plural, call.name, _other_uid(call, uid, old))
    return _replace(store, call, old, incoming(resource, obj), dry=call.dry_run("UpdateOptions"))


def _check_version(store: Store, call: Call, meta: Json, uid: str | None) -> None:
    """A kind whose updates must say which version they replace: without one 422; a deleted one is no version, 409."""
    if not call.resource.versioned:
        return
    if store.get(table_of(call.resource), call.key) is None and uid:
        gone = Stored({"metadata": {"uid": ""}}, b"", 0)
        raise errors.conflict(call.resource.plural, call.name, _other_uid(call, uid, gone))
    if not meta.get("resourceVersion"):
        cause = errors.Cause(
            "FieldValueInvalid",
            "Invalid value: 0: must be specified for an update",
            "metadata.resourceVersion",
        )
        raise errors.invalid(call.resource.kind, call.resource.group, call.name, [cause])


def _other_uid(call: Call, uid: str, old: Stored) -> str:
    said = (
        f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old.obj['metadata']['uid']}"
    )
    where = f"/registry/{call.resource.plural}/{call.key}"
    return (
        f"StorageError: invalid object, Code: 4, Key: {where}, ResourceVersion: 0, AdditionalErrorMsg: {said}"
    )


def patch(store: Store, call: Call) -> Reply:
    """Patch an object, or its status, in the format that the content type names."""
    media = call.content_type.partition(";")[0].strip()
    apply = _patcher(media)
    document = _patch_document(call.body, listed=media == "application/json-patch+json")
    old = found(store, call)
    shown = outgoing(call.resource, old)[0]
    patched = apply(shown, document)
    _same_name(patched, call)
    uid = patched["metadata"].get("uid")
    if uid != shown["metadata"]["uid"]:
        cause = errors.invalid_value("metadata.uid", str(uid), "field is immutable")
        raise errors.invalid(call.resource.kind, call.resource.group, call.name, [cause])
    return _replace(store, call, old, incoming(call.resource, patched), dry=call.dry_run("PatchOptions"))


def _patcher(media: str) -> Any:
    match media:
        case "application/merge-patch+json":
            return merge
        case "application/strategic-merge-patch+json":
            return strategic
        case "application/json-patch+json":
            return json_patch
    raise errors.unsupported_media("415: Unsupported Media Type", details={})


def _patch_document(body: bytes, *, listed: bool) -> Any:
    try:
        document = msgspec.json.decode(body)
    except msgspec.DecodeError as fault:
        raise errors.bad_request("invalid JSON patch") from fault
    if listed and not isinstance(document, list):
        text = (
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
        )
        raise errors.bad_request(text)
    if not listed and not isinstance(document, dict):
        text = (
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"
        )
        raise errors.bad_request(text)
    return document


def _same_name(obj: Json, call: Call) -> None:
    name = obj["metadata"].get("name", "")
    if name != call.name:
        raise errors.bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({call.name})"
        )


def _replace(store: Store, call: Call, old: Stored, new: Json, *, dry: bool) -> Reply:
    """Store what a client made of `old`: its status or everything else, never the server's own stamps."""
    table, before = table_of(call.resource), old.obj
    asked = new["metadata"].get("resourceVersion")
    if asked and asked != before["metadata"]["resourceVersion"]:
        raise errors.modified(call.resource, call.name)
    stamps = {k: before["metadata"][k] for k in _KEPT if k in before["metadata"]}
    meta = {k: v for k, v in new["metadata"].items() if k not in _KEPT and k != "managedFields"}
    meta |= stamps | {"resourceVersion": before["metadata"]["resourceVersion"]}
    made = {k: v for k, v in new.items() if k not in {"kind", "apiVersion"}} | {"metadata": meta}
    if call.subresource == "status":
        made = before | {"metadata": meta, "status": new.get("status") or {}}
    elif call.resource.status:
        made = made | ({"status": before["status"]} if "status" in before else {})
        _check_pod(call, before, made)
    made = _bumped(call.resource, before, made)
    if made == before:
        return _answer(call.resource, old, 200)
    if _finished(made) and not dry:
        store.remove(table, call.key, made)
        return Reply.of(200, made | {"kind": call.resource.kind, "apiVersion": call.resource.group_version})
    return _answer(call.resource, _kept(store, table, made, dry=dry), 200)


def _check_pod(call: Call, before: Json, made: Json) -> None:
    if call.resource is not PODS:
        return
    if _frozen_spec(before["spec"]) != _frozen_spec(made.get("spec") or {}):
        cause = errors.Cause("FieldValueForbidden", f"Forbidden: {_POD_FORBIDDEN}", "spec")
        raise errors.invalid("Pod", "", call.name, [cause])


def _frozen_spec(spec: Json) -> Json:
    """A pod's spec without what may change after its creation, and without defaults that a client may leave out."""
    return {
        "nodeName": spec.get("nodeName", ""),
        "restartPolicy": spec.get("restartPolicy", "Always"),
        "priorityClassName": spec.get("priorityClassName", ""),
        "nodeSelector": spec.get("nodeSelector") or {},
        "containers": [
            (c.get("name"), (c.get("resources") or {}).get("limits")) for c in spec.get("containers") or ()
        ],
    }


def _bumped(resource: Resource, before: Json, made: Json) -> Json:
    if not resource.generation or before.get("spec") == made.get("spec"):
        return made
    generation = before["metadata"].get("generation", 0) + 1
    return made | {"metadata": made["metadata"] | {"generation": generation}}


def _finished(obj: Json) -> bool:
    meta = obj["metadata"]
    waiting = meta.get("deletionTimestamp") and not meta.get("deletionGracePeriodSeconds")
    return bool(waiting) and not meta.get("finalizers") and not (obj.get("spec") or {}).get("finalizers")


def _kept(store: Store, table: Resource, obj: Json, *, dry: bool) -> Stored:
    """Store an object; for a dry run only dress it as if it were."""
    if not dry:
        return store.put(table, obj)
    bare = {k: v for k, v in obj.items() if k not in {"kind", "apiVersion"}}
    return Stored(bare, msgspec.json.encode(bare), store.revision)


def _answer(resource: Resource, stored: Stored, code: int) -> Reply:
    return Reply(code, titled(resource, outgoing(resource, stored)[1]))


def delete(store: Store, call: Call) -> Reply:
    """Delete one object, at once or after its grace period, if it is still the one that the preconditions mean."""
    options = read_options(call)
    dry = is_dry(options, "DeleteOptions") or call.dry_run("DeleteOptions")
    old = found(store, call)
    shown, ended = delete_object(store, call.resource, old, options, dry=dry)
    if ended and not call.resource.returns_deleted:
        details = {"name": call.name, "group": call.resource.group, "kind": call.resource.plural}
        kept = {k: v for k, v in details.items() if v} | {"uid": old.obj["metadata"]["uid"]}
        return Reply.of(200, errors.success(200, kept))
    return Reply.of(200, {"kind": call.resource.kind, "apiVersion": call.resource.group_version} | shown)


def delete_collection(store: Store, call: Call) -> Reply:
    """Delete what the selectors name; answers with the list as it was."""
    options = read_options(call)
    dry = is_dry(options, "DeleteOptions") or call.dry_run("DeleteOptions")
    doomed = selected(store, call)
    for _, stored in doomed:
        delete_object(store, call.resource, stored, options, dry=dry)
    title = {"kind": f"{call.resource.kind}List", "apiVersion": call.resource.group_version}
    return Reply.of(
        200,
        title | {"metadata": {"resourceVersion": str(store.revision)}, "items": [s.obj for _, s in doomed]},
    )


def is_dry(options: Json, kind: str) -> bool:
    """Whether delete options ask for a dry run. Raises 422 for a value that is none."""
    return any(checked_dry_run(value, kind) for value in options.get("dryRun") or ())


def check_preconditions(resource: Resource, obj: Json, options: Json) -> None:
    """Refuse with 409 where the object is not the one that was meant."""
    wanted, meta = options.get("preconditions") or {}, obj["metadata"]
    name = meta["name"]
    if (uid := wanted.get("uid")) and uid != meta["uid"]:
        why = (
            f"the UID in the precondition ({uid}) does not match the UID in record ({meta['uid']}). "
            "The object might have been deleted and then recreated"
        )
        raise _precondition_failed(resource, name, why)
    if (version := wanted.get("resourceVersion")) and version != meta["resourceVersion"]:
        why = (
            f"the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record "
            f"({meta['resourceVersion']}). The object might have been modified"
        )
        raise _precondition_failed(resource, name, why)


def _precondition_failed(resource: Resource, name: str, why: str) -> errors.ApiError:
    refusal = errors.conflict(resource.qualified_kind, name, why)
    refusal.details = {
        k: v for k, v in {"name": name, "group": resource.group, "kind": resource.kind}.items() if v
    }
    return refusal


def delete_object(
    store: Store, resource: Resource, old: Stored, options: Json, *, dry: bool = False
) -> tuple[Json, bool]:
    """Start or finish the deletion of an object: how it looks now, and whether it is gone."""
    check_preconditions(resource, old.obj, options)
    table = table_of(resource)
    grace = _grace(resource, old.obj, options)
    doomed = _marked(resource, old.obj, grace, store.clock())
    if grace > 0 or not _finished(doomed):
        if dry or doomed == old.obj:
            return doomed, False
        return store.put(table, doomed).obj, False
    if not dry:
        if resource is PODS:  # a pod is always marked first, so watches see that it is about to go
            store.put(table, doomed)
        store.remove(table, key_of(old.obj), doomed)
        doomed = doomed | {"metadata": doomed["metadata"] | {"resourceVersion": str(store.revision)}}
    return doomed, True


def _grace(resource: Resource, obj: Json, options: Json) -> int:
    if resource is not PODS:
        return 0
    if obj["status"].get("phase") in {"Succeeded", "Failed"} or not obj["spec"].get("nodeName"):
        return 0
    asked = options.get("gracePeriodSeconds")
    return int(obj["spec"].get("terminationGracePeriodSeconds", 30) if asked is None else max(0, asked))


def _marked(resource: Resource, obj: Json, grace: int, now: datetime) -> Json:
    """The object with its deletion stamps. A second deletion can only shorten the first one's grace."""
    meta = obj["metadata"]
    marked: Json = meta
    running = meta.get("deletionGracePeriodSeconds", 0)
    if not meta.get("deletionTimestamp"):
        marked = meta | {
            "deletionTimestamp": rfc3339(now + timedelta(seconds=grace)),
            "deletionGracePeriodSeconds": grace,
        }
        if meta.get("generation"):
            marked["generation"] = meta["generation"] + 1
    elif grace < running:
        first = datetime.fromisoformat(meta["deletionTimestamp"]) - timedelta(seconds=running)
        marked = meta | {
            "deletionTimestamp": rfc3339(first + timedelta(seconds=grace)),
            "deletionGracePeriodSeconds": grace,
        }
    if resource is not NAMESPACES:
        return obj | {"metadata": marked}
    marked.pop("deletionGracePeriodSeconds", None)
    return obj | {"metadata": marked, "status": {"phase": "Terminating"}}
