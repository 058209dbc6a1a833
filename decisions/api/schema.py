"""What each operation says of its refusals: drf-spectacular describes what a view returns, not what it raises."""

from collections.abc import Mapping
from typing import Any, Final

from decisions.api.problems import CONTENT_TYPE

_PROBLEM: Final = {"$ref": "#/components/schemas/Problem"}
_ALWAYS: Final = {
    "400": "The request cannot be taken as it is; `errors` says which fields.",
    "401": "Nobody is signed in, or the token is not known, was revoked or has expired.",
    "403": "This person, or this token, may not do that.",
    "404": "There is none that you may see; or a cursor that is none.",
    "406": "The answer is JSON, which this request does not accept.",
}
_WITH_BODY: Final = {"415": "The body is to be JSON, and its Content-Type to say so."}
_ASKS_CLUSTER: Final = {"503": "The cluster's API server does not answer; try again."}


def describe_refusals(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """A postprocessing hook: each refusal is `application/problem+json`, and none goes without being named."""
    for path, operations in result["paths"].items():
        for method, operation in operations.items():
            operation["responses"] = _described(operation["responses"], _refusals(path, method))
    return result


def _refusals(path: str, method: str) -> Mapping[str, str]:
    more = _WITH_BODY if method == "post" else {}
    return {**_ALWAYS, **more, **(_ASKS_CLUSTER if path.endswith("/override/") else {})}


def _described(responses: Mapping[str, Any], refusals: Mapping[str, str]) -> dict[str, Any]:
    missing = {status: _problem(text) for status, text in refusals.items() if status not in responses}
    described = {
        status: _as_problem(response) if status >= "400" else response
        for status, response in responses.items()
    }
    return dict(sorted({**described, **missing}.items()))


def _problem(description: str) -> dict[str, Any]:
    return {"description": description, "content": {CONTENT_TYPE: {"schema": _PROBLEM}}}


def _as_problem(response: Mapping[str, Any]) -> dict[str, Any]:
    content = response.get("content", {})
    return {**response, "content": {CONTENT_TYPE: next(iter(content.values()), {"schema": _PROBLEM})}}
