"""Writes to tensors that a backward still needs, held until it is known that such a backward comes."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tensafe.facts import Kind, Moment, StorageId
from tensafe.facts import Value as Fact
from tensafe.static import cuts
from tensafe.static.graphs import refused_writes
from tensafe.static.past import Write, compatible, reaches
from tensafe.static.values import (
    LIKELY,
    NO,
    TENSOR,
    Choice,
    Library,
    Mapping,
    Memory,
    Optimizer,
    Path,
    Save,
    Sequence,
    Value,
)

if TYPE_CHECKING:
    from tensafe.static.machine import Machine


@dataclass(eq=False, slots=True)
class Hazard:
    """A saved tensor and the write that spoils it."""

    save: Save
    write: Moment
    label: str
    path: Path
    asked: bool = False


_FIRST = re.compile(r"(^|_)(init|initiali[sz]e|reset_parameters)(_|$)")


class Hazards:
    """The writes that would spoil a backward, if it came."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.pending: list[Hazard] = []

    def save(self, op: str, node: ast.AST, output: Memory, *kept: Memory) -> None:
        """Autograd keeps these for the backward of the operation that gave `output`."""
        machine = self.machine
        if output.grad < LIKELY or not machine.trains:
            return
        for memory in kept:
            machine.past.save(op, node, machine.frame, machine.path, output, memory)

    def write(
        self, target: Memory, op: str, node: ast.AST, added: tuple[Memory, ...] = (), counted: bool = True
    ) -> Moment:
        """`op` writes into the memory of `target`, adding the history of `added` to it."""
        machine = self.machine
        moment = machine.moment(
            Kind.WRITTEN, op, node, counted and not target.hidden and target.kind == TENSOR
        )
        through = tuple(kept for kept in target.trail if kept.kind is Kind.KEPT)
        machine.past.meant.update(kept.order for kept in through)
        refused = refused_writes.refused(machine, target, op, node, added, spelled)
        spoiled = (
            machine.past.saved(target.storages, machine.path)
            if target.exact and not target.moved and not refused and not machine.evaluates
            else []
        )
        if spoiled and not self._is_guarded(target):
            label = spelled(machine, node, target)
            self.pending += [Hazard(save, moment, label, machine.path) for save in spoiled]
        machine.past.write(target.storages, Write(moment, machine.path, through, node))
        if added and (target.hidden or not machine.grad_on):
            cuts.written_unrecorded(machine, added, moment)
        self._take_history(target, added)
        return moment

    def _is_guarded(self, target: Memory) -> bool:
        """Whether PyTorch refuses the write, or the function says that it runs before all training."""
        node = self.machine.frame.node
        if target.hidden and _FIRST.search(getattr(node, "name", "")):
            return True
        return target.leaf and not target.hidden and target.grad >= LIKELY and self.machine.grad_on

    def _take_history(self, target: Memory, added: tuple[Memory, ...]) -> None:
        if not self.machine.grad_on or target.hidden or not added:
            return
        grad = max(memory.grad for memory in added)
        memory: Memory | None = target
        while memory is not None:
            memory.grad = max(memory.grad, grad)
            memory.data = memory.data and all(one.data for one in added)
            memory.parents = (*memory.parents, *added)[-24:]
            memory.cuts = tuple(dict.fromkeys((*memory.cuts, *(cut for one in added for cut in one.cuts))))[
                :4
            ]
            memory = memory.base

    def step(self, optimizer: Optimizer, node: ast.AST) -> Moment:
        """An optimizer writes its parameters."""
        machine = self.machine
        moment = machine.moment(Kind.WRITTEN, f"{optimizer.name}.step", node, not optimizer.fused)
        spoiled = [
            save for storage in optimizer.storages for save in machine.past.saved((storage,), machine.path)
        ]
        self.pending += [Hazard(save, moment, "the parameters", machine.path) for save in spoiled]
        write = Write(moment, machine.path, (), node)
        machine.past.write((*optimizer.storages, optimizer.storage), write)
        return moment

    def used(self, value: Value, node: ast.AST | None, backward: bool) -> None:
        """`value` goes into a backward: now (`backward`), or by what the caller does with it."""
        if not self.pending:
            return
        for memory in memories(value):
            for hazard in self.pending:
                self._judge(hazard, memory, node if backward else None)
        self.pending = [hazard for hazard in self.pending if not hazard.asked]

    def _judge(self, hazard: Hazard, memory: Memory, node: ast.AST | None) -> None:
        machine = self.machine
        save = hazard.save
        if hazard.asked or save.done or memory.grad == NO or not compatible(hazard.path, machine.path):
            return
        if not reaches(memory, save.output):
            return
        hazard.asked = True
        site = save.frame.source.site(save.node, save.frame.label)
        saved = Moment(Kind.SAVED, save.op, site, save.order)
        storages = frozenset(map(StorageId, save.memory.storages))
        trail = (*(moment for moment in save.memory.trail if moment.kind is Kind.EXPORTED), saved)
        fact = Fact(storages, trail, hazard.label)
        machine.put(Kind.BACKWARD, "backward", node, machine.frame, {"saved": fact}, hazard.write)


def memories(value: Value, depth: int = 3) -> list[Memory]:
    """The tensors in a value."""
    if type(value) is Memory:
        return [value]
    if depth == 0:
        return []
    inner: list[Value] = []
    if type(value) is Sequence:
        inner = [*value.items, *([value.rest] if value.rest else [])]
    elif type(value) is Mapping:
        inner = [*value.items.values(), *([value.rest] if value.rest else [])]
    elif type(value) is Choice:
        inner = list(value.options)
    return [memory for item in inner for memory in memories(item, depth - 1)]


def spelled(machine: Machine, node: ast.AST, written: Memory) -> str:
    """How the user writes the target of a write, "" when the line does not show it."""
    target: ast.AST | None = None
    if isinstance(node, ast.AugAssign):
        target = node.target
    elif isinstance(node, ast.Call):
        target = _target_of_call(machine, node, written)
    elif isinstance(node, ast.Subscript):
        target = node.value
    text = ast.unparse(target) if target is not None else ""
    return text if len(text) <= 40 else ""


def _target_of_call(machine: Machine, node: ast.Call, written: Memory) -> ast.expr | None:
    out = next((keyword.value for keyword in node.keywords if keyword.arg == "out"), None)
    if out is not None:
        return out
    func = node.func
    if isinstance(func, ast.Attribute) and func.attr.endswith("_") and not _is_library(machine, func.value):
        return func.value
    first = node.args[0] if node.args else None
    if isinstance(first, ast.Name):
        value = machine.look_up(first.id)
        shares = type(value) is Memory and set(value.storages) & set(written.storages)
        return first if shares else None  # a layer inside may have written what came before it
    return first if isinstance(func, ast.Attribute) and _is_library(machine, func.value) else None


def _is_library(machine: Machine, node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and type(machine.look_up(node.id)) is Library
