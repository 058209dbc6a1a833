"""Nodes to frozen structs, by the rules of Go's decoder: what is wrong is collected, and reading goes on.

A struct's annotations say what its fields are (:mod:`deschedui.descheduler.plugins.arg_types`). A wrong type is a
fault, with our sentence and Go's; a field that is not there is noted, and the caller decides how bad that is.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from functools import lru_cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

import msgspec
from pydantic import BaseModel

from deschedui.descheduler.plugins.arg_types import Bounds, Named
from deschedui.descheduler.policy.durations import go_duration_problem
from deschedui.descheduler.policy.nodes import Kind, Node, Pair, Path, path_text
from deschedui.extender.config import ConfigErrors, parse_go_duration, read_extender

GO_NAMES: Final[Mapping[str, str]] = {
    "Requirement": "v1.LabelSelectorRequirement",
    "LabelSelector": "v1.LabelSelector",
    "Namespaces": "api.Namespaces",
    "PriorityThreshold": "api.PriorityThreshold",
    "DeschedulerProfile": "v1alpha2.DeschedulerProfile",
    "PluginConfig": "v1alpha2.PluginConfig",
    "Plugins": "v1alpha2.Plugins",
    "PluginSet": "v1alpha2.PluginSet",
    "MetricsCollector": "v1alpha2.MetricsCollector",
    "MetricsProvider": "v1alpha2.MetricsProvider",
}
"""Struct types as Go's error texts call them, package first; others are called by their name here."""

_WHOLE: Final = re.compile(r"-?[0-9]{1,20}")


@dataclass(frozen=True, slots=True)
class Fault:
    """A value of the wrong type. ``upstream`` is the text upstream ends with, '' where it would accept it."""

    path: Path
    message: str
    upstream: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Stray:
    """A key that the struct ``owner`` does not have, or (``repeated``) one that occurs again later."""

    path: Path
    go_path: str
    owner: type[msgspec.Struct]
    key: str
    repeated: bool = False
    line: int = 0
    column: int = 0


@dataclass(slots=True)
class Findings:
    """What one decoding came across, in the order in which upstream comes across it."""

    faults: list[Fault] = field(default_factory=list)
    strays: list[Stray] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the decoder is: our path, and Go's view of it (innermost struct, keys without indexes)."""

    path: Path
    struct: str = ""
    keys: tuple[str, ...] = ()

    def key(self, key: str, struct: str) -> "Place":
        """One field of a struct."""
        return Place((*self.path, key), struct, (*self.keys, key))

    def index(self, index: int) -> "Place":
        """One item of a list; Go does not mention it."""
        return replace(self, path=(*self.path, index))

    @property
    def go(self) -> str:
        """What Go's texts say about the place."""
        return f"Go struct field {'.'.join((self.struct, *self.keys))}" if self.keys else "Go value"


class _Type:
    """How values of one type are read."""

    @property
    def wanted(self) -> str:
        """Completes "must be …"."""
        return "a mapping"

    @property
    def go(self) -> str:
        """What Go calls the type."""
        return ""

    def read(self, node: Node, at: Place, decoder: "Decoder") -> Any:
        """The value of a node that is not null, or None after a fault."""
        raise NotImplementedError

    def zero(self) -> Any:
        """What null leaves where a value has to be: in lists and maps."""
        return None


@dataclass(frozen=True)
class _Scalar(_Type):
    kind: Kind
    sentence: str
    type_name: str
    convert: Callable[[str], Any]
    empty: Any

    @property
    def wanted(self) -> str:
        return self.sentence

    @property
    def go(self) -> str:
        return self.type_name

    def read(self, node: Node, at: Place, decoder: "Decoder") -> Any:
        if node.kind is not self.kind:
            return decoder.wrong_type(node, at, self)
        return self.convert(node.text)

    def zero(self) -> Any:
        return self.empty


@dataclass(frozen=True)
class _Integer(_Type):
    bounds: Bounds

    @property
    def wanted(self) -> str:
        low, high = self.bounds.low, self.bounds.high
        return "a whole number from 0 up" if low == 0 else f"a whole number from {low} to {high}"

    @property
    def go(self) -> str:
        return self.bounds.type_name

    def read(self, node: Node, at: Place, decoder: "Decoder") -> Any:
        if node.kind is not Kind.NUMBER:
            return decoder.wrong_type(node, at, self)
        value = int(node.text) if _WHOLE.fullmatch(node.text) else None
        if value is None or not self.bounds.low <= value <= self.bounds.high:
            return decoder.wrong_type(node, at, self, literal=f" {node.text}")
        return value

    def zero(self) -> int:
        return 0


@dataclass(frozen=True)
class _Duration(_Type):
    @property
    def wanted(self) -> str:
        return "a duration such as 5m or 1h30m"

    @property
    def go(self) -> str:
        return "string"

    def read(self, node: Node, at: Place, decoder: "Decoder") -> Any:
        if node.kind is not Kind.STRING:
            return decoder.wrong_type(node, at, self)
        try:
            return parse_go_duration(node.text, field=str(at.path[-1]), positive=False)
        except ValueError as error:
            return decoder.fault(Fault(at.path, str(error), go_duration_problem(node.text)))


