"""A pickle read as symbols: its tensors, the names it would import, whether `weights_only` takes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from tensafe.checkpoints.content import Content
from tensafe.checkpoints.error import CheckpointError
from tensafe.checkpoints.pickled.globals import FoundGlobal, judge
from tensafe.checkpoints.pickled.machine import Machine
from tensafe.checkpoints.pickled.stream import Stream
from tensafe.checkpoints.pickled.values import Value

WEIGHTS_ONLY_OPCODES = frozenset(
    [
        "GLOBAL",
        "NEWOBJ",
        "REDUCE",
        "BUILD",
        "APPEND",
        "APPENDS",
        "SETITEM",
        "SETITEMS",
        "MARK",
        "TUPLE",
        "TUPLE1",
        "TUPLE2",
        "TUPLE3",
        "NONE",
        "NEWFALSE",
        "NEWTRUE",
        "EMPTY_TUPLE",
        "EMPTY_LIST",
        "EMPTY_DICT",
        "EMPTY_SET",
        "BININT",
        "BININT1",
        "BININT2",
        "BINFLOAT",
        "BINUNICODE",
        "SHORT_BINSTRING",
        "BINPERSID",
        "BINGET",
        "LONG_BINGET",
        "BINPUT",
        "LONG_BINPUT",
        "LONG1",
        "PROTO",
        "STOP",
    ]
)
"""The instructions that torch's weights-only reader knows."""


@dataclass
class Pickle:
    """One pickle of a file, run on symbols."""

    content: Content
    start: int
    stop: int
    machine: Machine
    result: Value
    globals: tuple[FoundGlobal, ...] = field(default_factory=tuple)

    def forget(self) -> None:
        """Drop the symbols, keep what they say of imports."""
        machine = self.machine
        self.result = None
        for values in (machine.made, machine.stored, machine.strays):
            values.clear()

    @property
    def refusals(self) -> Iterator[str]:
        """Why the weights-only reader would refuse it."""
        unknown = sorted(self.machine.opcodes - WEIGHTS_ONLY_OPCODES)
        if unknown:
            yield f"it uses the instruction {unknown[0]}"
        for found in self.globals:
            if not found.weights_only:
                yield f"it imports {found.name}"
        if self.machine.calls_no_name:
            yield "it calls something else than an imported name"
        if self.machine.strays:
            yield "it puts values into an object that takes none"


def read_pickle(content: Content, start: int = 0) -> Pickle:
    """Run the pickle at this byte; raises `CheckpointError`."""
    stream = Stream(content, start)
    machine = Machine(stream)
    try:
        result = machine.run()
    except CheckpointError as error:
        raise _with_dangers(error, _judged(machine)) from None
    return Pickle(content, start, stream.position, machine, result, tuple(_judged(machine)))


def _judged(machine: Machine) -> list[FoundGlobal]:
    calls = Counter(made.name for made in machine.made)
    found = [
        judge(module, name, max(count, calls[f"{module}.{name}"]))
        for (module, name), count in machine.counts.items()
    ]
    if machine.dynamic:
        words = "imports a name that is computed while it loads"
        found.append(FoundGlobal("(a computed name)", len(machine.dynamic), "dangerous", words, False))
    return found


def _with_dangers(error: CheckpointError, found: list[FoundGlobal]) -> CheckpointError:
    """A loader runs what stands before the damage."""
    for item in found:
        if item.verdict == "dangerous":
            return CheckpointError(f"{error}; before that it imports {item.name}, which {item.meaning}")
    return error
