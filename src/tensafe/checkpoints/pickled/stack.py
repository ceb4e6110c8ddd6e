"""The stack and the memo of the machine, with a limit on the memory that they take."""

from __future__ import annotations

import pickletools

from tensafe.checkpoints.pickled.stream import Stream
from tensafe.checkpoints.pickled.values import Tuple, Value

MOST_NBYTES = 128 << 20  # of memory for symbols, estimated
NAMES = {ord(op.code): op.name for op in pickletools.opcodes}


class Stack:
    """Values with the places of the instructions that put them there; a mistake is a `CheckpointError`."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.memo: dict[int, Value] = {}
        self.kept_places: set[int] = set()  # of plain values that went into the memo
        self._stack: list[Value] = []
        self._places: list[int] = []
        self._marks: list[int] = []
        self._place = 0  # of the instruction that is carried out
        self._spent = 0

    def _push(self, value: Value) -> None:
        self._stack.append(value)
        self._places.append(self._place)

    def _charge(self, nbytes: int) -> None:
        self._spent += nbytes
        if self._spent > MOST_NBYTES:
            raise self.stream.fault("reading was given up: it describes too many objects", self._place)

    def _need(self, number: int) -> None:
        floor = self._marks[-1] if self._marks else 0
        have = len(self._stack) - floor
        if have < number:
            name = NAMES[self._code()]
            raise self.stream.fault(f"{name} needs {number} values, there are {have}", self._place)

    def _code(self) -> int:
        return self.stream.content.read_at(self._place, 1)[0]

    def _pop(self) -> Value:
        self._need(1)
        self._places.pop()
        return self._stack.pop()

    def _top(self) -> Value:
        self._need(1)
        return self._stack[-1]

    def _pop_mark(self) -> tuple[list[Value], list[int]]:
        if not self._marks:
            name = NAMES[self._code()]
            raise self.stream.fault(f"{name} needs a MARK, there is none", self._place)
        floor = self._marks.pop()
        items, places = self._stack[floor:], self._places[floor:]
        del self._stack[floor:], self._places[floor:]
        return items, places

    def _keep(self, index: int) -> None:
        value = self._top()
        if index < 0:
            raise self.stream.fault(f"a memo entry of a negative number, {index}", self._place)
        self._charge(80)
        self.memo[index] = value
        if value is None or isinstance(value, (int, float)):
            self.kept_places.add(self._places[-1])

    def _fetch(self, index: int) -> None:
        if index not in self.memo:
            raise self.stream.fault(f"the memo has no entry {index}", self._place)
        value = self.memo[index]
        share(value)
        self._push(value)


def share(value: Value) -> None:
    if isinstance(value, Tuple):
        value.is_shared = True
