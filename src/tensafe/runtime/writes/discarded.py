"""Lost writes: an in-place write into a temporary copy whose last reference is the call itself."""

from __future__ import annotations

import ast
import sys
from types import CodeType
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from tensafe.facts import Call, Kind, Memory, Moment, Site, Value
from tensafe.runtime.places.frames import Place, site_of
from tensafe.runtime.places.source import expressions_at, site_of_node, syntax_of
from tensafe.runtime.places.variables import Names, place_of, user_frames
from tensafe.runtime.storages.ledger import LedgerHistory, Write, ledger_of
from tensafe.runtime.storages.pictures import Drawn, memory_of
from tensafe.syntax.chains import NEVER_COPIES

if TYPE_CHECKING:
    from tensafe.runtime.engine import Ask

MAY_COPY = frozenset(
    {
        "reshape", "flatten", "contiguous", "index_select", "masked_select", "gather", "take", "ravel",
        "to", "float", "double", "half", "bfloat16", "int", "long", "bool", "type", "type_as", "cpu",
    }
)  # fmt: skip
MOST_SITES = 10_000


class Target(NamedTuple):
    """The copying expression inside a write's target, and where the whole write stands."""

    copied_by: str
    copied: Site
    written: Site
    source: ast.expr  # what the copy is made of


class Temporaries:
    """Decides once for each line whether a write to a temporary can be lost, then checks each such write."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._targets: dict[tuple[int, int], tuple[CodeType, Target | None]] = {}
        self._drawn: set[Target] = set()
        fresh = torch.empty(1)
        self._owners = torch._C._storage_Use_Count(fresh.untyped_storage()._cdata)
        self._storage_references = _storage_references(torch.empty(1))
        self._holders = _uses(torch.empty(1))
        self._base_holders, self._base_count = _base_counts(torch.empty(2)[:1])

    def written(self, tensor: torch.Tensor, write: Write, args: tuple[Any, ...], holders: int) -> None:
        """Called at a write whose target hardly anybody holds.

        `holders` counts the Python references beyond those of a temporary; `args` are the call's other
        arguments: a view of the target among them holds it, too.
        """
        if write.code is None:
            return
        key = (id(write.code), write.offset)
        known = self._targets.get(key)
        if known is None:
            if len(self._targets) >= MOST_SITES:
                return
            known = self._targets[key] = (write.code, _target((write.code, write.offset)))
        target = known[1]
        if target is not None and self._is_last_reference(tensor, args, holders):
            self._report(tensor, write, target)

    def _is_last_reference(self, tensor: torch.Tensor, args: tuple[Any, ...], references: int) -> bool:
        if _storage_references(tensor) > self._storage_references or _is_foreign(tensor):
            return False
        owners = torch._C._storage_Use_Count(tensor.untyped_storage()._cdata) - self._owners
        if tensor._is_view():
            holders, count = _base_counts(tensor)
            return (
                references == 0
                and owners == 1
                and holders <= self._base_holders
                and count <= self._base_count
            )
        own_views = sum(1 for item in args if isinstance(item, torch.Tensor) and item._base is tensor)
        return owners == own_views >= references and _uses(tensor) <= self._holders + own_views

    def _report(self, tensor: torch.Tensor, write: Write, target: Target) -> None:
        storage = ledger_of(tensor).id
        copied = Moment(Kind.COPIED, target.copied_by, target.copied, write.order - 1)
        written = Moment(Kind.WRITTEN, write.op, target.written, write.order)
        value = Value(frozenset({storage}), (copied, written))
        roles, memory = {"written": value}, self._memory(tensor, write, target)
        call = Call(Kind.DISCARDED, write.op, site_of(write.place), write.order, roles, memory=memory)
        self._ask(call, LedgerHistory({storage: written}))

    def _memory(self, tensor: torch.Tensor, write: Write, target: Target) -> tuple[Memory, ...]:
        """The copy and what it was copied from, the first time that this line is told."""
        if target in self._drawn:
            return ()
        self._drawn.add(target)
        written = Drawn(f"written by `{write.op}`, then dropped", tensor)
        frame = next((frame for frame in user_frames(4) if place_of(frame) == write.place), None)
        if frame is None:
            return memory_of(written)
        source = Names(frame).value(target.source)
        return memory_of(written, Drawn("unchanged", source, ast.unparse(target.source)))


def _storage_references(tensor: torch.Tensor) -> int:
    storage = tensor.untyped_storage()
    return sys.getrefcount(storage)


def _is_foreign(tensor: torch.Tensor) -> bool:
    """Memory that somebody else owns or can see: an array's, a file's, a buffer's."""
    return ledger_of(tensor).exported is not None or not tensor.untyped_storage().resizable()


