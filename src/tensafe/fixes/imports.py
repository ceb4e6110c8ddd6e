"""Adds `import name` where it belongs, and refuses when the name means something else."""

from __future__ import annotations

import ast
import sys

from tensafe.fixes.edits import Edit, Refusal
from tensafe.fixes.names import bound_otherwise, within
from tensafe.fixes.source import SCOPES, Source


def ensure(module: str, node: ast.expr, source: Source) -> list[Edit]:
    """What makes `module` mean the module at this node; raises `Refusal` when the name is taken there."""
    for scope in source.parents(node):
        if not isinstance(scope, SCOPES) or (
            isinstance(scope, ast.ClassDef) and scope is not source.scope(node)
        ):
            continue
        if _is_taken(scope, module, source):
            raise Refusal(f"the name `{module}` means something else here")
        imports = _imports(scope, module, source)
        if isinstance(scope, ast.Module):
            return [] if _is_imported(imports, node, source) else [_insertion(module, source)]
        if imports:
            own = getattr(scope, "body", ())
            if not any(item in own and _stands_before(item, node, source) for item in imports):
                raise Refusal(f"`import {module}` comes later in the function")
            return []
    return []


def _is_taken(scope: ast.AST, module: str, source: Source) -> bool:
    if (scope, module) not in source.taken:
        source.taken[scope, module] = bound_otherwise(scope, module)
    return source.taken[scope, module]


def _imports(scope: ast.AST, module: str, source: Source) -> list[ast.Import]:
    if (scope, module) not in source.imported:
        source.imported[scope, module] = [
            node
            for node in within(scope)
            if isinstance(node, ast.Import) and any(a.name == module and not a.asname for a in node.names)
        ]
    return source.imported[scope, module]


def _stands_before(item: ast.Import, node: ast.expr, source: Source) -> bool:
    return source.span(item)[1] <= source.span(node)[0]


def _is_imported(imports: list[ast.Import], node: ast.expr, source: Source) -> bool:
    at_module_level = isinstance(source.scope(node), ast.Module)
    return any(
        not _only_for_types(item, source) and (not at_module_level or _stands_before(item, node, source))
        for item in imports
    )


def _only_for_types(item: ast.AST, source: Source) -> bool:
    tests = [ast.unparse(parent.test) for parent in source.parents(item) if isinstance(parent, ast.If)]
    return any("TYPE_CHECKING" in test for test in tests)


def _insertion(module: str, source: Source) -> Edit:
    """Among the first imports as isort sorts them, else after docstring and `__future__`, else on top."""
    body = source.tree.body
    head = [item for item in body[:2] if _is_docstring(item, body) or _is_future(item)]
    while len(head) < len(body) and (_is_future(body[len(head)])):
        head.append(body[len(head)])
    block = []
    for item in body[len(head) :]:
        if not isinstance(item, (ast.Import, ast.ImportFrom)):
            break
        block.append(item)
    line = f"import {module}{source.newline}"
    if block:
        earlier = next((n for n, item in enumerate(block) if _comes_after(item, module)), len(block))
        return _between(len(head) + earlier, line, source, follows=earlier == len(block))
    if head:
        return _between(len(head), f"{source.newline}{line}", source, follows=True)
    return _between(0, f"{line}{source.newline}", source, follows=False)


def _between(number: int, words: str, source: Source, follows: bool) -> Edit:
    """On a line of its own behind the first `number` statements: right after them, or before the next."""
    body = source.tree.body
    at = source.line_end(body[number - 1]) if follows else source.line_start(body[number])
    splits = number < len(body) and source.span(body[number])[0] < at
    splits = splits or (number > 0 and source.span(body[number - 1])[1] > at)
    if splits or (at and source.text[at - 1] not in "\r\n"):
        raise Refusal("there is no line of its own for the import")
    return Edit(at, at, words)


def _comes_after(item: ast.Import | ast.ImportFrom, module: str) -> bool:
    """Whether the new import stands before this one: standard library first, plain imports first, by name."""
    if isinstance(item, ast.ImportFrom):
        return True
    name = item.names[0].name
    return name.partition(".")[0] not in sys.stdlib_module_names or name > module


def _is_docstring(item: ast.stmt, body: list[ast.stmt]) -> bool:
    return (
        item is body[0]
        and isinstance(item, ast.Expr)
        and isinstance(item.value, ast.Constant)
        and isinstance(item.value.value, str)
    )


def _is_future(item: ast.stmt) -> bool:
    return isinstance(item, ast.ImportFrom) and item.module == "__future__"
