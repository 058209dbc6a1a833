"""The filter that every plugin's arguments carry: ``namespaces`` and ``labelSelector`` (semantics, section 3.2)."""

from __future__ import annotations

from typing import Protocol

from .evictor import Objection
from .objects import Pod
from .plugins.arg_types import Namespaces
from .selectors import LabelSelector


class HasPodFilter(Protocol):
    """Arguments with the two common fields."""

    @property
    def namespaces(self) -> Namespaces | None:
        """Which namespaces, or None for all."""

    @property
    def label_selector(self) -> LabelSelector | None:
        """Which pods, or None for all."""


def left_out(pod: Pod, args: HasPodFilter) -> Objection | None:
    """Why these arguments leave the pod out, or None. Upstream says nothing about it."""
    namespace = pod.metadata.namespace
    if (chosen := args.namespaces) is not None:
        if chosen.include and namespace not in chosen.include:
            return Objection(
                "namespace", f"is in namespace {namespace}, which the plugin does not include", ""
            )
        if namespace in chosen.exclude:
            return Objection("namespace", f"is in namespace {namespace}, which the plugin excludes", "")
    if (selector := args.label_selector) is not None and not selector.matches(pod.metadata.labels):
        return Objection("labels", "has labels that the plugin's labelSelector does not select", "")
    return None
