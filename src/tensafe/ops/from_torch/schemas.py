"""What torch's own schemas say of every overload: arguments, what the result shares, what is written."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import torch

from tensafe.ops.row import Result, union

# TorchScript's own names for work on lists, dictionaries and numbers that happen to hold tensors.
CONTAINER_WORK = frozenset(
    [
        "Delete",
        "clear",
        "copy",
        "count",
        "dict",
        "get",
        "items",
        "keys",
        "len",
        "pop",
        "popitem",
        "remove",
        "setdefault",
        "sort",
        "sorted",
        "update",
        "values",
        "__contains__",
        "__getitem__",
        "_set_item",
    ]
)
SCRIPT_OVERLOADS = frozenset({"add.t", "copy_.Tensor", "copy_.float", "copy_.int", "split", "size", "stride"})


@dataclass(frozen=True, slots=True)
class Overload:
    """One schema, read."""

    name: str  # of the operation
    overload: str
    arguments: tuple[str, ...]
    tensors: tuple[str, ...]  # the arguments that are tensors, or lists of them
    results: tuple[str, ...]
    gives: Result
    of: tuple[str, ...]
    writes: tuple[str, ...]
    out: tuple[str, ...]
    script: bool  # registered for TorchScript alone

    @property
    def full_name(self) -> str:
        return f"{self.name}.{self.overload}" if self.overload else self.name


def overloads(native: frozenset[str]) -> dict[str, list[Overload]]:
    """Every overload that takes or gives a tensor, by operation; `native` are those of the yaml."""
    found: dict[str, list[Overload]] = defaultdict(list)
    for schema in torch._C._jit_get_all_schemas():
        if schema.name.startswith("aten::") and _has_tensor(schema):
            one = _read(schema, native)
            if not one.script or _is_wanted(one, native):
                found[one.name].append(one)
    return {name: sorted(group, key=lambda one: one.overload) for name, group in sorted(found.items())}


def _is_wanted(one: Overload, native: frozenset[str]) -> bool:
    """TorchScript's own overloads are left out where torch has the operation itself."""
    known = {name.partition(".")[0] for name in native}
    return one.name not in known and one.name not in CONTAINER_WORK


def _has_tensor(schema: Any) -> bool:
    return any("Tensor" in str(one.type) for one in [*schema.arguments, *schema.returns])


def _read(schema: Any, native: frozenset[str]) -> Overload:
    name, overload = schema.name.removeprefix("aten::"), schema.overload_name
    tensors = [one for one in schema.arguments if "Tensor" in str(one.type)]
    information = torch._C._SchemaInfo(schema)  # knows of batch norm's running statistics, which no mark does
    written = tuple(one.name for one in tensors if information.is_mutable(one.name))
    out = tuple(one.name for one in tensors if one.is_out and one.name in written)
    gives, of = _gives(schema, tensors)
    full = f"{name}.{overload}" if overload else name
    return Overload(
        name,
        overload,
        tuple(one.name for one in schema.arguments),
        tuple(one.name for one in tensors),
        _results(schema),
        gives,
        of,
        tuple(one for one in written if one not in out),
        out,
        full not in native,
    )


def _results(schema: Any) -> tuple[str, ...]:
    returns = schema.returns
    if len(returns) == 1:
        return (returns[0].name or "result",)
    return tuple(one.name or f"result{place}" for place, one in enumerate(returns))


def _gives(schema: Any, tensors: list[Any]) -> tuple[Result, tuple[str, ...]]:
    returns = [one for one in schema.returns if "Tensor" in str(one.type)]
    if not returns:
        return (Result.VALUE if schema.returns else Result.NOTHING), ()
    written = [one for one in returns if one.alias_info is not None and one.alias_info.is_write]
    if written:
        return Result.ITSELF, union(_sources(one.alias_info, tensors) for one in written)
    # an argument is marked and not written only where a result may be it; lists of results carry no mark
    shared = tuple(one.name for one in tensors if one.alias_info is not None and not one.alias_info.is_write)
    return (Result.VIEW, shared) if shared else (Result.COPY, ())


def _sources(alias: Any, tensors: list[Any]) -> tuple[str, ...]:
    """The arguments that carry the same mark as a result."""
    return tuple(
        one.name
        for one in tensors
        if one.alias_info is not None and one.alias_info.before_set & alias.before_set
    )
