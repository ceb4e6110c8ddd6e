"""Where the source puts a value under a name, an attribute or into a list: read only after an error."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from tensafe.facts import Site
from tensafe.runtime.places.frames import INTERNAL, Place, _characters, _line
from tensafe.runtime.places.source import Syntax, syntax_of
from tensafe.runtime.refusals.frames import is_module, statement_at

FILLS = ("append", "extend", "insert", "add", "appendleft", "setdefault")
WITHOUT_GRAPH = ("item", "tolist", "numpy", "detach", "argmax", "argmin", "size")
NUMBERS = ("float", "int", "len", "round", "bool", "str")
REGISTERS = ("register_buffer", "register_parameter", "setattr", "add_module")
BUILDERS = ("list", "tuple", "dict", "OrderedDict", "deque")
COMPREHENSIONS = (ast.ListComp, ast.DictComp, ast.GeneratorExp)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
MOST_FILES = 200


class Put(NamedTuple):
    """A place in the source that puts a value somewhere."""

    filename: str
    node: ast.expr | ast.stmt
    value: ast.expr | None

    @property
    def site(self) -> Site:
        return site_in(self.filename, self.node)

    @property
    def is_plain(self) -> bool:
        """Whether what is put there is seen to be no tensor with a graph: None, a number, a detached one."""
        return self.value is None or _is_plain(self.value)


def _is_plain(value: ast.expr) -> bool:
    if isinstance(value, ast.Constant | ast.JoinedStr):
        return True
    while isinstance(value, ast.Call | ast.Attribute | ast.Subscript):
        if isinstance(value, ast.Call):
            if isinstance(value.func, ast.Name):
                return value.func.id in NUMBERS
            value = value.func
        elif isinstance(value, ast.Attribute):
            if value.attr in WITHOUT_GRAPH:
                return True
            value = value.value
        else:
            value = value.value
    return False


def site_in(filename: str, node: ast.expr | ast.stmt) -> Site:
    """The site of a node of a file, with the function around it."""
    end_line = node.end_lineno or node.lineno
    first = _characters(_line(filename, node.lineno), node.col_offset) + 1
    last = _characters(_line(filename, end_line), node.end_col_offset or 0) + 1
    return Site(filename, node.lineno, first, end_line, last, _function_of(filename, node))


def _function_of(filename: str, node: ast.AST) -> str:
    names: list[str] = []
    syntax = syntax_of(filename)
    parent = syntax.parents.get(node) if syntax else None
    while parent is not None and syntax is not None:
        if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.append(parent.name)
        parent = syntax.parents.get(parent)
    return ".".join(reversed(names))


def own_files(running: Iterable[str]) -> Iterator[tuple[str, Syntax]]:
    """The program's own files: those of running frames, of its modules and cells; no installed packages."""
    loaded: list[Any] = list(sys.modules.values())  # a program may put anything there
    modules = {vars(module).get("__file__") for module in loaded if isinstance(module, ModuleType)}
    cells = [name for name in INTERNAL if name.startswith("<ipython") or "ipykernel_" in name]
    known = dict.fromkeys([*running, *cells, *(name for name in INTERNAL if name in modules)])
    files = [name for name in known if not INTERNAL[name] and "-packages" not in name]
    for filename in files[:MOST_FILES]:
        syntax = syntax_of(filename)
        if syntax is not None:
            yield filename, syntax


# --- names


def binding(place: Place | None, name: str) -> Put | None:
    """The statement that last bound a local name before a place, or anywhere in a loop around it."""
    statement = statement_at(place) if place is not None else None
    return binding_before(place[0].co_filename, statement, name) if place is not None else None


def binding_before(filename: str, statement: ast.stmt | None, name: str) -> Put | None:
    """The same for a statement of a file."""
    scope = scope_of(filename, statement) if statement is not None else None
    if scope is None or statement is None:
        return None
    found = [
        put for put in _bindings(filename, scope, name) if put.node is not statement and not put.is_plain
    ]
    before = [put for put in found if put.node.lineno <= statement.lineno]
    return max(before or found, key=lambda put: put.node.lineno, default=None)


def statement_of(put: Put) -> ast.stmt | None:
    """The statement around what a `Put` names."""
    syntax = syntax_of(put.filename)
    return syntax.statement(put.node) if syntax is not None else None


