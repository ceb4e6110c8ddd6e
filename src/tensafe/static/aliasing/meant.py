"""What a function does with its argument: writes it on purpose, converts it in passing, gives it back."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from tensafe.ops import words
from tensafe.syntax.chains import Function, alias_of, root_of
from tensafe.syntax.reading import Syntax, dotted

_IN_PLACE = re.compile(r"in[- ]?place|mutat|modif(y|ies) the (input|argument)", re.IGNORECASE)
_PROCEDURES = re.compile(
    r"_*(set|init|reset|update|fill|zero|apply|sync|accumulate|copy|write|swap|clear|decay|step|load|restore|"
    r"push|insert|store|add|put|train|clip|freeze|mutate|modify|increment|scatter|blend|ema|soft_update)"
    r"(_|$|[A-Z])"
)
_TO_WRITE = re.compile(
    r"(^|_)(out|outs|outputs?|buf|buffers?|caches?|workspace|scratch|storage)$|(conv|ssm|cell|recurrent|running|optimi[sz]er|cache)_states?$"
)
_NUMBERS = words("float int torch math np")  # `float("-inf")`, `torch.inf`
_NEW_DATA = words("add_ lerp_ copy_ addcmul_ addcdiv_ maximum_")
SETS = words(
    """
    __setitem__ copy_ fill_ zero_ scatter_ index_put_ index_add_ scatter_add_ masked_fill_ index_fill_
    index_copy_
    """
)


def is_meant(function: Function, procedures: bool = True) -> bool:
    """Whether the function says that it writes its argument: by its name, its arguments or its docstring.

    `procedures` counts names such as `update` and `load`, too, which say what is done, not to what.
    """
    spec = function.args
    arguments = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs]
    if function.name.endswith("_") and not function.name.endswith("__"):
        return True
    if procedures and _PROCEDURES.match(function.name):
        return True
    if _IN_PLACE.search(function.name.replace("_", "")):
        return True
    if any(_IN_PLACE.search(argument.arg.replace("_", "")) for argument in arguments):
        return True
    return bool(_IN_PLACE.search(ast.get_docstring(function) or ""))


def is_to_be_written(name: str) -> bool:
    """Whether an argument's name says that functions write it: `out`, `cache`, `conv_state`."""
    return _TO_WRITE.search(name) is not None


def is_built_up(syntax: Syntax, names: set[str]) -> bool:
    """Whether a loop makes items of one of these from the items before: `a[t] = a[t - 1] + x[t]`."""
    return any(
        isinstance(node, ast.Assign)
        and any(_owner(target) in names for target in node.targets)
        and any(
            isinstance(part, ast.Subscript) and _owner(part) in names and _is_shifted(part)
            for part in ast.walk(node.value)
        )
        for node in syntax.own
    )


def _owner(node: ast.AST) -> str:
    return node.value.id if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) else ""


def _is_shifted(node: ast.Subscript) -> bool:
    """Whether an index is a name and a number: `a[t - 1]`, `a[at(t, u + 1)]`."""
    return any(
        isinstance(part, ast.BinOp)
        and isinstance(part.op, ast.Add | ast.Sub)
        and isinstance(part.left, ast.Name)
        and isinstance(part.right, ast.Constant)
        for part in ast.walk(node.slice)
    )


def gives_back(syntax: Syntax, names: set[str]) -> bool:
    """Whether one of these names is returned as it is, or as a view of it."""
    for value in syntax.returned:
        for part in value.elts if isinstance(value, ast.Tuple | ast.List) else [value]:
            alias = alias_of(part)
            if alias is not None and dotted(alias[0]) in names:
                return True
    return False


def keeps_original(syntax: Syntax, name: str, before: int) -> bool:
    """Whether the function clones its argument first, under another name, as it is going to write it."""
    return any(
        isinstance(node, ast.Assign)
        and node.lineno < before
        and isinstance(node.value, ast.Call)
        and dotted(node.value.func) == f"{name}.clone"
        and all(isinstance(target, ast.Name) and target.id != name for target in node.targets)
        for node in syntax.own
    )


def brings_data(syntax: Syntax, name: str) -> bool:
    """Whether a function adds anything to this tensor that does not come from the tensor itself."""
    return any(_brings_data(part, name) for part in syntax.own)


def _brings_data(part: ast.AST, name: str) -> bool:
    if isinstance(part, ast.AugAssign) and isinstance(part.op, ast.Add):
        return _root_name(part.target) == name and not mentions([part.value], name)
    if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _NEW_DATA:
        return _root_name(part.func.value) == name and not mentions(part.args, name)
    return False


def only_converts(node: ast.AST, name: str) -> bool:
    """Whether a write takes its new values from the tensor itself or from plain numbers."""
    if isinstance(node, ast.AugAssign):
        return mentions([node.value], name)
    if isinstance(node, ast.Assign):
        return mentions([node.value], name)
    if isinstance(node, ast.Call):
        return mentions([*node.args, *(keyword.value for keyword in node.keywords)], name)
    return False


def _root_name(node: ast.expr) -> str:
    root = root_of(node)
    return dotted(root) if root is not None else ""


def mentions(parts: Iterable[ast.AST], name: str) -> bool:
    """Whether the new value comes from the tensor itself, or is but a number."""
    nodes = [node for part in parts for node in ast.walk(part)]
    return any(
        isinstance(node, ast.Name | ast.Attribute) and dotted(node) == name for node in nodes
    ) or not any(isinstance(node, ast.Name) and node.id not in _NUMBERS for node in nodes)
