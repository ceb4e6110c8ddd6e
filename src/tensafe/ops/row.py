"""What one operation does to memory and to the graph, as it stands in the stored table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, TypeVar, cast

from tensafe.ops.words import IN_BETWEEN as IN_BETWEEN
from tensafe.ops.words import OLD as OLD

T = TypeVar("T")


class Result(str, Enum):
    """What the result's memory is."""

    COPY = "copy"  # memory of its own
    VIEW = "view"  # the memory of an argument
    EITHER = "either"  # one or the other; `when` says which
    ITSELF = "itself"  # the very argument that was written
    VALUE = "value"  # a number, a list, an array: no tensor
    NOTHING = "nothing"


class Graph(str, Enum):
    """What becomes of the graph of an argument that requires a gradient."""

    KEPT = "kept"
    CUT = "cut"  # the result requires no gradient
    EITHER = "either"  # `graph_when` says which
    PARTS = "parts"  # as the operations that it calls do
    REFUSED = "refused"  # the result has a node that raises in backward: no derivative is implemented
    NONE = "none"  # no tensor comes in, or none goes out


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What holds for some overloads of an operation."""

    overloads: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    results: tuple[str, ...] = ()  # their names; `result` alone, or `result0`, `result1`, ...
    gives: Result = Result.COPY
    of: tuple[str, ...] = ()  # the arguments whose memory the result may be
    when: str = ""
    writes: tuple[str, ...] = ()
    writes_when: str = ""
    graph: Graph = Graph.KEPT
    graph_when: str = ""
    saves: tuple[tuple[str, tuple[str, ...]], ...] = ()  # what is kept for the gradient of which argument
    saves_when: str = ""
    seen: bool = False  # graph and saves as running it shows, not from a derivative formula


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One operation: its facts, one for each group of overloads that agree, and how Python spells it."""

    name: str
    kind: str = "aten"  # or "python", "form", "script"
    groups: tuple[Facts, ...] = ()
    out: tuple[str, ...] = ()  # the arguments that `out=` writes
    spelled: tuple[str, ...] = ()
    in_place: str = ""  # the row of the in-place twin
    out_of_place: str = ""
    see: str = ""
    note: str = ""
    examples: tuple[str, ...] = ()  # lines of Python; the comment says what comes of it, and a test looks

    @property
    def gives(self) -> Result:
        """What all overloads give; EITHER where they differ."""
        found = {facts.gives for facts in self.groups}
        if len(found) == 1:
            return next(iter(found))
        tensors = found - {Result.VALUE, Result.NOTHING}
        return next(iter(tensors)) if len(tensors) == 1 else Result.EITHER

    @property
    def graph(self) -> Graph:
        """What all overloads do with the graph; EITHER where they differ."""
        found = {facts.graph for facts in self.groups}
        return next(iter(found)) if len(found) == 1 else Graph.EITHER

    @property
    def writes(self) -> tuple[str, ...]:
        """Every argument that some overload writes."""
        return union(facts.writes for facts in self.groups)

    @property
    def of(self) -> tuple[str, ...]:
        """Every argument whose memory some overload's result may be."""
        return union(facts.of for facts in self.groups)

    @property
    def saves(self) -> tuple[str, ...]:
        """Everything that some overload may keep for backward."""
        return union(names for facts in self.groups for _, names in facts.saves)


def union(groups: Any) -> tuple[str, ...]:
    """The names of all groups, each once, in the order they first come."""
    return tuple(dict.fromkeys(name for names in groups for name in names))


def to_data(value: Facts | Row) -> dict[str, Any]:
    """Plain data for JSON, defaults left out."""
    return {
        one.name: _plain(getattr(value, one.name))
        for one in fields(value)
        if getattr(value, one.name) != one.default
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Facts):
        return to_data(value)
    if isinstance(value, tuple):
        pairs = bool(value) and isinstance(value[0], tuple)
        return {key: list(names) for key, names in value} if pairs else [_plain(one) for one in value]
    return value


def facts_from(data: Mapping[str, Any]) -> Facts:
    """The facts that `to_data` wrote."""
    known = dict(data)
    known["gives"] = Result(known.get("gives", "copy"))
    known["graph"] = Graph(known.get("graph", "kept"))
    known["saves"] = tuple((key, tuple(names)) for key, names in known.get("saves", {}).items())
    return _made(Facts, known)


def row_from(name: str, data: Mapping[str, Any]) -> Row:
    """The row that `to_data` wrote."""
    known = dict(data) | {"name": name}
    known["groups"] = tuple(facts_from(one) for one in known.get("groups", ()))
    return _made(Row, known)


def _made(kind: type[T], known: dict[str, Any]) -> T:
    return kind(
        **{key: tuple(one) if isinstance(one, list) else cast(Any, one) for key, one in known.items()}
    )