def spine(node: ast.expr) -> Iterator[ast.expr]:
    """A value and what it is computed from first: `x[0].relu()`, `x[0].relu`, `x[0]`, `x`."""
    part: ast.expr | None = node
    while part is not None:
        yield part
        if isinstance(part, ast.Call):
            own = isinstance(part.func, ast.Attribute) and not is_module(part.func.value)
            part = part.func if own else (part.args[0] if part.args else None)
        elif isinstance(part, ast.Attribute | ast.Subscript | ast.Starred):
            part = part.value
        elif isinstance(part, ast.BinOp):
            part = part.left
        elif isinstance(part, ast.UnaryOp):
            part = part.operand
        else:
            return


def returns(call: ast.Call, running: Iterable[str]) -> list[Put]:
    """The return statements of the program's own function that a call seems to call, by its name."""
    name = last_name(call.func)
    return [
        Put(filename, part, part.value)
        for filename, syntax in own_files(running)
        for node in syntax.parents
        if isinstance(node, ast.FunctionDef) and node.name == name
        for part in walk_scope(node)
        if isinstance(part, ast.Return) and part.value is not None
    ]


def bound_names(statement: ast.stmt) -> set[str]:
    """The local names that an assignment binds."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}


def scope_of(filename: str, node: ast.AST) -> ast.AST | None:
    """The function or module around a node of a file."""
    syntax = syntax_of(filename)
    scope: ast.AST | None = node if syntax is not None else None
    while (
        syntax is not None
        and scope is not None
        and not isinstance(scope, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef)
    ):
        scope = syntax.parents.get(scope)
    return scope


def _bindings(filename: str, scope: ast.AST, name: str) -> Iterator[Put]:
    for node in walk_scope(scope):
        if (isinstance(node, ast.Assign) and any(_binds(target, name) for target in node.targets)) or (
            isinstance(node, ast.AnnAssign) and _binds(node.target, name)
        ):
            yield Put(filename, node, node.value)
        elif isinstance(node, ast.For | ast.AsyncFor) and _binds(node.target, name):
            yield Put(filename, node.iter, node.iter)
        elif isinstance(node, ast.NamedExpr) and node.target.id == name:
            yield Put(filename, node, node.value)


def _binds(target: ast.expr, name: str) -> bool:
    if isinstance(target, ast.Tuple | ast.List):
        return any(_binds(element, name) for element in target.elts)
    if isinstance(target, ast.Starred):
        return _binds(target.value, name)
    return isinstance(target, ast.Name) and target.id == name


def loop_around(syntax: Syntax, statement: ast.stmt) -> ast.For | ast.AsyncFor | ast.While | None:
    """The innermost loop around a statement, inside its own function."""
    node: ast.AST | None = syntax.parents.get(statement)
    while node is not None and not isinstance(node, (*FUNCTIONS, ast.Module)):
        if isinstance(node, ast.For | ast.AsyncFor | ast.While):
            return node
        node = syntax.parents.get(node)
    return None


def walk_scope(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function or module, without those of the functions inside it."""
    waiting = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, FUNCTIONS):
            waiting.extend(ast.iter_child_nodes(node))


# --- attributes


def attribute(owner: Any, name: str, elsewhere: Iterable[str] | None = None) -> list[Put]:
    """Where a value is put under this attribute: in its owner's class, or else anywhere in the program."""
    puts = [put for cls in type(owner).__mro__ for put in _in_class(cls, name)]
    puts = [put for put in puts if not put.is_plain]
    if elsewhere is None or puts:
        return puts
    for filename, syntax in own_files(elsewhere):
        puts = [put for put in _to_attribute(filename, syntax, name) if not put.is_plain]
        if puts:
            return puts
    return []


def attribute_of_any_name(elsewhere: Iterable[str]) -> list[Put]:
    """Where the program puts values under names that it computes: `setattr(module, name, value)`."""
    return [
        Put(filename, node, node.args[2])
        for filename, syntax in own_files(elsewhere)
        for node in syntax.parents
        if isinstance(node, ast.Call) and _named_by_a_variable(node)
    ]


