"""``apiVersion`` and ``kind``: what the document is, and whether upstream would read it at all."""

from collections.abc import Callable
from typing import Final

import msgspec

from deschedui.descheduler.policy.nodes import Kind, Node
from deschedui.descheduler.policy.outer import as_in_go, as_written
from deschedui.descheduler.policy.report import Report

API_VERSION: Final = "descheduler/v1alpha2"
KIND: Final = "DeschedulerPolicy"
_INTERNAL: Final = "descheduler/__internal"
_SCHEME: Final = 'in scheme "pkg/descheduler/scheme/scheme.go:40"'
_GO_HEAD: Final = (
    r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
)
_PARSE: Final = "couldn't get version/kind; json parse error: json: cannot unmarshal"

Spelling = Callable[[type[msgspec.Struct], str], str]


def head_problem(node: Node) -> tuple[str, str] | None:
    """Why a value is no object with a version and a kind: the key that is wrong ('' for all) and Go's text."""
    if node.kind is not Kind.OBJECT:
        return "", f"{_PARSE} {node.kind.value} into Go value of type {_GO_HEAD}"
    for key in ("apiVersion", "kind"):
        value = node.get(key)
        if value is not None and value.kind not in {Kind.STRING, Kind.NULL}:
            return key, f"{_PARSE} {value.kind.value} into Go struct field .{key} of type string"
    return None


def spelling_of(root: Node, report: Report) -> Spelling | None:
    """How the keys of this document are written, or None where it cannot be read; that is then reported."""
    if problem := head_problem(root):
        key, text = problem
        message = (
            f"{key} must be text" if key else "a policy is a mapping of keys such as apiVersion and profiles"
        )
        report.error((key,) if key else (), message, upstream=report.fails_decoding(text))
        return None
    version, kind = _text(root, "apiVersion"), _text(root, "kind")
    if version == API_VERSION and kind in {"", KIND}:
        return as_written
    if version in {"", _INTERNAL} and kind in {"", KIND}:
        _warn_internal(root, report)
        return as_in_go
    _refuse(version, kind, report)
    return None


def _text(root: Node, key: str) -> str:
    value = root.get(key)
    return value.text if value and value.kind is Kind.STRING else ""


def _warn_internal(root: Node, report: Report) -> None:
    if root.members:
        report.warn(
            ("apiVersion",) if root.get("apiVersion") else (),
            "apiVersion is missing, so the descheduler reads this as an empty policy: nothing is nominated",
            hint=f"write apiVersion: {API_VERSION}",
        )


def _refuse(version: str, kind: str, report: Report) -> None:
    shown = kind or KIND
    where = (
        'the internal version of group "descheduler"'
        if version in {"", _INTERNAL}
        else f'version "{version}"'
    )
    text = f'no kind "{shown}" is registered for {where} {_SCHEME}'
    if version != API_VERSION and version not in {"", _INTERNAL}:
        message, key, hint = (
            f'apiVersion "{version[:100]}" is not known',
            "apiVersion",
            f"write {API_VERSION}",
        )
    else:
        message, key, hint = f'kind "{kind[:100]}" is not known', "kind", f"write {KIND}"
    report.error((key,), message, hint=hint, upstream=report.fails_decoding(text))
