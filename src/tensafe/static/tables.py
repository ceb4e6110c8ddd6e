"""Who handles what: one function for each kind of node, of callee and of receiver."""

from __future__ import annotations

import ast
from typing import Any

from tensafe.static import (
    attributes,
    autograd_functions,
    calls,
    containers,
    definitions,
    expressions,
    library,
    modules,
    statements,
    subscripts,
    tensor_methods,
    training,
)
from tensafe.static.machine import EXPRESSIONS, STATEMENTS
from tensafe.static.values import (
    Choice,
    Class,
    Function,
    Instance,
    Layer,
    Library,
    Mapping,
    Memory,
    Method,
    Optimizer,
    Sequence,
    State,
)


def fill() -> None:
    """Tell the machine and the calls who handles what."""
    EXPRESSIONS.update(_EXPRESSIONS)
    STATEMENTS.update(_STATEMENTS)
    calls.CALLED.update(_CALLED)
    calls.METHODS.update(_METHODS)


_EXPRESSIONS: dict[type, Any] = {
    ast.Name: expressions.name,
    ast.Constant: expressions.constant,
    ast.Attribute: attributes.attribute,
    ast.Subscript: subscripts.subscript,
    ast.Slice: subscripts.slice_,
    ast.Call: calls.call,
    ast.Tuple: expressions.sequence,
    ast.List: expressions.sequence,
    ast.Set: expressions.sequence,
    ast.Dict: expressions.mapping,
    ast.BinOp: expressions.binary,
    ast.UnaryOp: expressions.unary,
    ast.BoolOp: expressions.boolean,
    ast.Compare: expressions.comparison,
    ast.IfExp: expressions.conditional,
    ast.ListComp: expressions.comprehension,
    ast.SetComp: expressions.comprehension,
    ast.GeneratorExp: expressions.comprehension,
    ast.DictComp: expressions.dict_comprehension,
    ast.Lambda: expressions.lambda_,
    ast.NamedExpr: expressions.walrus,
    ast.Await: expressions.inner,
    ast.Starred: expressions.inner,
    ast.YieldFrom: expressions.inner,
    ast.Yield: expressions.yields,
}

_STATEMENTS: dict[type, Any] = {
    ast.Expr: statements.expression,
    ast.Assign: statements.assign,
    ast.AnnAssign: statements.annotated,
    ast.AugAssign: statements.augmented,
    ast.Delete: statements.delete,
    ast.Return: statements.returns,
    ast.Raise: statements.raises,
    ast.Assert: statements.asserts,
    ast.Break: statements.leaves,
    ast.Continue: statements.leaves,
    ast.If: statements.branch,
    ast.For: statements.loop,
    ast.AsyncFor: statements.loop,
    ast.While: statements.while_loop,
    ast.With: statements.context,
    ast.AsyncWith: statements.context,
    ast.Try: statements.attempt,
    ast.Match: statements.match,
    ast.FunctionDef: definitions.function,
    ast.AsyncFunctionDef: definitions.function,
    ast.ClassDef: definitions.class_,
    ast.Import: definitions.imports,
    ast.ImportFrom: definitions.imports_from,
}
if hasattr(ast, "TryStar"):
    _STATEMENTS[ast.TryStar] = statements.attempt

_CALLED: dict[type, calls.Called] = {
    Library: library.called,
    Function: calls.call_function,
    Class: modules.construct,
    Instance: modules.run_instance,
    Layer: modules.run_layer,
    Method: calls.call_builtin,
    Choice: calls.call_choice,
}
_METHODS: dict[type, calls.Named] = {
    Memory: tensor_methods.call,
    Sequence: containers.call,
    Mapping: containers.call,
    State: training.call_state,
    Optimizer: training.call_optimizer,
    Layer: modules.call_method,
    Instance: modules.call_method,
    Class: autograd_functions.call_method,
}
