"""Refusals, as the `Status` objects of a real API server; `tests/truth` compares their texts with the real ones."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .resources import Resource

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
ONE_NAME = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


@dataclass(frozen=True, slots=True)
class Cause:
    """One fault of an invalid object: the machine word, the sentence, the path to the field."""

    reason: str
    message: str
    field: str = ""

    def as_dict(self) -> dict[str, str]:
        told = {"reason": self.reason, "message": self.message, "field": self.field}
        return {k: v for k, v in told.items() if v}


@dataclass(eq=False)
class ApiError(Exception):
    """An answer that is not a success: HTTP code, sentence, machine word, details."""

    code: int
    message: str
    reason: str = ""
    details: dict[str, Any] | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    def body(self) -> dict[str, Any]:
        """The `Status` object that the client reads."""
        status: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": self.metadata}
        status |= {"status": "Failure", "message": self.message}
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        return status | {"code": self.code}

    def retry_after(self) -> int:
        """Seconds for the `Retry-After` header; 0: no header."""
        return int((self.details or {}).get("retryAfterSeconds", 0))


def success(code: int, details: dict[str, Any] | None = None) -> dict[str, Any]:
    """The `Status` of something done; a real server leaves the code out of a deletion's."""
    status: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    return status | ({"details": details} if details is not None else {"code": code})


def _details(resource: Resource, name: str, *, kind: str = "") -> dict[str, Any]:
    told = {"name": name, "group": resource.group, "kind": kind or resource.plural}
    return {k: v for k, v in told.items() if v}


def not_found(resource: Resource, name: str) -> ApiError:
    return ApiError(404, f'{resource.qualified} "{name}" not found', "NotFound", _details(resource, name))


def no_such_path() -> ApiError:
    return ApiError(404, "the server could not find the requested resource", "NotFound", {})


def no_such_method() -> ApiError:
    text = "the server does not allow this method on the requested resource"
    return ApiError(405, text, "MethodNotAllowed", {})


def already_exists(resource: Resource, name: str) -> ApiError:
    text = f'{resource.qualified} "{name}" already exists'
    return ApiError(409, text, "AlreadyExists", _details(resource, name))


def conflict(what: str, name: str, why: str) -> ApiError:
    text = f'Operation cannot be fulfilled on {what} "{name}": {why}'
    return ApiError(409, text, "Conflict", {"name": name, "kind": what})


def modified(resource: Resource, name: str) -> ApiError:
    text = f'Operation cannot be fulfilled on {resource.qualified} "{name}": {MODIFIED}'
    return ApiError(409, text, "Conflict", _details(resource, name))


def bad_request(message: str) -> ApiError:
    return ApiError(400, message, "BadRequest")


def unauthorized() -> ApiError:
    return ApiError(401, "Unauthorized", "Unauthorized")


def forbidden(resource: Resource, name: str, why: str, causes: Sequence[Cause] = ()) -> ApiError:
    details = _details(resource, name)
    if causes:
        details["causes"] = [c.as_dict() for c in causes]
    named = f'{resource.qualified} "{name}"' if name else resource.qualified
    return ApiError(403, f"{named} is forbidden: {why}", "Forbidden", details)


def invalid(kind: str, group: str, name: str, causes: Sequence[Cause]) -> ApiError:
    """422 with every fault at once; `causes` must not be empty."""
    told = [f"{c.field}: {c.message}" for c in causes]
    listed = told[0] if len(told) == 1 else "[" + ", ".join(told) + "]"
    details: dict[str, Any] = {"name": name, "group": group, "kind": kind}
    details = {k: v for k, v in details.items() if v} | {"causes": [c.as_dict() for c in causes]}
    qualified = f"{kind}.{group}" if group else kind
    return ApiError(422, f'{qualified} "{name}" is invalid: {listed}', "Invalid", details)


def required(path: str, what: str = "") -> Cause:
    return Cause("FieldValueRequired", f"Required value: {what}" if what else "Required value", path)


def invalid_value(path: str, value: str, why: str) -> Cause:
    return Cause("FieldValueInvalid", f'Invalid value: "{value}": {why}', path)


def unsupported_dry_run(options: str, value: str) -> ApiError:
    cause = Cause(
        "FieldValueNotSupported", f'Unsupported value: ["{value}"]: supported values: "All"', "dryRun"
    )
    return invalid(options, "meta.k8s.io", "", [cause])


def unsupported_media(message: str, *, details: dict[str, Any] | None = None) -> ApiError:
    return ApiError(415, message, "UnsupportedMediaType", details)


def rejected_patch() -> ApiError:
    return ApiError(422, "the server rejected our request due to an error in our request", "Invalid", {})


def expired_watch(asked: int, oldest: int) -> ApiError:
    return ApiError(410, f"too old resource version: {asked} ({oldest})", "Expired")


def expired_page(restart: str) -> ApiError:
    """The page's revision is gone; `restart` continues where it stopped, in what is there now."""
    text = (
        "The provided continue parameter is too old to display a consistent list result. You can start a new list "
        "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
        "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
        "modified, or deleted between the time the first chunk was returned and now may show up in the list."
    )
    return ApiError(410, text, "Expired", metadata={"continue": restart})


def too_new(asked: int, current: int) -> ApiError:
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    text = f"Timeout: Too large resource version: {asked}, current: {current}"
    return ApiError(504, text, "Timeout", {"causes": causes, "retryAfterSeconds": 1})


def budget_blocks(message: str, *, retry_after: int = 0) -> ApiError:
    """429 of an eviction that a PodDisruptionBudget stops; `message` goes into the cause."""
    details: dict[str, Any] = {"causes": [{"reason": "DisruptionBudget", "message": message}]}
    if retry_after:
        details["retryAfterSeconds"] = retry_after
    text = "Cannot evict pod as it would violate the pod's disruption budget."
    return ApiError(429, text, "TooManyRequests", details)
