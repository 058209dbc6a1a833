"""What a pod requests and what a node has left.

Rules: the descheduler's semantics, sections 3.8 and 4.5. Amounts are nano units (:mod:`.quantities`). A
quantity that cannot be read counts as none: the API server lets no such thing through, and one strange pod
must not end a cycle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .objects import Container, Pod, Quantities
from .quantities import QuantityError, parse

Amounts = dict[str, int]
"""Resource name to nano units."""

PODS = "pods"


def amounts(written: Quantities) -> Amounts:
    """Read a map of quantities."""
    return {name: _parse_or_zero(text) for name, text in written.items()}


def pod_requests(pod: Pod) -> Amounts:
    """The requests of a pod: containers, init containers, pod level, overhead. It has no entry ``pods``."""
    spec = pod.spec
    total: Amounts = {}
    for container in spec.containers:
        add(total, amounts(container.resources.requests))
    if spec.init_containers:
        _raise_to_init_needs(total, spec.init_containers)
    if spec.resources is not None:
        _replace_by_pod_level(total, amounts(spec.resources.requests))
    if spec.overhead:
        add(total, amounts(spec.overhead))
    return total


def add(total: Amounts, more: Mapping[str, int]) -> None:
    """Add in place."""
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def subtract(total: Amounts, less: Mapping[str, int]) -> None:
    """Subtract in place."""
    for name, amount in less.items():
        total[name] = total.get(name, 0) - amount


def is_terminal(pod: Pod) -> bool:
    """Whether the pod has finished (phase ``Succeeded`` or ``Failed``) and uses nothing any more."""
    return pod.status.phase in {"Succeeded", "Failed"}


def _raise_to_init_needs(total: Amounts, init_containers: Iterable[Container]) -> None:
    """Init containers run one after the other beside the sidecars that were started before them."""
    sidecars: Amounts = {}
    needs: list[Amounts] = []
    for container in init_containers:
        own = amounts(container.resources.requests)
        if container.restart_policy == "Always":
            add(total, own)
            add(sidecars, own)
            needs.append(dict(sidecars))
        else:
            add(own, sidecars)
            needs.append(own)
    for need in needs:
        for name, amount in need.items():
            total[name] = max(total.get(name, amount), amount)


def _replace_by_pod_level(total: Amounts, pod_level: Amounts) -> None:
    for name, amount in pod_level.items():
        if name in {"cpu", "memory"} or name.startswith("hugepages-"):
            total[name] = amount


def _parse_or_zero(text: str | int | float) -> int:
    try:
        return parse(text)
    except QuantityError:
        return 0
