"""Programs that expect PyTorch to refuse, and blocks under `inference_mode`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tensafe.static.graphs import refused_writes
from tensafe.static.hazards import memories

if TYPE_CHECKING:
    from tensafe.static.machine import Machine

# A block that waits for an error, or in which nobody knows whether autograd records.
_WAITS = re.compile(r"raises|assertRaises|suppress|no_grad|inference|eval_mode")
_ANY = frozenset({"Exception", "BaseException"})
MOST_STATEMENTS = 5  # of a `try` that catches everything and may mean this error


@contextmanager
def expected(m: Machine, node: ast.Try) -> Iterator[None]:
    """Interpret the body of a `try`."""
    waits = any(_catches(handler, node.body) for handler in node.handlers)
    m.graphs.refusal_expected += waits
    try:
        yield
    finally:
        m.graphs.refusal_expected -= waits


def _catches(handler: ast.ExceptHandler, body: list[ast.stmt]) -> bool:
    names = set(_names(handler.type)) if handler.type else _ANY
    return "RuntimeError" in names or (bool(names & _ANY) and len(body) <= MOST_STATEMENTS)


@contextmanager
def around(m: Machine, node: ast.With | ast.AsyncWith, newest: int) -> Iterator[None]:
    """Interpret the body of a `with`: storages after `newest` are made in it."""
    names = [name for item in node.items for name in _names(item.context_expr)]
    waits = any(_WAITS.search(name) for name in names) and m.grad_on
    infers = "inference_mode" in names and not m.grad_on
    outer = m.graphs.inferring
    m.graphs.refusal_expected += waits
    m.graphs.inferring = outer or infers
    try:
        yield
    finally:
        m.graphs.refusal_expected -= waits
        m.graphs.inferring = outer
        if infers and not outer:
            _mark_inferred(m, node, newest)


def _names(node: ast.expr) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute):
            yield part.attr
        elif isinstance(part, ast.Name):
            yield part.id


def _mark_inferred(m: Machine, node: ast.With | ast.AsyncWith, newest: int) -> None:
    """The tensors that the block made and gave a name are inference tensors."""
    for statement in node.body:
        if not isinstance(statement, ast.Assign):
            continue
        for name in (name for one in statement.targets for name in _names(one)):
            value = m.frame.scope.get(name)
            for memory in memories(value) if value is not None else ():
                if memory.kind == "tensor" and memory.storages[0] > newest and not memory.trail:
                    refused_writes.mark(m, memory, statement.value, refused_writes.INFERENCE)
