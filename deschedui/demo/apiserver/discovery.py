"""What tells a client which kinds there are: `/api`, `/apis`, the resource lists, `/version`."""

from collections.abc import Iterator

from .resources import GROUPS, PODS, RESOURCES, VERBS, Resource
from .store import Json

VERSION: Json = {
    "major": "1",
    "minor": "37",
    "gitVersion": "v1.37.2",
    "gitCommit": "demo",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "none",
    "compiler": "deschedui-demo",
    "platform": "linux/amd64",
}


def documents() -> dict[str, Json]:
    """Every discovery document by its path."""
    core: Json = {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
    groups = {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(g) for g in GROUPS]}
    found: dict[str, Json] = {
        "/api": core,
        "/apis": groups,
        "/version": VERSION,
        "/api/v1": _resource_list(""),
    }
    for group in GROUPS:
        found[f"/apis/{group}"] = {"kind": "APIGroup", "apiVersion": "v1"} | _group(group)
        found[f"/apis/{group}/v1"] = _resource_list(group)
    return found | _schemas()


def _schemas() -> dict[str, Json]:
    """Just enough OpenAPI for `kubectl create` and `apply`: they look whether the server takes `fieldValidation`.

    It takes it and ignores it: unknown fields are kept, not refused.
    """
    groups = {
        r.group_version: f"apis/{r.group_version}" if r.group else f"api/{r.version}" for r in RESOURCES
    }
    index = {path: {"serverRelativeURL": f"/openapi/v3/{path}"} for path in groups.values()}
    found: dict[str, Json] = {"/openapi/v3": {"paths": index}}
    for group_version, path in groups.items():
        paths = dict(_patch_path(r, path) for r in RESOURCES if r.group_version == group_version)
        info = {"title": "deschedui demo", "version": "v1.37.2"}
        found[f"/openapi/v3/{path}"] = {"openapi": "3.0.0", "info": info, "paths": paths}
    return found


def _patch_path(resource: Resource, path: str) -> tuple[str, Json]:
    where = "namespaces/{namespace}/" if resource.namespaced else ""
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    options = [
        {"name": name, "in": "query", "schema": {"type": "string"}} for name in ("dryRun", "fieldValidation")
    ]
    described = {"parameters": options, "responses": {}, "x-kubernetes-group-version-kind": kind}
    return f"/{path}/{where}{resource.plural}/{{name}}", {"patch": described}


def _group(name: str) -> Json:
    version = {"groupVersion": f"{name}/v1", "version": "v1"}
    return {"name": name, "versions": [version], "preferredVersion": version}


def _resource_list(group: str) -> Json:
    entries = [entry for r in RESOURCES if r.group == group for entry in _entries(r)]
    group_version = f"{group}/v1" if group else "v1"
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version,
        "resources": entries,
    }


def _entries(resource: Resource) -> Iterator[Json]:
    named = {"singularName": resource.singular, "namespaced": resource.namespaced, "kind": resource.kind}
    whole = {"name": resource.plural} | named | {"verbs": list(VERBS), "shortNames": list(resource.short)}
    yield whole | ({"categories": ["all"]} if resource.in_all else {})
    sub = named | {"singularName": ""}
    if resource.status:
        yield {"name": f"{resource.plural}/status"} | sub | {"verbs": ["get", "patch", "update"]}
    if resource is PODS:
        yield {"name": "pods/binding"} | sub | {"kind": "Binding", "verbs": ["create"]}
        yield (
            {"name": "pods/eviction"}
            | sub
            | {"group": "policy", "version": "v1", "kind": "Eviction", "verbs": ["create"]}
        )
