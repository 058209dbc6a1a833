"""Which nodes a pod's node selector and required node affinity allow.

Rules: the descheduler's semantics, section 3.6.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from .nodeset import NodeIndex, NodeSet
from .objects import NodeSelectorRequirement, NodeSelectorTerm, Pod
from .selectors import Requirement

_OPERATORS: Final = frozenset({"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"})


def matching_nodes(pod: Pod, index: NodeIndex) -> NodeSet:
    """The nodes that the pod's ``nodeSelector`` and required node affinity both allow."""
    nodes = index.all
    for key, value in pod.spec.node_selector.items():
        nodes &= index.with_label(key, value)
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    if affinity and affinity.required is not None:
        nodes &= matching_any(affinity.required.node_selector_terms, index)
    return nodes


def matching_any(terms: Iterable[NodeSelectorTerm], index: NodeIndex) -> NodeSet:
    """The nodes that match one of the terms at least; no terms, no nodes."""
    nodes = 0
    for term in terms:
        nodes |= matching_term(term, index)
    return nodes


def matching_term(term: NodeSelectorTerm, index: NodeIndex) -> NodeSet:
    """The nodes that fulfil all of a term. An empty or malformed one matches none."""
    if not term.match_expressions and not term.match_fields:
        return 0
    nodes = index.all
    for requirement in term.match_expressions:
        nodes &= _by_label(requirement, index)
    for requirement in term.match_fields:
        nodes &= _by_field(requirement, index)
    return nodes


def _by_label(requirement: NodeSelectorRequirement, index: NodeIndex) -> NodeSet:
    wanted = Requirement(requirement.key, requirement.operator, requirement.values)
    if requirement.operator not in _OPERATORS or wanted.problem():
        return 0
    match requirement.operator:
        case "In":
            return _with_any_value(requirement, index)
        case "NotIn":
            return index.all & ~_with_any_value(requirement, index)
        case "Exists":
            return index.with_key(requirement.key)
        case "DoesNotExist":
            return index.all & ~index.with_key(requirement.key)
    return index.with_value(requirement.key, lambda value: wanted.matches({requirement.key: value}))


def _with_any_value(requirement: NodeSelectorRequirement, index: NodeIndex) -> NodeSet:
    nodes = 0
    for value in requirement.values:
        nodes |= index.with_label(requirement.key, value)
    return nodes


def _by_field(requirement: NodeSelectorRequirement, index: NodeIndex) -> NodeSet:
    """The only field there is, is the node's name; any other one counts as the empty text."""
    if len(requirement.values) != 1 or requirement.operator not in {"In", "NotIn"}:
        return 0
    value = requirement.values[0]
    known = requirement.key == "metadata.name"
    equal = index.named(value) if known else index.all if value == "" else 0
    return equal if requirement.operator == "In" else index.all & ~equal
