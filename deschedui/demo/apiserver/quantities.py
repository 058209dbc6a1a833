"""Amounts of cpu, memory and pods, and what follows from them: a pod's requests and its QoS class."""

import re
from collections import Counter
from decimal import Decimal

from .store import Json

_SUFFIXES = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "": Decimal(1),
    "k": Decimal(10**3),
    "M": Decimal(10**6),
    "G": Decimal(10**9),
    "T": Decimal(10**12),
    "Ki": Decimal(2**10),
    "Mi": Decimal(2**20),
    "Gi": Decimal(2**30),
    "Ti": Decimal(2**40),
}
_QUANTITY = re.compile(r"([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([a-zA-Z]*)")


def quantity(text: str | int | float) -> Decimal:
    """`100m`, `1Gi`, `2`: the amount. Raises ValueError for anything else."""
    match = _QUANTITY.fullmatch(str(text))
    if match is None or match[2] not in _SUFFIXES:
        raise ValueError(f"not a quantity: {text!r}")
    return Decimal(match[1]) * _SUFFIXES[match[2]]


def requests(spec: Json) -> Counter[str]:
    """What a pod asks of its node: the sum of its containers (millionths, so that sums stay whole), one pod."""
    total: Counter[str] = Counter(pods=1_000_000)
    for container in spec.get("containers") or ():
        for name, amount in (container.get("resources") or {}).get("requests", {}).items():
            total[name] += int(quantity(amount) * 1_000_000)
    return total


def allocatable(node: Json) -> Counter[str]:
    """What a node offers, in millionths."""
    offered = (node.get("status") or {}).get("allocatable") or {}
    return Counter({name: int(quantity(amount) * 1_000_000) for name, amount in offered.items()})


def qos_class(spec: Json) -> str:
    """Guaranteed, Burstable or BestEffort, from cpu and memory of every container."""
    resources = [c.get("resources") or {} for c in spec.get("containers") or ()]
    if not any(r.get("requests") or r.get("limits") for r in resources):
        return "BestEffort"
    return "Guaranteed" if resources and all(_guaranteed(r) for r in resources) else "Burstable"


def _guaranteed(resources: Json) -> bool:
    limits, asked = resources.get("limits") or {}, resources.get("requests") or {}
    return all(
        n in limits and quantity(limits[n]) == quantity(asked.get(n, limits[n])) for n in ("cpu", "memory")
    )
