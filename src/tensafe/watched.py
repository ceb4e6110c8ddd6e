"""`watch(x)`: who writes into this memory, told at the writing line."""

from __future__ import annotations

import ast
import sys
from collections import deque
from collections.abc import Callable, Sequence
from types import FrameType, TracebackType

from tensafe.aliases.frames import caller, names_of, variables_of
from tensafe.errors import TensafeError
from tensafe.report.places import shown_path
from tensafe.runtime.places.source import expressions_at
from tensafe.runtime.watchpoints.names import Names
from tensafe.runtime.watchpoints.points import points
from tensafe.runtime.watchpoints.region import WriteSeen
from tensafe.runtime.watchpoints.targets import step_into, targets_of

MOST_KEPT = 10_000

Callback = Callable[[WriteSeen], object]


def watch(x: object, *, on: str = "write", callback: Callback | None = None, name: str = "") -> Watch:
    """Tell every write into the memory of a tensor, array, module, optimizer, or a list or dict of them.

    Prints one line on standard error at the writing line, or calls `callback` with a `WriteSeen`: operation,
    line, and the alias it went through. Only writes that reach the watched elements count. What the callback
    raises goes to the program, at the writing line. Stays until `.remove()`, the end of a `with`, or the end
    of the memory.

    NumPy's own writes cannot be seen at their line: contents of up to 16 MiB are compared at the next torch
    write, backward, optimizer step and at the end.

    Examples:
        >>> with tensafe.watch(model.fc.weight) as writes:
        ...     train(model)
        >>> writes.seen[0].site.line
    """
    if on != "write":
        raise TensafeError(f'on={on!r}: only "write" can be watched')
    return Watch(x, name or _name_of(x), callback)


class Watch:
    """A watchpoint: `.remove()`, or the end of a `with`, ends it.

    Attributes:
        name: what is watched, as the caller's line spells it.
        seen: the latest writes, each a `WriteSeen`, at most ten thousand.
        count: how many there were.
    """

    def __init__(self, x: object, name: str, callback: Callback | None) -> None:
        self.name = name
        self.seen: deque[WriteSeen] = deque(maxlen=MOST_KEPT)
        self.count = 0
        self._callback = callback
        self._printed: dict[str, int] = {}
        targets = targets_of(x, name)
        self._regions = [points.add(own, owner, part, self._written) for own, owner, part in targets]

    def remove(self) -> None:
        """Watch no more; tells first what changed behind torch's back since the last look."""
        regions, self._regions = self._regions, []
        try:
            points.compare(regions)
        finally:
            for region in regions:
                points.remove(region)

    def __enter__(self) -> Watch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    def __repr__(self) -> str:
        return f"<watch on {self.name}: {_writes(self.count)} seen>"

    def _written(self, write: WriteSeen) -> None:
        self.count += 1
        self.seen.append(write)
        if self._callback is not None:
            self._callback(write)
            return
        line = sentence(write)
        times = self._printed[line] = self._printed.get(line, 0) + 1
        if times == 1 or (times >= 10 and set(str(times)[1:]) == {"0"} and str(times)[0] == "1"):
            print(line + (f" ({times} times)" if times > 1 else ""), file=sys.stderr, flush=True)


def _name_of(x: object) -> str:
    """How the caller's line spells it."""
    frame = caller(3)
    try:
        label = names_of([x], frame)[0]
        place = (frame.f_code, frame.f_lasti) if frame is not None else None
    finally:
        del frame
    if label != "arg0" or place is None:
        return label
    calls = (node for node in expressions_at(place) if isinstance(node, ast.Call) and node.args)
    return next((ast.unparse(call.args[0]) for call in calls), "the watched memory")


def _writes(count: int) -> str:
    return f"{count or 'no'} write{'' if count == 1 else 's'}"


def sentence(write: WriteSeen) -> str:
    """`tensafe: train.py:31: Tensor.add_ writes weight through `first`, a view of shape [2]`."""
    site = write.site
    where = f"{shown_path(site.path, '.')}:{site.line}: " if site is not None else ""
    if not write.op:
        return f"tensafe: {where}{write.name} has changed: {write.note}"
    how = "" if write.through in ("", "itself") else f" through {write.through}"
    note = f" ({write.note})" if write.note else ""
    return f"tensafe: {where}{write.op} writes {write.name}{how}{note}"


class Named:
    """The names of `tensafe run --watch`: each is watched from when it exists, its writes printed."""

    def __init__(self, names: Sequence[str]) -> None:
        self._watches: list[Watch] = []
        self._refused: dict[str, str] = {}
        self._names = Names(list(names), find, self._found)

    def start(self) -> None:
        """Look for the names from now on."""
        self._names.start()

    def stop(self, not_checked: Callable[[str, str], None]) -> None:
        """Watch no more; tell which names never appeared."""
        self._names.stop()
        for watched in self._watches:
            watched.remove()
            print(f"tensafe: {watched.name}: {_writes(watched.count)} seen", file=sys.stderr)
        for name in self._names.missing:
            why = self._refused.get(name, "no such name was found in the program while torch was at work")
            not_checked(f"--watch {name}", why)

    def abandon(self) -> None:
        """Watch no more and say nothing: this is a forked child."""
        self._names.stop()
        for watched in self._watches:
            watched.remove()

    def _found(self, name: str, value: object) -> bool:
        try:
            self._watches.append(Watch(value, name, None))
        except TensafeError as error:
            self._refused[name] = str(error)
            return False
        self._refused.pop(name, None)
        return True


def find(name: str) -> object:
    """What a dotted name means in the program's frames, innermost first, None where it means nothing.

    Items are attributes (`layers.0.weight`), and those of lists and dictionaries; no property is run.
    """
    first, *rest = name.split(".")
    frame = caller()
    try:
        while frame is not None:
            value = _variable(frame, first)
            for step in rest:
                value = step_into(value, step)
            if value is not None:
                return value
            frame = frame.f_back
    finally:
        del frame
    return None


def _variable(frame: FrameType, name: str) -> object:
    code = frame.f_code
    if name in (*code.co_varnames, *code.co_cellvars, *code.co_freevars):
        return variables_of(frame).get(name)
    return frame.f_globals.get(name)