@dataclass(frozen=True)
class _Choice(_Type):
    """An enumeration of our own; upstream has no such field, so it has no text for it."""

    members: type[StrEnum]

    def read(self, node: Node, at: Place, decoder: "Decoder") -> Any:
        found = next((member for member in self.members if node.text == member.value), None)
        if found is None or node.kind is not Kind.STRING:
            words = " or ".join(member.value for member in self.members)
            message = f"{at.path[-1]} must be {words} in exactly this spelling, not {shown(node)}"
            return decoder.fault(Fault(at.path, message))
        return found


@dataclass(frozen=True)
class _Extender(_Type):
    """An extender's own fields, which its package judges."""

    def read(self, node: Node, at: Place, decoder: "Decoder") -> Any:
        try:
            return read_extender(plain(node))
        except ConfigErrors as errors:
            for problem in errors.problems:
                decoder.fault(Fault((*at.path, *problem.path), problem.message))
        return None


@dataclass(frozen=True)
class _Raw(_Type):
    """A value that is kept as it stands, to be read when its type is known."""

    def read(self, node: Node, at: Place, decoder: "Decoder") -> Any:  # noqa: ARG002
        return node


@dataclass(frozen=True)
class _List(_Type):
    item: _Type

    @property
    def wanted(self) -> str:
        return "a list"

    @property
    def go(self) -> str:
        return f"[]{self.item.go}"

    def read(self, node: Node, at: Place, decoder: "Decoder") -> Any:
        if node.kind is not Kind.ARRAY:
            return decoder.wrong_type(node, at, self)
        items = (decoder.read_or_zero(item, self.item, at.index(i)) for i, item in enumerate(node.items))
        return tuple(item for item in items if item is not None)

    def zero(self) -> tuple[()]:
        return ()


@dataclass(frozen=True)
class _Map(_Type):
    item: _Type

    @property
    def go(self) -> str:
        return f"map[string]{self.item.go}"

    def read(self, node: Node, at: Place, decoder: "Decoder") -> Any:
        if node.kind is not Kind.OBJECT:
            return decoder.wrong_type(node, at, self)
        below = {
            pair.key: decoder.read_or_zero(pair.value, self.item, replace(at, path=(*at.path, pair.key)))
            for pair in decoder.ordered(node)
        }
        return {key: value for key, value in below.items() if value is not None}

    def zero(self) -> dict[str, Any]:
        return {}


@dataclass(frozen=True)
class _Struct(_Type):
    struct: type[msgspec.Struct]

    @property
    def go(self) -> str:
        return GO_NAMES.get(self.name, self.name)

    @property
    def name(self) -> str:
        """The struct's name in Go."""
        return self.go_struct_name(self.struct)

    @staticmethod
    def go_struct_name(struct: type[msgspec.Struct]) -> str:
        """Without the package: what stands before a field in Go's texts."""
        return GO_NAMES.get(struct.__name__, struct.__name__).rpartition(".")[2]

    def read(self, node: Node, at: Place, decoder: "Decoder") -> Any:
        if node.kind is not Kind.OBJECT:
            return decoder.wrong_type(node, at, self)
        return decoder.struct(node, self.struct, at)

    def zero(self) -> msgspec.Struct:
        return self.struct()


@dataclass(slots=True)
class Decoder:
    """Reads one document or one plugin's arguments. ``base`` is its path in the text."""

    in_key_order: bool
    base: Path = ()
    """Whether keys come sorted, as upstream sorts those of YAML."""
    spelling: Callable[[type[msgspec.Struct], str], str] = lambda _struct, key: key
    ignored_keys: frozenset[str] = frozenset()
    findings: Findings = field(default_factory=Findings)

    def struct(self, node: Node, struct: type[msgspec.Struct], at: Place) -> Any:
        """Read an object into a struct; what cannot be read keeps its default."""
        fields = {self.spelling(struct, name): known for name, known in fields_of(struct).items()}
        values: dict[str, Any] = {}
        for pair in self.ordered(node):
            if pair.key in fields:
                attribute, wanted = fields[pair.key]
                values[attribute] = self._read(pair.value, wanted, at.key(pair.key, _Struct(struct).name))
            elif at.keys or pair.key not in self.ignored_keys:
                self._note(pair, struct, at)
        self._note_repeated(node, struct, at)
        return struct(**{name: value for name, value in values.items() if value is not None})

    def read_or_zero(self, node: Node, wanted: "_Type", at: Place) -> Any:
        """Read an item of a list or a map, where null is the zero value."""
        return wanted.zero() if node.kind is Kind.NULL else wanted.read(node, at, self)

    def ordered(self, node: Node) -> list[Pair]:
        """An object's pairs in the order of upstream, whose YAML goes through JSON with sorted keys."""
        return sorted(node.members, key=lambda pair: pair.key) if self.in_key_order else list(node.members)

    def wrong_type(self, node: Node, at: Place, wanted: "_Type", literal: str = "") -> None:
        """Note a value that is not what the field takes. ``literal`` is the number where Go prints it."""
        upstream = f"json: cannot unmarshal {node.kind.value}{literal} into {at.go} of type {wanted.go}"
        message = f"{_name(at.path)} must be {wanted.wanted}, not {shown(node)}"
        self.fault(Fault(at.path, message, upstream, _type_hint(node, wanted)))

    def fault(self, fault: Fault) -> None:
        """Note a fault; reading goes on."""
        self.findings.faults.append(fault)

    def _read(self, node: Node, wanted: "_Type", at: Place) -> Any:
        return None if node.kind is Kind.NULL else wanted.read(node, at, self)

    def _note(self, pair: Pair, struct: type[msgspec.Struct], at: Place, *, repeated: bool = False) -> None:
        path, span = (*at.path, pair.key), pair.key_span
        go_path = path_text(path[len(self.base) :])
        stray = Stray(path, go_path, struct, pair.key, repeated, span.line, span.column)
        self.findings.strays.append(stray)

    def _note_repeated(self, node: Node, struct: type[msgspec.Struct], at: Place) -> None:
        for pair in node.repeated():
            self._note(pair, struct, at, repeated=True)


