"""What a function does with its argument: writes it on purpose, converts it in passing, gives it back."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

import torch

from tensafe.syntax.chains import alias_of
from tensafe.syntax.reading import dotted

_IN_PLACE = re.compile(r"in[- ]?place", re.IGNORECASE)
_PROCEDURES = re.compile(
    r"_*(set|init|reset|update|fill|zero|apply|sync|accumulate|copy|write|swap|clear|decay|step|load|restore|"
    r"push|insert|store|add|put|train|clip|freeze|mutate|modify|increment|scatter|blend|ema|soft_update)(_|$|[A-Z])"
)

Function = ast.FunctionDef | ast.AsyncFunctionDef


def is_meant(function: Function) -> bool:
    """Whether the function says that it writes its argument: by its name, its arguments or its docstring."""
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    if function.name.endswith("_") and not function.name.endswith("__"):
        return True
    if _PROCEDURES.match(function.name) or any(_IN_PLACE.search(a.arg.replace("_", "")) for a in arguments):
        return True
    return bool(_IN_PLACE.search(ast.get_docstring(function) or ""))


def returned(function: Function) -> list[ast.expr]:
    """The values that a function returns."""
    return [node.value for node in _own(function) if isinstance(node, ast.Return) and node.value is not None]


def gives_back(function: Function, names: set[str]) -> bool:
    """Whether one of these names is returned as it is, or as a view of it."""
    for value in returned(function):
        for part in value.elts if isinstance(value, ast.Tuple | ast.List) else [value]:
            alias = alias_of(part)
            if alias is not None and dotted(alias[0]) in names:
                return True
    return False


def brings_no_data(statement: ast.stmt, name: str, arguments: tuple[Any, ...]) -> bool:
    """Whether a write only converts: its new values come from the tensor itself or from plain numbers."""
    if not any(isinstance(item, torch.Tensor) for item in arguments[-1:]):
        return True
    if isinstance(statement, ast.AugAssign):
        return _mentions(statement.value, name)
    if isinstance(statement, ast.Assign):
        return _mentions(statement.value, name)
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
    return any(_mentions(argument, name) for call in calls for argument in call.args)


def _mentions(part: ast.AST, name: str) -> bool:
    return any(isinstance(node, ast.Name | ast.Attribute) and dotted(node) == name for node in ast.walk(part))


def _own(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions inside it."""
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            yield child
            yield from _own(child)
