"""Which overload of an operation takes some arguments, and how its schema names them."""

from __future__ import annotations

import inspect
from functools import cache, lru_cache
from typing import Any

import torch

from tensafe.ops.from_torch.call import Call, function_named
from tensafe.ops.from_torch.observing import tensors_in
from tensafe.ops.row import Row, union

Labels = list[tuple[str, Any]]


def labels_of(
    row: Row, call: Call, given: tuple[Any, ...], named: dict[str, Any]
) -> tuple[str | None, Labels]:
    """The overload, if one can be told, and each argument with its name in the row."""
    names = parameters(call)
    if names is None and row.kind == "aten":
        return bound(row.name, given, named)
    known = union(facts.arguments for facts in row.groups)
    labels = in_turn(names or (*known, "more"), given, named)
    return None, [(_known(label, known), value) for label, value in labels]


def _known(label: str, known: tuple[str, ...]) -> str:
    """Python functions say `input` or `tensor` where the operation says `self`."""
    return known[0] if label in ("input", "tensor") and label not in known and known else label


def parameters(call: Call) -> tuple[str, ...] | None:
    """The parameters of a function written in Python that names them; None for anything else."""
    named = function_named(call.spelling)
    return next((names for one in (call.call, named) if (names := _parameters(one)) is not None), None)


@cache
def _parameters(function: Any) -> tuple[str, ...] | None:
    if not inspect.isfunction(function) or function.__name__ == "<lambda>":
        return None
    parameters = list(inspect.signature(function).parameters.values())
    if [one.kind for one in parameters] == [inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD]:
        return None
    names = []
    for one in parameters:
        names.append(one.name)
        if one.kind is inspect.Parameter.VAR_POSITIONAL:
            break
    return tuple(names)


def in_turn(names: tuple[str, ...], given: tuple[Any, ...], named: dict[str, Any]) -> Labels:
    """The arguments by these names in their order; the last name goes on."""
    last = len(names) - 1
    labels = [(names[min(place, last)] if names else str(place), one) for place, one in enumerate(given)]
    return [*labels, *named.items()]


@lru_cache(maxsize=4096)
def _schemas(name: str) -> tuple[Any, ...]:
    packet = getattr(torch.ops.aten, name)
    return tuple(getattr(packet, overload)._schema for overload in packet.overloads())


def bound(
    name: str, given: tuple[Any, ...], named: dict[str, Any]
) -> tuple[str | None, list[tuple[str, Any]]]:
    """The overload of an aten operation that takes these arguments, if one can be told, and their names."""
    for schema in _schemas(name):
        labels = _bind(schema, given, named)
        if labels is not None:
            return schema.overload_name, labels
    return None, _in_order(_schemas(name)[0], given, named)


def _in_order(schema: Any, given: tuple[Any, ...], named: dict[str, Any]) -> list[tuple[str, Any]]:
    """The tensors that were given, as the schema's tensors in their order; the last takes all that remain."""
    names = [one.name for one in schema.arguments if "Tensor" in str(one.type) and not one.is_out]
    tensors = [one for one in given if any(True for _ in tensors_in(one))]
    labels = [
        (names[min(place, len(names) - 1)] if names else str(place), one) for place, one in enumerate(tensors)
    ]
    return [*labels, *named.items()]


def _bind(schema: Any, given: tuple[Any, ...], named: dict[str, Any]) -> list[tuple[str, Any]] | None:
    arguments = {one.name: one for one in schema.arguments}
    order = [one.name for one in schema.arguments if not one.kwarg_only]
    if len(given) > len(order) and order and "List" in str(arguments[order[-1]].type):
        given = (*given[: len(order) - 1], list(given[len(order) - 1 :]))
    if len(given) > len(order):
        return None
    labels = [*zip(order, given, strict=False), *named.items()]
    if any(label not in arguments or not _fits(value, str(arguments[label].type)) for label, value in labels):
        return None
    missing = set(arguments) - {label for label, _ in labels}
    return None if any(not arguments[one].has_default_value() for one in missing) else labels


def _fits(value: Any, kind: str) -> bool:
    if isinstance(value, torch.Tensor):
        return "Tensor" in kind and "List" not in kind
    if isinstance(value, list | tuple) and any(isinstance(one, torch.Tensor) for one in value):
        return "List" in kind and "Tensor" in kind
    if isinstance(value, list | tuple):
        return "List" in kind and ("Tensor" not in kind or not value)
    if value is None:
        return kind.startswith(("Optional", "NoneType"))
    return "Tensor" not in kind and (isinstance(value, str) == ("str" in kind))