def _uses(tensor: torch.Tensor) -> int:
    """How many references C++ counts on the tensor itself, its Python object being one."""
    count: int = tensor._use_count()  # type: ignore[attr-defined]
    return count


def _base_counts(view: torch.Tensor) -> tuple[int, int]:
    """Who holds the base of a view: C++ references (a gradient is held by its leaf), then Python ones."""
    base = view._base
    return (_uses(base), sys.getrefcount(base)) if base is not None else (0, 0)


def _target(place: Place) -> Target | None:
    syntax = syntax_of(place[0].co_filename)
    for node in expressions_at(place):
        chain = _chain(node)
        statement = syntax.statement(node) if syntax else None
        if chain is None or statement is None or not _is_dropped(node, statement):
            continue
        copying = _copying(chain)
        if copying is not None:
            copied, written = site_of_node(place, copying[1]), site_of_node(place, statement)
            return Target(copying[0], copied, written, copying[2])
    return None


def _chain(node: ast.expr) -> ast.expr | None:
    """The expression that is written to: `a[m]` in `a[m].zero_()` and in `a[m][0] = 1`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_"):
        return node.func.value
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        return node.value
    return None


def _is_dropped(node: ast.expr, statement: ast.stmt) -> bool:
    if isinstance(node, ast.Subscript):
        return isinstance(statement, ast.Assign | ast.AugAssign)
    return isinstance(statement, ast.Expr) and statement.value is node


def _copying(chain: ast.expr) -> tuple[str, ast.expr, ast.expr] | None:
    """The innermost link of the chain that can have copied, and what it copied."""
    found: tuple[str, ast.expr, ast.expr] | None = None
    node: ast.expr = chain
    while True:
        if isinstance(node, ast.Subscript):
            if not _is_basic(node.slice):
                found = ("advanced indexing", node, node.value)
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in MAY_COPY:
                found = (f"`Tensor.{node.func.attr}`", node, node.func.value)
            elif node.func.attr not in NEVER_COPIES and not node.func.attr.endswith("_"):
                return found  # what this call gives is the original: `clone()` says that it copies
            node = node.func.value
        elif isinstance(node, ast.Attribute):
            node = node.value
        else:
            return found


def _is_basic(index: ast.expr) -> bool:
    """An index whose source shows that it gives a view: slices, numbers, Ellipsis, None."""
    if isinstance(index, ast.Tuple):
        return all(_is_basic(item) for item in index.elts)
    if isinstance(index, ast.UnaryOp):
        return _is_basic(index.operand)
    return isinstance(index, ast.Slice | ast.Constant)


def temporary_counts() -> tuple[int, int]:
    """Reference counts of a temporary `self` in a method and in `__setitem__`, measured here."""
    seen: list[int] = []

    def count(self: Any, *args: Any, **kwargs: Any) -> None:
        result = None
        seen.append(sys.getrefcount(self))
        return result

    probe: Any = type("Probe", (), {"method": count, "__setitem__": count})
    probe().method()
    probe()[0] = 1
    return seen[0], seen[1]
