"""Reads recorded inputs of the real descheduler: a cluster, a policy, and what it did with them.

The layout is described beside the data; ``cases/<name>/`` holds YAML files, ``generated*/<seed>.json.gz``
one object.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

import yaml

from deschedui.descheduler.objects import (
    Namespace,
    Node,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    PriorityClass,
    from_builtins,
)
from deschedui.descheduler.plugins import PLUGINS, SUPPORTED
from deschedui.descheduler.snapshot import Snapshot

T = TypeVar("T")
Json = dict[str, Any]

_TEMPLATE: Final = re.compile(r"\$\{NOW(?:([+-])(\d+)([smhd]))?\}")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True, slots=True)
class Case:
    """One input with its recorded result."""

    name: str
    objects: tuple[Json, ...]
    policy: str
    options: Json
    golden: Json

    @property
    def plugins(self) -> tuple[str, ...]:
        """The plugins that the policy's text names."""
        return tuple(name for name in PLUGINS if re.search(rf"\b{name}\b", self.policy))

    @property
    def later(self) -> tuple[str, ...]:
        """Those of them that do not run here yet."""
        return tuple(name for name in self.plugins if name not in SUPPORTED)

    def of_kind(self, kind: str, type_: type[T]) -> list[T]:
        """The cluster's objects of a kind."""
        return [from_builtins(item, type_) for item in self.objects if item["kind"] == kind]

    def snapshot(self) -> Snapshot:
        """The cluster. Budgets are in it only where the real program was made to see them."""
        sees_budgets = bool(self.options.get("startBudgetInformer"))
        return Snapshot.build(
            nodes=self.of_kind("Node", Node),
            pods=self.of_kind("Pod", Pod),
            namespaces=self.of_kind("Namespace", Namespace),
            priority_classes=self.of_kind("PriorityClass", PriorityClass),
            pdbs=self.of_kind("PodDisruptionBudget", PodDisruptionBudget) if sees_budgets else (),
            pvcs=self.of_kind("PersistentVolumeClaim", PersistentVolumeClaim),
        )

    @property
    def priorities(self) -> Mapping[str, int]:
        """Values of the cluster's priority classes."""
        return {item.metadata.name: item.value for item in self.of_kind("PriorityClass", PriorityClass)}


def read_folder(folder: Path, now: datetime) -> Iterator[Case]:
    """Every input below the folder, in order of name; times are counted from ``now``."""
    for path in sorted((folder / "cases").glob("*/policy.yaml")):
        yield _read_case(path.parent, now)
    for kind in ("generated", "generated-classes"):
        for path in sorted((folder / kind).glob("*.json.gz"), key=_seed):
            yield _read_generated(path, now)


def fill(text: str, now: datetime) -> str:
    """Replace the templates for times."""

    def moment(match: re.Match[str]) -> str:
        sign, count, unit = match.groups()
        seconds = int(count) * _SECONDS[unit] * (1 if sign == "+" else -1) if sign else 0
        return (now + timedelta(seconds=seconds)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    return _TEMPLATE.sub(moment, text)


def _read_case(folder: Path, now: datetime) -> Case:
    cluster = fill((folder / "cluster.yaml").read_text(encoding="utf-8"), now)
    options = yaml.safe_load((folder / "case.yaml").read_text(encoding="utf-8"))
    return Case(
        name=folder.name,
        objects=tuple(item for item in yaml.load_all(cluster, Loader=yaml.CSafeLoader) if item),
        policy=(folder / "policy.yaml").read_text(encoding="utf-8"),
        options=options or {},
        golden=json.loads((folder / "golden.json").read_text(encoding="utf-8")),
    )


def _read_generated(path: Path, now: datetime) -> Case:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        read = json.loads(fill(file.read(), now))
    return Case(
        name=f"{path.parent.name}/{path.name.removesuffix('.json.gz')}",
        objects=tuple(read["cluster"]),
        policy=json.dumps(read["policy"]),
        options=read["case"],
        golden=read["golden"],
    )


def _seed(path: Path) -> int:
    return int(path.name.removesuffix(".json.gz"))
