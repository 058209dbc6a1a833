"""What the arguments of plugins are made of, and the parts that several plugins share.

The types are the declaration: the policy loader reads a plugin's arguments by the annotations of its struct,
with the names, ranges and defaults given here. An absent field and ``null`` both leave the default.
"""

import difflib
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Annotated, NamedTuple

import msgspec

from deschedui.descheduler.selectors import LabelSelector


class Bounds(NamedTuple):
    """The range of an integer field, both ends included; ``type_name`` is upstream's word for its type."""

    type_name: str
    low: int
    high: int


class Named(NamedTuple):
    """What upstream's error texts call the type of a field that is no integer."""

    type_name: str


Uint = Annotated[int, Bounds("uint", 0, 2**64 - 1)]
Int = Annotated[int, Bounds("int", -(2**63), 2**63 - 1)]
Int32 = Annotated[int, Bounds("int32", -(2**31), 2**31 - 1)]
Int64 = Annotated[int, Bounds("int64", -(2**63), 2**63 - 1)]
Percentage = Annotated[float, Named("api.Percentage")]
GoDuration = Annotated[timedelta, Named("string")]
"""A duration, written as text: ``1h30m``."""


class Args(msgspec.Struct, frozen=True, rename="camel"):
    """Base of the arguments of every plugin and of their parts. A policy writes fields in camel case."""


class ArgsProblem(NamedTuple):
    """Something wrong with arguments: the field's path below ``args``, and upstream's sentence."""

    path: str
    text: str
    hint: str = ""


class Namespaces(Args, frozen=True):
    """Which namespaces a plugin looks at: only these, or all but these. Empty lists restrict nothing."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


class OwnerKinds(Args, frozen=True):
    """Which kinds of owner a plugin looks at: only these, or all but these. Empty lists restrict nothing."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


def namespace_problems(namespaces: Namespaces | None) -> Iterator[ArgsProblem]:
    """Refuse a choice of namespaces that both includes and excludes."""
    if namespaces and namespaces.include and namespaces.exclude:
        yield ArgsProblem("namespaces", "only one of Include/Exclude namespaces can be set")


def selector_problems(selector: LabelSelector | None) -> Iterator[ArgsProblem]:
    """Refuse a label selector that cannot be used."""
    if selector and (problem := selector.problem()):
        text = f"failed to get label selectors from strategy's params: {problem}"
        yield ArgsProblem("labelSelector", text)


def unknown_words(words: Sequence[str], allowed: Sequence[str]) -> list[str]:
    """The words that are not allowed here, in the order in which they were written."""
    return [word for word in words if word not in allowed]


def words_hint(unknown: Sequence[str], allowed: Sequence[str]) -> str:
    """Names the words that are not allowed, and what the first of them probably should be."""
    named = ", ".join(f'"{word[:100]}"' for word in unknown[:10])
    close = difflib.get_close_matches(unknown[0][:100], allowed, n=1)
    return f"{named} {'are' if len(unknown) > 1 else 'is'} none of them" + (
        f", did you mean {close[0]}?" if close else ""
    )
