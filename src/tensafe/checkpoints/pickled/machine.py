"""Runs a pickle's instructions on symbols: tells what loading would build, imports and calls nothing."""

from __future__ import annotations

import time
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections import Counter
from collections.abc import Callable

from tensafe.checkpoints.pickled.literals import LITERALS
from tensafe.checkpoints.pickled.stack import NAMES, Stack, share
from tensafe.checkpoints.pickled.stream import Stream
from tensafe.checkpoints.pickled.values import Absent, Dict, Global, List, Made, Payload, Stored, Tuple, Value

MOST_OPCODES = 20_000_000
MOST_WAITING = 1_000_000  # values on the stack
MOST_SECONDS = 120.0
KEPT_NUMBERS = 4096  # of a list of plain values


OWN_NAMES = {"POP": "_drop", "POP_MARK": "_drop_mark"}


class Machine(Stack):
    """One pickle of a stream; `run()` gives its value and leaves the stream behind its STOP."""

    def __init__(self, stream: Stream) -> None:
        super().__init__(stream)
        self.protocol = 0
        self.made: list[Made] = []  # every call that loading would make
        self.stored: list[Stored] = []
        self.strays: list[Value] = []  # what is put into a value that takes nothing
        self.globals: dict[tuple[str, str], Global] = {}
        self.counts: Counter[tuple[str, str]] = Counter()
        self.calls_no_name = False
        self.dynamic: list[int] = []  # places of imports whose name is computed
        self.opcodes: set[str] = set()
        self.frames: list[int] = []  # places of FRAME
        self._result: Value = None
        self._running = True

    def run(self) -> Value:
        """The value of the pickle, as symbols; raises `CheckpointError` at the first wrong instruction."""
        steps = {code: self._step(name) for code, name in NAMES.items()}
        seen: set[int] = set()
        stream, deadline = self.stream, time.monotonic() + MOST_SECONDS
        for count in range(MOST_OPCODES):
            self._place = stream.position
            code = stream.byte()
            step = steps.get(code)
            if step is None:
                raise stream.fault(f"no pickle instruction is numbered 0x{code:02x}", self._place)
            seen.add(code)
            step()
            if not self._running:
                self.opcodes |= {NAMES[code] for code in seen}
                self.memo.clear()
                return self._result
            if not count & 0xFFFF:
                self._check_limits(deadline)
        raise stream.fault(f"reading was given up after {MOST_OPCODES:,} instructions")

    def _check_limits(self, deadline: float) -> None:
        if time.monotonic() > deadline:
            raise self.stream.fault(f"reading was given up after {MOST_SECONDS:.0f} seconds")
        if len(self._stack) + len(self._marks) > MOST_WAITING:
            raise self.stream.fault(
                f"reading was given up: more than {MOST_WAITING:,} values wait on the stack"
            )

    def _step(self, name: str) -> Callable[[], None]:
        read = LITERALS.get(name)
        if read is None:
            own: Callable[[], None] = getattr(self, OWN_NAMES.get(name, f"_{name.lower()}"))
            return own
        known, stream = read, self.stream

        def literal() -> None:
            value = known(stream)
            if isinstance(value, (str, Payload)):
                self._charge(_nbytes_of(value))
            self._push(value)

        return literal

    # the stack and the memo

    def _mark(self) -> None:
        self._charge(8)
        self._marks.append(len(self._stack))

    def _drop(self) -> None:
        """POP takes a value, or the mark when there is none above it."""
        if self._marks and len(self._stack) == self._marks[-1]:
            self._marks.pop()
        else:
            self._pop()

    def _drop_mark(self) -> None:
        self._pop_mark()

    def _dup(self) -> None:
        value = self._top()
        share(value)
        self._push(value)

    def _index(self) -> int:
        value = LITERALS["INT"](self.stream)
        return value if isinstance(value, int) else -1

    def _put(self) -> None:
        self._keep(self._index())

    def _binput(self) -> None:
        self._keep(self.stream.byte())

    def _long_binput(self) -> None:
        self._keep(int.from_bytes(self.stream.read(4), "little"))

    def _memoize(self) -> None:
        self._keep(len(self.memo))

    def _get(self) -> None:
        self._fetch(self._index())

    def _binget(self) -> None:
        self._fetch(self.stream.byte())

    def _long_binget(self) -> None:
        self._fetch(int.from_bytes(self.stream.read(4), "little"))

    # containers

    def _new(self, value: Value, nbytes: int) -> None:
        self._charge(nbytes)
        self._push(value)

    def _collect(self, count: int) -> None:
        """The top values as a tuple."""
        self._need(count)
        items, places = self._stack[-count:], self._places[-count:]
        del self._stack[-count:], self._places[-count:]
        self._new(Tuple(items, places), 160 + 48 * count)

    def _empty_tuple(self) -> None:
        self._new(Tuple([], []), 160)

    def _tuple1(self) -> None:
        self._collect(1)

    def _tuple2(self) -> None:
        self._collect(2)

    def _tuple3(self) -> None:
        self._collect(3)

    def _tuple(self) -> None:
        items, places = self._pop_mark()
        self._new(Tuple(items, places), 160 + 48 * len(items))

    def _empty_list(self) -> None:
        self._new(List([]), 110)

    _empty_set = _empty_list

    def _list(self) -> None:
        items, _ = self._pop_mark()
        self._new(List(items), 110 + 40 * len(items))

    _frozenset = _list

    def _empty_dict(self) -> None:
        self._new(Dict([]), 110)

    def _dict(self) -> None:
        items, _ = self._pop_mark()
        self._new(Dict(self._paired(items)), 110 + 40 * len(items))

    def _paired(self, items: list[Value]) -> list[Value]:
        if len(items) % 2:
            raise self.stream.fault("a dict with a key that has no value", self._place)
        return items

    def _append(self) -> None:
        self._extend([self._pop()])

    def _appends(self) -> None:
        self._extend(self._pop_mark()[0])

    _additems = _appends

    def _extend(self, items: list[Value]) -> None:
        target = self._top()
        if isinstance(target, Made):
            target.items = target.items or List([])
            target = target.items
        if isinstance(target, List):
            self._keep_items(target, items)
        else:
            self.strays += items

    def _keep_items(self, target: List | Dict, items: list[Value]) -> None:
        if len(target.items) > KEPT_NUMBERS and all(_is_plain(item) for item in items):
            target.left_out += len(items)
            self._spent -= sum(_nbytes_of(item) for item in items)
        else:
            self._charge(40 * len(items))
            target.items += items

    def _setitem(self) -> None:
        value = self._pop()
        self._update([self._pop(), value])

    def _setitems(self) -> None:
        self._update(self._paired(self._pop_mark()[0]))

    def _update(self, items: list[Value]) -> None:
        target = self._top()
        if isinstance(target, Made):
            target.entries = target.entries or Dict([])
            target = target.entries
        if isinstance(target, Dict):
            self._keep_items(target, items)
        else:
            self.strays += items

    # names, calls, states

    def _import(self, module: str, name: str) -> Global:
        if self.protocol < 3:
            module, name = NAME_MAPPING.get((module, name), (IMPORT_MAPPING.get(module, module), name))
        key = module, name
        if key not in self.globals:
            self._charge(700)
            self.globals[key] = Global(module, name)
        self.counts[key] += 1
        return self.globals[key]

    def _global(self) -> None:
        self._push(self._import(self._word(), self._word()))

    def _word(self) -> str:
        return self.stream.line().decode("utf-8", "backslashreplace")

    def _stack_global(self) -> None:
        name, module = self._pop(), self._pop()
        if isinstance(name, str) and isinstance(module, str):
            self._push(self._import(module, name))
            return
        self._charge(120)
        self.dynamic.append(self._place)
        self.strays += [name, module]
        self._push(Absent("an import of a computed name"))

    def _make(self, function: Value, arguments: Value, keywords: Value = None) -> None:
        made = Made(function, arguments, self._place, keywords)
        self.calls_no_name |= not isinstance(function, Global)
        self._charge(140)
        self.made.append(made)
        self._push(made)

    def _reduce(self) -> None:
        arguments = self._pop()
        self._make(self._pop(), arguments)

    _newobj = _reduce

    def _newobj_ex(self) -> None:
        keywords, arguments = self._pop(), self._pop()
        self._make(self._pop(), arguments, keywords)

    def _inst(self) -> None:
        function = self._import(self._word(), self._word())
        self._make(function, Tuple(*self._pop_mark()))

    def _obj(self) -> None:
        items, places = self._pop_mark()
        if not items:
            raise self.stream.fault("OBJ needs a class above the MARK", self._place)
        self._make(items[0], Tuple(items[1:], places[1:]))

    def _build(self) -> None:
        state = self._pop()
        target = self._top()
        self._charge(60)
        if isinstance(target, Made):
            target.states += (state,)
        else:
            self.strays.append(state)

    def _persid(self) -> None:
        self._store(self._word())

    def _binpersid(self) -> None:
        self._store(self._pop())

    def _store(self, identity: Value) -> None:
        stored = Stored(identity, self._place)
        self._charge(100)
        self.stored.append(stored)
        self._push(stored)

    # the rest

    def _proto(self) -> None:
        self.protocol = self.stream.byte()
        if self.protocol > 5:
            raise self.stream.fault(f"pickle protocol {self.protocol}, the newest is 5", self._place)

    def _stop(self) -> None:
        self._result = self._pop()
        self._running = False

    def _frame(self) -> None:
        self._charge(48)
        self.frames.append(self._place)
        length = int.from_bytes(self.stream.read(8), "little")
        if length > self.stream.left:
            raise self.stream.fault(
                f"a frame of {length:,} bytes, {self.stream.left:,} are left", self._place
            )

    def _extend_by_code(self) -> None:
        size = {0x82: 1, 0x83: 2, 0x84: 4}[self._code()]
        code = int.from_bytes(self.stream.read(size), "little")
        self._push(self._import("copyreg", f"extension {code}"))

    _ext1 = _ext2 = _ext4 = _extend_by_code

    def _next_buffer(self) -> None:
        self._push(Absent("an out-of-band buffer"))

    def _readonly_buffer(self) -> None:
        self._top()


def _is_plain(value: Value) -> bool:
    return value is None or isinstance(value, (int, float, str, Payload))


def _nbytes_of(value: Value) -> int:
    if isinstance(value, str):
        return 76 + len(value)
    return 240 if isinstance(value, Payload) else 0
