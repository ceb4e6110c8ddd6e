"""What restoring will write: the snapshot's nodes beside those of the objects as they are now."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any

from tensafe.copies.snapshots.looking import Look
from tensafe.copies.snapshots.nodes import OURS, Array, Held, Node, Opaque, Plain, Stream, step
from tensafe.copies.snapshots.randomness import rewind
from tensafe.copies.snapshots.values import UNKNOWN, Values, retupled
from tensafe.errors import TensafeError

_GONE: Node = Opaque(UNKNOWN)
_BULK = ("dict", "list", "tuple", "parameters", "buffers")


class ChangedError(TensafeError):
    """The objects are no longer made as they were at the snapshot."""


class Matching:
    """Compares, and collects what to do; nothing is written here.

    Attributes:
        pairs: the snapshot's number and the live number of each tensor to write.
        puts: writes of plain values, into containers and objects; each may be done twice.
        flags: the same for attributes of modules, `training` among them.
        foreign: objects that load their state themselves, and the state.
        outer: tensors whose parts are written.
    """

    def __init__(self, values: Values, now: Look, shape_of: Callable[[int], tuple[Any, Any]]) -> None:
        self.pairs: dict[tuple[int, int], None] = {}
        self.puts: list[Callable[[], Any]] = []
        self.flags: list[Callable[[], Any]] = []
        self.foreign: list[tuple[Any, Any]] = []
        self.outer: list[Any] = []
        self.values = values
        self.now = now
        self._shape_of = shape_of
        self._done: set[tuple[int, int]] = set()

    def match(self, old: Node, new: Node, path: str) -> Any:
        """What must stand in this place: the object that stands there now wherever it can stay."""
        if type(old) is int:
            return self._tensor(old, new, path)
        if isinstance(old, Plain):
            same = isinstance(new, Plain) and type(new.value) is type(old.value) and new.value == old.value
            return self.object_of(new) if same else old.value
        if isinstance(old, Opaque):
            return self.object_of(new) if old.ref is UNKNOWN else old.ref
        if isinstance(old, Array):
            return self._array(old, new, path)
        if isinstance(old, Stream):
            return self._stream(old, new, path)
        assert isinstance(old, Held)
        if not isinstance(new, Held) or new.kind != old.kind:
            return self._replaced(old, new, path)
        if (id(old), id(new)) not in self._done:
            self._done.add((id(old), id(new)))
            if old.kind in _BULK and self.all_tensors(old, new):
                return new.live
            return _MATCHERS[old.kind](self, old, new, path)
        return new.live

    def object_of(self, node: Node) -> Any:
        """The live object of a node."""
        if type(node) is int:
            return self.now.tensors[node]
        if isinstance(node, Plain):
            return node.value
        return node.ref if isinstance(node, Opaque) else node.live  # type: ignore[union-attr]

    def all_tensors(self, old: Held, new: Held) -> bool:
        """Whether both hold tensors alone, of the same shapes under the same keys; then they are noted."""
        if len(old.keys) != len(new.keys) or not (old.only_tensors() and new.only_tensors()):
            return False
        if not all(
            a is b or (type(a) is type(b) and a == b) for a, b in zip(old.keys, new.keys, strict=True)
        ):
            return False
        tensors, pairs = self.now.tensors, list(zip(old.children, new.children, strict=True))
        for number, other in pairs:
            dtype, shape = self._shape_of(number)  # type: ignore[arg-type]
            live = tensors[other]  # type: ignore[index]
            if live.shape != shape or live.dtype != dtype:
                return False
        self.pairs.update(dict.fromkeys(pairs))  # type: ignore[arg-type]
        return True

    def each(self, old: Held, new: Held, path: str) -> list[tuple[Any, Node, Node, Any]]:
        """Key, both nodes and what must stand there, for every key of the snapshot."""
        inside = dict(zip(new.keys, new.children, strict=True))
        found = []
        for key, child in zip(old.keys, old.children, strict=True):
            other = inside.get(key, _GONE)
            here = path + step(old, key)
            gone = other is _GONE
            leave = isinstance(child, Opaque) and child.ref is UNKNOWN
            if not (gone and leave):
                wanted = self.values.of(child, here) if gone else self.match(child, other, here)
                found.append((key, child, other, wanted))
        return found

    def stays(self, other: Node, wanted: Any) -> bool:
        """Whether what must stand there stands there."""
        return other is not _GONE and self.object_of(other) is wanted

    def _replaced(self, old: Held, new: Node, path: str) -> Any:
        if old.kind in OURS or old.kind == "foreign":
            kind = old.detail if old.kind in ("attributes", "foreign") else old.kind
            raise ChangedError(f"{path} was {_a(kind)} at the snapshot and is {_a(_kind_of(self, new))} now")
        return self.values.of(old, path)

    def _tensor(self, number: int, new: Node, path: str) -> Any:
        if type(new) is not int:
            return self.values.tensor(number)
        live = self.now.tensors[new]
        dtype, shape = self._shape_of(number)
        if live.shape != shape or live.dtype != dtype:
            was, now = _described(dtype, shape), _described(live.dtype, live.shape)
            raise ChangedError(f"{path} was {was} at the snapshot and is {now} now: nothing was restored")
        self.pairs[number, new] = None
        return live

    def _array(self, old: Array, new: Node, path: str) -> Any:
        if not isinstance(new, Array):
            return self.values.of(old, path)
        if new.live.shape != old.saved.shape or new.live.dtype != old.saved.dtype:
            was, now = (
                _described(old.saved.dtype, old.saved.shape),
                _described(new.live.dtype, new.live.shape),
            )
            raise ChangedError(f"{path} was {was} at the snapshot and is {now} now: nothing was restored")
        if new.live.tobytes() != old.saved.tobytes():
            if not new.live.flags.writeable:
                raise ChangedError(f"{path} has changed and is read-only: nothing was restored")
            self.puts.append(partial(_write_array, new.live, old.saved))
        return new.live

    def _stream(self, old: Stream, new: Node, path: str) -> Any:
        if not isinstance(new, Stream) or new.kind != old.kind:
            raise ChangedError(f"{path} was a source of random numbers and is none of that kind now")
        self.puts.append(partial(rewind, old, new.live))
        return new.live


def _write_array(live: Any, saved: Any) -> None:
    live[...] = saved


def _described(dtype: Any, shape: Any) -> str:
    return f"{str(dtype).removeprefix('torch.')} {list(shape)}"


def _a(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def _born(old: Held, new: Held) -> list[int]:
    """Positions in `new` of keys that are not in `old`."""
    known = set(old.keys)
    return [place for place, key in enumerate(new.keys) if key not in known]


def _kind_of(matching: Matching, node: Node) -> str:
    if isinstance(node, Held) and node.kind in OURS:
        return str(node.detail) if node.kind == "attributes" else node.kind
    return type(matching.object_of(node)).__name__


def _dictionary(m: Matching, old: Held, new: Held, path: str) -> Any:
    found = m.each(old, new, path)
    for key, _, other, wanted in found:
        if not m.stays(other, wanted):
            m.puts.append(partial(new.live.__setitem__, key, wanted))
    for place in _born(old, new):
        m.puts.append(partial(_remove, new.live, new.keys[place]))
    if old.kind == "dict" and _is_out_of_order(old, new):
        m.puts.append(partial(_reorder, new.live, [(key, wanted) for key, _, _, wanted in found]))
    return new.live


def _remove(live: Any, key: Any) -> None:
    if key in live:
        del live[key]


def _remove_attribute(live: Any, name: str) -> None:
    with contextlib.suppress(AttributeError):
        object.__delattr__(live, name)


def _is_out_of_order(old: Held, new: Held) -> bool:
    """Whether the keys that stay, and behind them those that are put back, would stand as they did not."""
    places = {key: place for place, key in enumerate(old.keys)}
    order = [places[key] for key in new.keys if key in places]
    stay = set(order)
    order += [place for place in range(len(old.keys)) if place not in stay]
    return order != sorted(order)


def _reorder(live: Any, items: list[tuple[Any, Any]]) -> None:
    for key, value in items:
        live.pop(key, None)
        live[key] = value


def _list(m: Matching, old: Held, new: Held, path: str) -> Any:
    if old.detail == "groups" and len(old.keys) != len(new.keys):
        raise ChangedError(f"{path} had {len(old.keys)} groups at the snapshot and has {len(new.keys)} now")
    found = m.each(old, new, path)
    if len(found) != len(new.keys) or not all(m.stays(other, wanted) for _, _, other, wanted in found):
        m.puts.append(partial(_refill, new.live, [wanted for _, _, _, wanted in found]))
    return new.live


def _refill(live: Any, values: list[Any]) -> None:
    live.clear()
    live.extend(values)


def _tuple(m: Matching, old: Held, new: Held, path: str) -> Any:
    if len(old.keys) != len(new.keys):
        return m.values.of(old, path)
    found = m.each(old, new, path)
    if all(m.stays(other, wanted) for _, _, other, wanted in found):
        return new.live
    return retupled(new.live, [wanted for _, _, _, wanted in found])


def _set(m: Matching, old: Held, new: Held, path: str) -> Any:
    if new.live != set(old.keys):
        m.puts.append(partial(_reset, new.live, list(old.keys)))
    return new.live


def _reset(live: set[Any], values: list[Any]) -> None:
    live.clear()
    live.update(values)


def _module(m: Matching, old: Held, new: Held, path: str) -> Any:
    for before, after in zip(old.children, new.children, strict=True):
        m.match(before, after, path)
    return new.live


def _members(m: Matching, old: Held, new: Held, path: str) -> Any:
    """Parameters, buffers or modules: the same names, and the same kind of thing under each."""
    born = [new.keys[place] for place in _born(old, new)]
    gone = [old.keys[place] for place in _born(new, old)]
    if born or gone:
        what = f"{path}{step(old, (born or gone)[0])}"
        happened = "is new since" if born else "is gone since"
        raise ChangedError(f"{what} {happened} the snapshot, so that it does not fit: nothing was restored")
    for key, _, other, wanted in m.each(old, new, path):
        if m.stays(other, wanted):
            continue
        if old.kind != "buffers":
            here = path + step(old, key)
            raise ChangedError(f"{here} is {_a(_kind_of(m, other))} now, and was not at the snapshot")
        m.puts.append(partial(new.live.__setitem__, key, wanted))
    return new.live


def _attributes(m: Matching, old: Held, new: Held, path: str) -> Any:
    if old.detail != new.detail:
        raise ChangedError(f"{path} was {_a(old.detail)} at the snapshot and is {_a(new.detail)} now")
    writes = m.flags if old.detail == "module" else m.puts
    for key, child, other, wanted in m.each(old, new, path):
        if not isinstance(child, Opaque) and not m.stays(other, wanted):
            writes.append(partial(object.__setattr__, new.live, key, wanted))
    for place in _born(old, new):
        if not isinstance(new.children[place], Opaque):
            writes.append(partial(_remove_attribute, new.live, new.keys[place]))
    return new.live


def _optimizer(m: Matching, old: Held, new: Held, path: str) -> Any:
    for key, before, after in zip(old.keys, old.children, new.children, strict=True):
        m.match(before, after, f"{path}.{key}")
    return new.live


def _group(m: Matching, old: Held, new: Held, path: str) -> Any:
    if old.detail != new.detail:
        raise ChangedError(f"{path} had {old.detail} parameters at the snapshot and has {new.detail} now")
    return _dictionary(m, old, new, path)


def _state(m: Matching, old: Held, new: Held, path: str) -> Any:
    parameters = new.detail["parameters"]
    for key, _, other, wanted in m.each(old, new, path):
        if not m.stays(other, wanted):
            live_key = parameters[key] if isinstance(key, int) else key
            m.puts.append(partial(new.live.__setitem__, live_key, wanted))
    for place in _born(old, new):
        m.puts.append(partial(_remove, new.live, new.detail["keys"][place]))
    return new.live


def _wrapper(m: Matching, old: Held, new: Held, path: str) -> Any:
    if old.detail != new.detail:
        raise ChangedError(
            f"{path} had shape {list(old.detail)} at the snapshot and has {list(new.detail)} now"
        )
    for key, _, other, wanted in m.each(old, new, path):
        if not m.stays(other, wanted):
            if key != "grad" or wanted is not None:
                raise ChangedError(
                    f"{path}.{key} is not made as it was at the snapshot: nothing was restored"
                )
            m.puts.append(partial(setattr, new.live, "grad", None))
    m.outer.append(new.live)
    return new.live


def _foreign(m: Matching, old: Held, new: Held, path: str) -> Any:
    if old.detail != new.detail:
        raise ChangedError(f"{path} was {_a(old.detail)} at the snapshot and is {_a(new.detail)} now")
    m.foreign.append((new.live, m.values.of(old.children[0], path)))
    return new.live


_MATCHERS: dict[str, Callable[[Matching, Held, Held, str], Any]] = {
    "dict": _dictionary,
    "list": _list,
    "tuple": _tuple,
    "set": _set,
    "module": _module,
    "parameters": _members,
    "buffers": _members,
    "modules": _members,
    "attributes": _attributes,
    "optimizer": _optimizer,
    "group": _group,
    "state": _state,
    "wrapper": _wrapper,
    "foreign": _foreign,
}
