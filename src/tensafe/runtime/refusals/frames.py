"""The frames of a raised exception: where the program stood, and what its names held there."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any, NamedTuple

import torch

from tensafe.facts import Site
from tensafe.runtime.places.frames import _TENSAFE, INTERNAL, Place, _line, _positions
from tensafe.runtime.places.names import named_tensors
from tensafe.runtime.places.source import expressions_at, syntax_of

MOST_FRAMES = 2_000
ABSENT: Any = object()
FROM_WORKER = "Original Traceback (most recent call last)"
ENTRY = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')


class Step(NamedTuple):
    """One frame on the way to the exception."""

    frame: FrameType
    offset: int

    @property
    def place(self) -> Place:
        return self.frame.f_code, self.offset

    @property
    def filename(self) -> str:
        return self.frame.f_code.co_filename


class Trace:
    """All frames of an exception, outermost first.

    Only when the program is `over` are the variables of its frames looked at: a look at a frame that still
    runs would keep alive what it holds. Before, what is `known` of the wrapped call must do.
    """

    def __init__(self, error: BaseException, known: Mapping[str, Any] | None = None) -> None:
        self.over = known is None
        self._known = known or {}
        steps: list[Step] = []
        traceback = error.__traceback__
        frame = traceback.tb_frame.f_back if traceback is not None else None
        while frame is not None and len(steps) < MOST_FRAMES:
            steps.append(Step(frame, frame.f_lasti))
            frame = frame.f_back
        self._outside = len(steps)
        steps.reverse()
        while traceback is not None:
            steps.append(Step(traceback.tb_frame, traceback.tb_lasti))
            traceback = traceback.tb_next
        self.steps = steps

    @property
    def files(self) -> list[str]:
        """The files of all frames, innermost first."""
        return list(dict.fromkeys(step.filename for step in reversed(self.steps)))

    @property
    def passed(self) -> list[Step]:
        """The frames that the exception has left."""
        return self.steps[self._outside :]

    def step(self, *, own: bool = False) -> Step | None:
        """The innermost frame of the program; `own` prefers its own files to installed packages."""
        users = [step for step in reversed(self.steps) if not INTERNAL[step.filename]]
        if own:
            users = [step for step in users if "-packages" not in step.filename] or users
        return users[0] if users else None

    def place(self, *, own: bool = False) -> Place | None:
        step = self.step(own=own)
        return step.place if step is not None else None

    def wrapper(self) -> Mapping[str, Any]:
        """The variables of the innermost wrapper of ours that the exception went through."""
        if not self.over:
            return self._known
        for step in reversed(self.passed):
            if step.filename.startswith(_TENSAFE):
                return step.frame.f_locals
        return {}

    def variables(self, step: Step) -> Mapping[str, Any]:
        """The local variables of a frame that the exception has left."""
        return step.frame.f_locals if self.over and step in self.passed else {}

    def owner(self, step: Step) -> Any:
        """The `self` of a frame."""
        return self.variables(step).get("self")

    def torch_steps(self, filename: str, function: str) -> Iterator[Step]:
        """The frames that ran this function of the library, outermost first."""
        for step in self.passed:
            code = step.frame.f_code
            if code.co_name == function and code.co_filename.replace("\\", "/").endswith(filename):
                yield step

    def value(self, node: ast.expr, step: Step) -> Any:
        """What an expression of names, attributes, constant indices holds; `ABSENT` when it needs a call."""
        if isinstance(node, ast.Name):
            return self.variables(step).get(node.id, step.frame.f_globals.get(node.id, ABSENT))
        if isinstance(node, ast.Attribute):
            return _attribute(self.value(node.value, step), node.attr)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            holder = self.value(node.value, step)
            if type(holder) in (list, tuple, dict):
                try:
                    return holder[node.slice.value]
                except (LookupError, TypeError):
                    return ABSENT
        return ABSENT


def _attribute(owner: Any, name: str) -> Any:
    """An attribute as it is stored: no code of the program runs."""
    if owner is ABSENT:
        return ABSENT
    if isinstance(owner, torch.Tensor):
        gradient: Any = torch._C.TensorBase.grad
        return gradient.__get__(owner) if name == "grad" else ABSENT
    own = getattr(owner, "__dict__", {}) if not isinstance(owner, type(sys)) else vars(owner)
    if name in own:
        return own[name]
    for table in ("_parameters", "_buffers", "_modules"):
        if isinstance(owner, torch.nn.Module) and name in own.get(table, {}):
            return own[table][name]
    return ABSENT


def tensors_named(trace: Trace, step: Step, node: ast.AST) -> list[tuple[str, torch.Tensor]]:
    """The tensors that the names in an expression hold, with their spelling."""
    found: list[tuple[str, torch.Tensor]] = []
    for part in ast.walk(node):
        if isinstance(part, ast.Name | ast.Attribute):
            value = trace.value(part, step)
            if isinstance(value, torch.Tensor):
                found.append((ast.unparse(part), value))
    return found


def written(place: Place | None) -> ast.expr | None:
    """The expression that the statement or call at a place writes to, or takes first."""
    if place is None:
        return None
    whole_line = _positions(*place)[2] is None  # Python 3.10
    nodes = [] if whole_line and isinstance(statement_at(place), ast.AugAssign) else expressions_at(place)
    for node in nodes:
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and not is_module(node.func.value):
                writes = node.func.attr.endswith("_") or node.func.attr.startswith("__")
                return node.func.value if writes or not node.args else node.args[0]
            return node.args[0] if node.args else None
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            return node.value
    statement = statement_at(place)
    if isinstance(statement, ast.AugAssign):
        return statement.target
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        return statement.targets[0].value
    return None


TARGETS = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.BinOp)
MODULES = ("torch", "Tensor", "F", "nn", "np", "numpy", "functional", "th", "init", "copy", "onp")


def is_module(node: ast.expr) -> bool:
    """Whether an expression is spelled as a module, by its customary names."""
    return isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node).rpartition(".")[2] in MODULES


def statement_at(place: Place) -> ast.stmt | None:
    """The statement that runs at a place."""
    syntax = syntax_of(place[0].co_filename)
    if syntax is None:
        return None
    nodes = expressions_at(place)
    if nodes:
        return syntax.statement(nodes[0])
    line = _positions(*place)[0]
    return next(iter(syntax.statements.get(line or 0, ())), None)


def spelled(node: ast.expr | None) -> str:
    """The source of an expression, when it is short enough to be read inside a sentence."""
    text = ast.unparse(node) if isinstance(node, TARGETS) else ""
    return text if len(text) <= 48 and "\n" not in text else ""


def parameter_name(module: Any, tensor: torch.Tensor) -> str:
    """The dotted name of a tensor inside a module."""
    if isinstance(module, torch.nn.Module):
        for name, item in named_tensors(module):
            if item is tensor:
                return name
    return ""


def site_in_worker(text: str) -> Site | None:
    """The program's line in a traceback that a worker process sent home as text (`DataLoader`)."""
    for path, number, function in reversed(ENTRY.findall(text) if FROM_WORKER in text else []):
        if not INTERNAL[path] and "-packages" not in path:
            line = _line(path, int(number))
            first, last = len(line) - len(line.lstrip()) + 1, len(line.rstrip()) + 1
            return Site(
                path, int(number), first, int(number), last, "" if function == "<module>" else function
            )
    return None
