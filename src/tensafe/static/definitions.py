"""Definitions and imports: what they bind."""

from __future__ import annotations

import ast

from tensafe.static.machine import Machine
from tensafe.static.source import Source
from tensafe.static.values import NOTHING_KNOWN, Class, Constant, Frame, Function, Library, Scope

_KINDS = {
    "torch.autograd.Function": "function",
    "torch.autograd.function.Function": "function",
    "torch.autograd.function.InplaceFunction": "function",
    "torch.optim.Optimizer": "optimizer",
    "torch.optim.optimizer.Optimizer": "optimizer",
    "torch.utils.data.Dataset": "dataset",
}
_MODULE_ENDINGS = ("Module", "LightningModule", "PreTrainedModel", "ModuleList", "Sequential")


def function(m: Machine, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    closure = (m.frame.scope, *m.frame.closure)
    m.bind(m.frame.scope, node.name, Function(node, m.frame.source, closure))


def class_(m: Machine, node: ast.ClassDef) -> None:
    if isinstance(m.frame.scope.get(node.name), Class) and not m.frame.label:
        return
    cls = make_class(m, node, m.frame.source)
    cls.scope = m.frame.scope
    m.bind(m.frame.scope, node.name, cls)


def make_class(m: Machine, node: ast.ClassDef, source: Source) -> Class:
    """A class with its methods; its bases are looked up where it stands."""
    # the result of a call is no class that could be looked into, and nobody has begun to count statements
    bases = [NOTHING_KNOWN if isinstance(base, ast.Call) else m.eval(base) for base in node.bases]
    cls = Class(node, source, bases)
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            cls.methods[statement.name] = statement
        elif isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    cls.attributes[target.id] = Constant(statement.value.value)
    cls.kind = _kind(cls)
    return cls


def _kind(cls: Class) -> str:
    for base in cls.bases:
        if type(base) is Class and base.kind:
            return base.kind
        if type(base) is Library:
            kind = _kind_of_library(base.path)
            if kind:
                return kind
    return "module" if "forward" in cls.methods and cls.bases else ""


def _kind_of_library(path: str) -> str:
    if path in _KINDS:
        return _KINDS[path]
    if path.startswith("torch.nn.") or path.endswith(_MODULE_ENDINGS):
        return "module"
    if path.endswith("Optimizer"):
        return "optimizer"
    return "dataset" if path.endswith("Dataset") else ""


def library_base(cls: Class) -> str:
    """The library class that a project class descends from, "" when there is none."""
    for base in cls.bases:
        if type(base) is Library:
            return base.path
        if type(base) is Class:
            path = library_base(base)
            if path:
                return path
    return ""


def find_method(cls: Class, name: str) -> tuple[Class, ast.FunctionDef | ast.AsyncFunctionDef] | None:
    """The method of this name, and the class of the project that has it."""
    if name in cls.methods:
        return cls, cls.methods[name]
    for base in cls.bases:
        found = find_method(base, name) if type(base) is Class and base is not cls else None
        if found:
            return found
    return None


def imports(m: Machine, node: ast.Import) -> None:
    for alias in node.names:
        if alias.asname:
            m.bind(m.frame.scope, alias.asname, Library(alias.name, m.frame.source))
        else:
            top = alias.name.partition(".")[0]
            m.bind(m.frame.scope, top, Library(top, m.frame.source))


def imports_from(m: Machine, node: ast.ImportFrom) -> None:
    module = node.module or ""
    for alias in node.names:
        path = f"{module}.{alias.name}" if module else alias.name
        m.bind(m.frame.scope, alias.asname or alias.name, Library(path, m.frame.source, node.level))


def scope_of(m: Machine, source: Source) -> Scope:
    """The definitions and imports at the top of a file, without running it."""
    known = m.project.scopes.get(source.path)
    if known is not None:
        return known
    scope: Scope = {}
    m.project.scopes[source.path] = scope
    outer, m.frame = m.frame, Frame(source, scope, (), "")
    try:
        declare(m, source.tree.body)
    finally:
        m.frame = outer
    return scope


def declare(m: Machine, body: list[ast.stmt]) -> None:
    """Bind what these statements define, looking into `if` and `try`."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            function(m, statement)
        elif isinstance(statement, ast.ClassDef):
            class_(m, statement)
        elif isinstance(statement, ast.Import):
            imports(m, statement)
        elif isinstance(statement, ast.ImportFrom):
            imports_from(m, statement)
        elif isinstance(statement, ast.If | ast.Try):
            declare(m, statement.body)
        elif isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    m.bind(m.frame.scope, target.id, Constant(statement.value.value))