@lru_cache(maxsize=256)
def fields_of(struct: type[msgspec.Struct]) -> Mapping[str, tuple[str, _Type]]:
    """The fields of a struct: key as a policy writes it, to attribute and type."""
    hints = get_type_hints(struct, include_extras=True)
    return {
        known.encode_name: (known.name, _type_of(hints[known.name]))
        for known in msgspec.structs.fields(struct)
    }


def _type_of(hint: Any) -> _Type:
    origin, args = get_origin(hint), get_args(hint)
    if origin in {Union, UnionType}:
        return _type_of(next(arg for arg in args if arg is not NoneType))
    if origin is Annotated:
        return _annotated(args[0], args[1])
    if origin is tuple:
        return _List(_type_of(args[0]))
    if origin is not None:
        return _Map(_type_of(args[1]))
    return _plain_type(hint)


def _annotated(base: type, mark: Bounds | Named) -> _Type:
    if isinstance(mark, Bounds):
        return _Integer(mark)
    if base is timedelta:
        return _Duration()
    return _Scalar(Kind.NUMBER, "a number", mark.type_name, float, 0.0)


def _plain_type(hint: type) -> _Type:
    if hint is str:
        return _Scalar(Kind.STRING, "text", "string", str, "")
    if hint is bool:
        return _Scalar(Kind.BOOL, "true or false", "bool", lambda text: text == "true", empty=False)
    if issubclass(hint, StrEnum):
        return _Choice(hint)
    if issubclass(hint, BaseModel):
        return _Extender()
    return _Struct(hint) if issubclass(hint, msgspec.Struct) else _Raw()


def plain(node: Node) -> Any:
    """A node as plain Python values."""
    match node.kind:
        case Kind.OBJECT:
            return {pair.key: plain(pair.value) for pair in node.members}
        case Kind.ARRAY:
            return [plain(item) for item in node.items]
        case Kind.NUMBER:
            return int(node.text) if _WHOLE.fullmatch(node.text) else float(node.text)
        case Kind.BOOL:
            return node.text == "true"
        case Kind.NULL:
            return None
    return node.text


def shown(node: Node) -> str:
    """A value in a sentence, bounded."""
    match node.kind:
        case Kind.STRING:
            return f'the text "{node.text[:100]}"' if node.text else "an empty text"
        case Kind.NUMBER:
            return f"the number {node.text[:100]}"
        case Kind.BOOL:
            return node.text
        case Kind.ARRAY:
            return "a list"
        case Kind.OBJECT:
            return "a mapping"
    return "nothing"


def _type_hint(node: Node, wanted: _Type) -> str:
    if isinstance(wanted, _List) and node.kind is Kind.STRING:
        return f"write it as a list: [{node.text[:100]}]"
    if isinstance(wanted, _Duration):
        return f'give it a unit, as in "{node.text[:20]}s"' if node.kind is Kind.NUMBER else ""
    if wanted.go != "string" or not node.source:
        return ""
    if node.kind is Kind.BOOL and node.source not in {"true", "false"}:
        return f'YAML reads {node.source} as {node.text}: write "{node.source}" in quotes'
    return f'write "{node.source[:100]}" in quotes' if node.kind in {Kind.BOOL, Kind.NUMBER} else ""


def _name(path: Path) -> str:
    """The nearest name above a place: an item of a list is called after the list."""
    names = [part for part in path if isinstance(part, str)]
    name = names[-1] if names else "the document"
    return f"an item of {name}" if path and isinstance(path[-1], int) else name
