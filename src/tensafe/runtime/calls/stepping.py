"""Optimizer steps: one line stands for the hundreds of writes of a step, entered once at its end."""

from __future__ import annotations

import threading
import weakref
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import torch
from torch.compiler import is_compiling

from tensafe.runtime import modes
from tensafe.runtime.modes import PLAIN
from tensafe.runtime.places.frames import INTERNAL, Place
from tensafe.runtime.storages import ledger as ledgers
from tensafe.runtime.storages.ledger import RawWrite

_FOLDER = str(Path(torch.optim.__file__).parent)


class _OptimizerFiles(dict[str, bool]):
    """File name to "writes by it belong to an optimizer's step", computed once for each file."""

    def __missing__(self, filename: str) -> bool:
        beside = filename.endswith(("swa_utils.py", "lr_scheduler.py"))  # called by hooks of the program
        inside = self[filename] = filename.startswith(_FOLDER) and not beside
        return inside


OPTIMIZER_FILES = _OptimizerFiles()


class _Step(NamedTuple):
    """One step that runs: its line, when it began, whether its writes are entered at its end, and which.

    `before` has the version of each gradient by the `id` of its parameter: a hook may drop them all.
    """

    place: Place | None
    order: int
    entered_at_end: bool
    optimizer: weakref.ref[torch.optim.Optimizer]
    before: dict[int, int]


class Stepping:
    """The steps that run; while `entered_at_end`, writes made by `torch.optim` are not entered one by one."""

    __slots__ = ("_steps", "entered_at_end")

    def __init__(self) -> None:
        self._steps: dict[int, _Step] = {}  # by thread
        self.entered_at_end = False

    def begin(self, optimizer: torch.optim.Optimizer, place: Place | None, *, whole: bool) -> None:
        """A step begins; `whole` when nothing but `torch.optim` writes in it, no closure above all."""
        self.settle()
        order, own = next(ledgers.clock), weakref.ref(optimizer)
        entered_at_end = whole and place is not None and _is_torchs(optimizer) and not modes.asked()
        before = _versions(optimizer) if entered_at_end else {}
        self._steps[threading.get_ident()] = _Step(
            place if whole else None, order, entered_at_end, own, before
        )
        self._decide()

    def settle(self) -> None:
        """The step of this thread is over, also where it or a hook of the program raised."""
        if not self._steps:
            return
        step = self._steps.pop(threading.get_ident(), None)
        self._decide()
        optimizer = step.optimizer() if step is not None and step.entered_at_end else None
        if step is not None and optimizer is not None:
            _enter(step, optimizer)

    def place_of(self, frame: FrameType | None) -> tuple[CodeType | None, int]:
        """The user's line above an internal frame."""
        if self._steps and frame is not None and OPTIMIZER_FILES[frame.f_code.co_filename]:
            step = self._steps.get(threading.get_ident())
            if step is not None and step.place is not None:
                return step.place
        while frame is not None and INTERNAL[frame.f_code.co_filename]:
            frame = frame.f_back
        return (None, 0) if frame is None else (frame.f_code, frame.f_lasti)

    def _decide(self) -> None:
        """A step of another thread would be taken for this one, so two at once are entered write by write."""
        steps = self._steps
        self.entered_at_end = len(steps) == 1 and next(iter(steps.values())).entered_at_end


def _is_torchs(optimizer: torch.optim.Optimizer) -> bool:
    return type(optimizer).__module__.startswith("torch.optim") and not is_compiling()


def _versions(optimizer: torch.optim.Optimizer) -> dict[int, int]:
    return {
        id(parameter): gradient._version
        for group in optimizer.param_groups
        for parameter in group["params"]
        if type(parameter) in PLAIN and _is_counted(gradient := parameter.grad)
    }


def _is_counted(gradient: Any) -> bool:
    """Whether this is a tensor whose version can be asked for without running code of the program."""
    return type(gradient) in PLAIN and not gradient.is_inference()


def _written(optimizer: torch.optim.Optimizer, before: dict[int, int]) -> list[Any]:
    """What a step writes: the parameters that had a gradient, what the state keeps for them, gradients."""
    written: list[Any] = []
    state = optimizer.state
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            version = before.get(id(parameter))
            if version is not None:
                written.append(parameter)
                kept = state.get(parameter)
                if kept:
                    written += kept.values()
                gradient = parameter.grad
                if _is_counted(gradient) and gradient._version > version:
                    written.append(gradient)
    return written


def _enter(step: _Step, optimizer: torch.optim.Optimizer) -> None:
    """Enter the step's writes into the storages that somebody has looked at: the others tell nothing."""
    label, key, order, plain = f"{type(optimizer).__name__}.step", ledgers._KEY, step.order, PLAIN
    code, offset = step.place or (None, 0)
    for tensor in _written(optimizer, step.before):
        if type(tensor) in plain and tensor.layout is torch.strided:
            ledger = tensor.untyped_storage().__dict__.get(key)
            if ledger is not None:
                raw: RawWrite = (label, code, offset, order, id(tensor))
                if ledger.raw is None or ledger.raw[3] < order:  # else a hook of the program wrote since
                    ledger.raw = raw
                if ledger.first is None:
                    ledger.first = raw
                if ledger.watch is not None:
                    ledger.watch(tensor, raw)
