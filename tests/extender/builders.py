"""Arguments, questions and outcomes with what a test does not care about filled in."""

from collections.abc import Callable
from typing import Any

import httpx

from deschedui.extender.client import ExtenderClient, ExtenderRequest
from deschedui.extender.config import ConfigErrors, ExtenderArgs, read_extender
from deschedui.extender.outcomes import DecidedBy, Effect, ExtenderOutcome, FailureMode

Script = Callable[[httpx.Request], httpx.Response]


def raw_args(**overrides: object) -> dict[str, object]:
    """Arguments as a policy file spells them; `ignorable=...` and so on replace, None takes away."""
    given = {"urlPrefix": "http://ext.test", "decisionVerb": "evict", "ignorable": False, "httpTimeout": "2s"}
    return {key: value for key, value in {**given, **overrides}.items() if value is not None}


def args(**overrides: object) -> ExtenderArgs:
    return read_extender(raw_args(**overrides))


def objections(**overrides: object) -> list[str]:
    """What is said about these arguments; empty where nothing is."""
    try:
        args(**overrides)
    except ConfigErrors as errors:
        return [str(problem) for problem in errors.problems]
    return []


def question(name: str = "web-1", **overrides: Any) -> ExtenderRequest:
    pod = {
        "metadata": {"name": name, "namespace": "shop", "uid": f"uid-{name}"},
        "spec": {"nodeName": "node-a"},
    }
    given = {"pod": pod, "node": {"metadata": {"name": "node-a"}}, "name": name, "namespace": "shop"}
    return ExtenderRequest(**{**given, **overrides})


def outcome(
    effect: Effect = Effect.ALLOW, mode: FailureMode | None = None, **overrides: Any
) -> ExtenderOutcome:
    decided_by = DecidedBy.ANSWER if mode is None else DecidedBy.FAIL_POLICY
    return ExtenderOutcome(**{"effect": effect, "failure_mode": mode, "decided_by": decided_by, **overrides})


def ask_one(client: ExtenderClient, asked: ExtenderRequest | None = None) -> ExtenderOutcome:
    """The only extender's outcome for one pod."""
    [outcomes] = client.ask([asked or question()], deadline_seconds=30)
    assert outcomes is not None
    return outcomes[0]


def answer_of(script: Script, **overrides: object) -> ExtenderOutcome:
    """What comes of one question when the network answers like `script`."""
    with ExtenderClient([args(**overrides)], transport=httpx.MockTransport(script)) as client:
        return ask_one(client)


def says(body: bytes | str, status: int = 200, **headers: str) -> Script:
    """A script that always answers so."""
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    return lambda request: httpx.Response(status, content=body, headers=named)