def _in_class(cls: type, name: str) -> Iterator[Put]:
    for function in vars(cls).values():
        code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
        if not isinstance(function, FunctionType) or code is None or INTERNAL[code.co_filename]:
            continue
        if "-packages" in code.co_filename:
            return
        syntax = syntax_of(code.co_filename)
        definition = _class_around(syntax, code.co_firstlineno) if syntax is not None else None
        if definition is not None:
            for node in ast.walk(definition):
                yield from _put_under(code.co_filename, node, name)
            return


def _class_around(syntax: Syntax, line: int) -> ast.ClassDef | None:
    for node in syntax.parents:
        if isinstance(node, ast.ClassDef) and node.lineno <= line <= (node.end_lineno or 0):
            return node
    return None


def _to_attribute(filename: str, syntax: Syntax, name: str) -> Iterator[Put]:
    for node in syntax.parents:
        yield from _put_under(filename, node, name)


def _put_under(filename: str, node: ast.AST, name: str) -> Iterator[Put]:
    if (isinstance(node, ast.Assign) and any(_is_attribute(target, name) for target in node.targets)) or (
        isinstance(node, ast.AnnAssign) and _is_attribute(node.target, name)
    ):
        yield Put(filename, node, node.value)
    elif isinstance(node, ast.Call) and _last_call(node) in REGISTERS:
        words = [position for position, argument in enumerate(node.args) if _is_text(argument, name)]
        if words and len(node.args) > words[0] + 1:
            yield Put(filename, node, node.args[words[0] + 1])


def _named_by_a_variable(node: ast.AST) -> bool:
    """`setattr(module, name, value)`, by whatever name."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return False
    return node.func.id == "setattr" and len(node.args) == 3 and not isinstance(node.args[1], ast.Constant)


def _is_attribute(target: ast.expr, name: str) -> bool:
    if isinstance(target, ast.Tuple | ast.List):
        return any(_is_attribute(element, name) for element in target.elts)
    return isinstance(target, ast.Attribute) and target.attr == name


def _is_text(node: ast.expr, text: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == text


def _last_call(node: ast.expr) -> str:
    """The name of the outermost call: `item` of `loss.mean().item()`."""
    if isinstance(node, ast.Call):
        return ast.unparse(node.func).rpartition(".")[2]
    return ""


# --- lists and dicts


def filled(names: set[str], running: Iterable[str]) -> list[Put]:
    """Where the program puts a value that may have a graph into a list or dict of one of these names.

    The first file that does so is meant, beginning with those of the running frames.
    """
    for filename, syntax in own_files(running):
        puts = [put for node in syntax.parents for put in _fills(filename, node, names) if not put.is_plain]
        if puts:
            return puts
    return []


def _fills(filename: str, node: ast.AST, names: set[str]) -> Iterator[Put]:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in FILLS:
        if node.args and last_name(node.func.value) in names:
            yield Put(filename, node, node.args[-1])
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            if (isinstance(target, ast.Subscript) and last_name(target.value) in names) or (
                last_name(target) in names and _is_display(node.value)
            ):
                yield Put(filename, node, node.value)
    elif isinstance(node, ast.AugAssign) and last_name(node.target) in names:
        yield Put(filename, node, node.value)


def _is_display(value: ast.expr) -> bool:
    """Whether a list or dict is made with its elements on the spot."""
    if isinstance(value, ast.List | ast.Tuple | ast.Set):
        return bool(value.elts)
    if isinstance(value, ast.Call):
        return last_name(value.func) in BUILDERS and any(map(_computes, value.args))
    return _computes(value) or (isinstance(value, ast.Dict) and bool(value.keys))


def _computes(value: ast.expr) -> bool:
    """Whether a comprehension makes its elements; one that only picks them from elsewhere keeps nothing."""
    if not isinstance(value, COMPREHENSIONS):
        return False
    elements = [value.key, value.value] if isinstance(value, ast.DictComp) else [value.elt]
    return any(isinstance(part, ast.Call | ast.BinOp) for element in elements for part in ast.walk(element))


def last_name(node: ast.expr) -> str:
    """The last identifier of a path: `losses` of `self.losses`, `logs["train"]` gives `logs`."""
    while isinstance(node, ast.Subscript | ast.Call):
        if isinstance(node, ast.Call):
            if not isinstance(node.func, ast.Attribute):
                return ""
            node = node.func.value
        else:
            node = node.value
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
