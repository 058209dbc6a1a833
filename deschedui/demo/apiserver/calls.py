"""A request as the verbs see it, and reading its body and options."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import yaml

from . import errors
from .resources import BY_KIND, Resource
from .store import Json


@dataclass(frozen=True, slots=True)
class Call:
    """One authenticated request for a resource that exists. `name` is empty for the collection."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    content_type: str = ""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}" if self.resource.namespaced else self.name

    def dry_run(self, options: str = "CreateOptions") -> bool:
        """Whether `dryRun=All` stands in the query. Raises 422 for another value."""
        return checked_dry_run(self.query.get("dryRun", ""), options)


@dataclass(frozen=True, slots=True)
class Reply:
    """What goes back: status code and JSON."""

    code: int
    body: bytes

    @staticmethod
    def of(code: int, document: Any) -> "Reply":
        return Reply(code, msgspec.json.encode(document))


def checked_dry_run(value: str, options: str) -> bool:
    if value not in {"", "All"}:
        raise errors.unsupported_dry_run(options, value)
    return value == "All"


def read_object(call: Call, kind: str, group_version: str) -> Json:
    """The body as an object of the kind that the path asks for. Raises the server's 400 or 415."""
    parsed = _parse(call, kind)
    told = (parsed.get("apiVersion", ""), parsed.get("kind", ""))
    if told[1] and told[1] != kind:
        raise errors.bad_request(_wrong_kind(told[0], told[1], kind))
    meta = parsed.get("metadata") or {}
    if not isinstance(meta, dict):
        raise errors.bad_request(
            f'{kind} in version "{_version(group_version)}" cannot be handled as a {kind}: bad metadata'
        )
    if call.namespace and meta.get("namespace", call.namespace) != call.namespace:
        raise errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    return parsed | {"metadata": meta}


def read_options(call: Call) -> Json:
    """`DeleteOptions`: the body, or where there is none the query."""
    if call.body:
        return _parse(call, "DeleteOptions")
    options: Json = {}
    if "gracePeriodSeconds" in call.query:
        options["gracePeriodSeconds"] = whole(call.query["gracePeriodSeconds"])
    if "dryRun" in call.query:
        options["dryRun"] = [call.query["dryRun"]]
    return options


def whole(text: str) -> int:
    """A number of a query. Raises the server's 400."""
    if not text.lstrip("-").isdigit():
        raise errors.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return int(text)


def _parse(call: Call, kind: str) -> Json:
    media = call.content_type.partition(";")[0].strip() or "application/json"
    if media not in {"application/json", "application/yaml"}:
        accepted = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
        text = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
        raise errors.unsupported_media(text)
    try:
        parsed = yaml.safe_load(call.body) if media.endswith("yaml") else msgspec.json.decode(call.body)
    except (msgspec.DecodeError, yaml.YAMLError, UnicodeDecodeError) as fault:
        raise errors.bad_request(_unparsable(call.body, kind)) from fault
    if not isinstance(parsed, dict):
        raise errors.bad_request(_unparsable(call.body, kind))
    return parsed


def _unparsable(body: bytes, kind: str) -> str:
    """The server's sentence up to Go's own complaint, which depends on its parser."""
    what = (
        f"invalid JSON ({body[:64].decode(errors='replace')})"
        if body
        else "unexpected end of JSON input (<empty>)"
    )
    said = f"the object provided is unrecognized (must be of type {kind}): couldn't get version/kind"
    return f"{said}; json parse error: {what}"


def _wrong_kind(group_version: str, kind: str, wanted: str) -> str:
    version = _version(group_version)
    said = f'{kind} in version "{version}" cannot be handled as a {wanted}'
    if (group_version, kind) in BY_KIND:
        return f"{said}: converting ({version}.{kind}) to (core.{wanted}): unknown conversion"
    return f'{said}: no kind "{kind}" is registered for version "{group_version}" in scheme "pkg/runtime/scheme.go:111"'


def _version(group_version: str) -> str:
    return group_version.rpartition("/")[2]
