"""One line for each benchmark: `name, ours, reference, ratio, bound, met or not met`."""

import os
from dataclasses import dataclass


class Unavailable(Exception):  # noqa: N818 - a benchmark says so, it has not failed
    """A component that the benchmark needs is not on this machine."""


@dataclass(frozen=True, slots=True)
class BenchLine:
    """A measurement beside its reference, both in `unit`.

    `bound` is the most that ours may be of the reference, or the least with `at_least` (rates).
    """

    name: str
    ours: float
    reference: float
    bound: float
    unit: str = "s"
    at_least: bool = False

    @property
    def ratio(self) -> float:
        """Ours as a part of the reference."""
        return self.ours / self.reference if self.reference else float("inf")

    @property
    def met(self) -> bool:
        """Whether the bound holds."""
        return self.ratio >= self.bound if self.at_least else self.ratio <= self.bound

    def __str__(self) -> str:
        figures = f"{self.ours:.4g} {self.unit}, {self.reference:.4g} {self.unit}, {self.ratio:.4f}"
        return f"{self.name}, {figures}, {self.bound:g}, {'met' if self.met else 'not met'}"


def wanted(name: str, module: str) -> bool:
    """Whether `make bench` asks for this line: no ONLY, or ONLY matches the line's or the module's name."""
    only = os.environ.get("ONLY", "").strip().lower()
    return not only or only in name.lower() or only == short_name(module)


def short_name(module: str) -> str:
    """`extender` for `tests.bench.bench_extender`."""
    return module.rsplit(".", 1)[-1].removeprefix("bench_").lower()
