"""A training state taken, compared, and put back in place: what `tensafe.snapshot` makes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from operator import attrgetter
from types import TracebackType
from typing import Any, TypeVar

import torch

from tensafe.copies.plan import reaches_beyond
from tensafe.copies.snapshots.copies import Copies
from tensafe.copies.snapshots.differences import Diff, compared
from tensafe.copies.snapshots.looking import Look
from tensafe.copies.snapshots.matching import Matching
from tensafe.copies.snapshots.nodes import Array, Held, Node, tensor_paths
from tensafe.copies.snapshots.pieces import Storages, storages_of, usual_storages
from tensafe.copies.snapshots.randomness import STREAMS
from tensafe.copies.snapshots.states import state_of
from tensafe.copies.snapshots.staying import still_there
from tensafe.copies.snapshots.values import Values
from tensafe.copies.snapshots.writing import carry_out, gradient_writes, refuse_frozen, tensor_writes
from tensafe.copies.walking.compiled import all_give
from tensafe.copies.walking.layouts import is_plain
from tensafe.copies.walking.paths import name_of
from tensafe.errors import TensafeError
from tensafe.memory.from_torch import unwatched

S = TypeVar("S", bound="Snapshot")
_requires_grad, _is_meta, _is_nested = map(attrgetter, ("requires_grad", "is_meta", "is_nested"))
_storage_nbytes = torch.UntypedStorage.nbytes
_CPU = [torch.device("cpu")]


class Snapshot:
    """The state of some objects at one moment; made by `tensafe.snapshot` or `Snapshot.load`.

    As a context manager, it puts the state back when the block raises, and lets the error go on.

    Attributes:
        names: what the objects were called, in the order in which they were given.
    """

    def __init__(
        self,
        objs: tuple[Any, ...],
        names: list[str],
        *,
        lazy: bool | None = None,
        grads: bool = True,
        host: bool = False,
    ) -> None:
        self.names = names
        self._objs: tuple[Any, ...] | None = objs
        self._options = (lazy, host)
        self._with_grads = grads
        with quiet():
            self._take(Look(), None)

    def _take(self, look: Look, before: Copies | None) -> None:
        """Look at everything, then copy."""
        assert self._objs is not None
        lazy, host = self._options
        nodes = [look.root(obj, name) for obj, name in zip(self._objs, self.names, strict=True)]
        tensors = look.tensors
        storages = usual_storages(tensors)
        refuse_without_values(look, nodes, self.names, storages)
        copies = Copies(tensors, lazy, host, before, storages)
        flags = _flags_of(tensors)
        grad_places, grads = self._grads_of(tensors, flags)
        _take_arrays(look)
        self._copies = copies
        self._nodes: list[Node] = nodes
        self._look: Look | None = look
        self._requires_grad = flags
        self._devices = list(map(attrgetter("device"), tensors)) if storages is None else _CPU * len(tensors)
        self._grad_places, self._grads = grad_places, grads

    def _grads_of(self, tensors: list[torch.Tensor], flags: list[bool]) -> tuple[dict[int, int], Copies]:
        """Which tensors have a gradient, and copies of the gradients."""
        if not self._with_grads or (not any(flags) and set(map(type, tensors)) == {torch.Tensor}):
            tensors = []
        found = [one.grad if one.is_leaf else None for one in tensors]
        places = {number: place for place, number in enumerate(_present(found))}
        before: Copies | None = getattr(self, "_grads", None)
        return places, Copies([one for one in found if one is not None], False, self._options[1], before)

    def update(self) -> None:
        """Take the same objects again, into the memory of the copies there are.

        Nothing is allocated while the tensors have the shapes they had; structure may have changed since.

        Raises:
            TensafeError: the snapshot came from a file.
        """
        if self._objs is None or self._look is None:
            raise TensafeError("this snapshot came from a file: take a new one, tensafe.snapshot(...)")
        with quiet():
            try:
                self._update(self._look)
            except KeyboardInterrupt:  # some copies may be new and some old: take all once more, then stop
                self._take(Look(), None)
                raise

    def _update(self, look: Look) -> None:
        if not (still_there(look, self._copies.of) and self._copies.still_fit()):
            self._take(Look(), self._copies)
            return
        self._copies.again()
        self._requires_grad = _flags_of(look.tensors)
        self._grad_places, self._grads = self._grads_of(look.tensors, self._requires_grad)
        _take_again(look)

    def restore(self, *objs: Any) -> None:
        """Put everything back as it was, in place: each tensor, module and container stays the same object.

        Args:
            objs: write into these instead, in the order of the snapshot: objects made by the same code, as
                after `Snapshot.load`.

        What was born since in dictionaries, lists, objects and optimizer states is removed, what is gone from
        them is put back. Version counters move as for any write, so that autograd notices.

        Raises:
            ChangedError: a shape, a dtype, or the make-up of a module or optimizer is another than at the
                snapshot; nothing was restored.
            TensafeError: a snapshot from a file, and no objects; or not as many as were taken.
        """
        self._restore(objs, weights_only=False)

    def _restore(self, objs: tuple[Any, ...], weights_only: bool) -> None:
        with quiet():
            matching, now = self._matched(objs)
            writes, bumps = tensor_writes(matching, self._copies, self.paths)
            puts = list(matching.puts)
            if not weights_only:
                found, more = gradient_writes(self._gradient_pairs(matching, now))
                writes += found
                puts += [*more, *matching.flags, *self._flag_writes(matching, now)]
            refuse_frozen(writes, matching, self.paths)
            carry_out(matching, writes, bumps, puts)

    def _matched(self, objs: tuple[Any, ...]) -> tuple[Matching, Look]:
        now = Look()
        given = self._given(objs)
        nodes = [now.root(obj, name) for obj, name in zip(given, self.names, strict=True)]
        refuse_without_values(now, nodes, self.names, usual_storages(now.tensors))
        matching = Matching(Values(self._copies, self._devices), now, self._described)
        for old, new, name in zip(self._nodes, nodes, self.names, strict=True):
            matching.match(old, new, name)
        return matching, now

    def _given(self, objs: tuple[Any, ...]) -> tuple[Any, ...]:
        if not objs and self._objs is None:
            names = ", ".join(self.names)
            raise TensafeError(f"this snapshot came from a file: say with what, as in restore({names})")
        found = objs or self._objs or ()
        if len(found) != len(self.names):
            raise TensafeError(
                f"the snapshot is of {len(self.names)} objects ({', '.join(self.names)}), "
                f"and {len(found)} were given"
            )
        return found

    def _described(self, number: int) -> tuple[torch.dtype, torch.Size]:
        saved = self._copies.of(number)
        return saved.dtype, saved.shape

    def _gradient_pairs(self, m: Matching, now: Look) -> Iterator[tuple[torch.Tensor, torch.Tensor | None]]:
        for number, other in m.pairs if self._with_grads else ():
            place = self._grad_places.get(number)
            yield now.tensors[other], None if place is None else self._grads.of(place)

    def _flag_writes(self, m: Matching, now: Look) -> Iterator[Any]:
        for number, other in m.pairs:
            live, flag = now.tensors[other], self._requires_grad[number]
            if live.requires_grad != flag and live.is_leaf:
                yield lambda live=live, flag=flag: live.requires_grad_(flag)

    def diff(self, *objs: Any) -> Diff:
        """What is different now from what it was at the snapshot; prints as a table, and is false if nothing.

        Args:
            objs: compare with these instead, in the order of the snapshot.
        """
        with quiet():
            now = Look()
            given = self._given(objs)
            nodes = [now.root(obj, name) for obj, name in zip(given, self.names, strict=True)]
            return compared(self._nodes, self._copies.of, nodes, now, self.names)

    def state_dict(self) -> Any:
        """Independent copies of everything: what `state_dict()` gives for a module or optimizer, else a tree.

        A snapshot of several objects gives a dictionary of them by name. Nobody else holds the tensors; to
        write into them changes neither the snapshot nor the live objects.
        """
        with quiet():
            values = Values(self._copies, self._devices)
            found = [state_of(node, values, name) for node, name in zip(self._nodes, self.names, strict=True)]
        return found[0] if len(found) == 1 else dict(zip(self.names, found, strict=True))

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the copies of tensors take, gradients included; of lazy ones, once written."""
        return self._copies.nbytes + self._grads.nbytes

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a safetensors file, with all that is no tensor as JSON in its metadata; never a pickle.

        The file is written beside, flushed, and renamed: whatever interrupts it, an older file of that name
        stays whole. Attributes of modules that are no plain values are left out, and left alone by a restore.

        Raises:
            TensafeError: a plain value that JSON cannot hold, or a tensor that safetensors cannot, by its
                path; or the file cannot be written.
        """
        from tensafe.copies.snapshots.files import write

        with quiet():
            write(self, path)

    @classmethod
    def load(cls: type[S], path: str | os.PathLike[str]) -> S:
        """Read a file that `save` wrote; `restore(model, optimizer, …)` puts it into objects.

        Raises:
            TensafeError: the file cannot be read, or is none of ours.
        """
        from tensafe.copies.snapshots.files import read

        loaded = cls.__new__(cls)
        with quiet():
            read(loaded, path)
        return loaded

    def paths(self) -> list[str]:
        """The path of each tensor, in the order of the snapshot."""
        return tensor_paths(self._nodes, self.names, len(self._devices))

    def __enter__(self: S) -> S:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if kind is not None:
            self.restore()

    def __repr__(self) -> str:
        count = len(self._devices)
        lazy = f", {self._copies.lazy_count} lazy" if self._copies.lazy_count else ""
        plural = "" if count == 1 else "s"
        return f"<Snapshot of {', '.join(self.names)}: {count:,} tensor{plural}{lazy}, {self.nbytes:,} bytes>"


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Nothing that we do is recorded, traced, or seen by the program's modes."""
    with unwatched(), torch._C.DisableTorchFunction(), torch.inference_mode(False), torch.no_grad():
        yield


def names_of(objs: tuple[Any, ...]) -> list[str]:
    """What the caller calls each object; no name twice."""
    if not objs:
        raise TensafeError("a snapshot of nothing: give a module, an optimizer, or a tree of tensors")
    names: list[str] = []
    for obj in objs:
        name = name_of(obj)
        names.append(name if name not in names else f"{name}{len(names) + 1}")
    return names


def refuse_without_values(look: Look, nodes: list[Node], names: list[str], storages: Storages | None) -> None:
    """Raise for tensors of the meta device, freed ones and nested ones, by their path.

    Args:
        storages: what `usual_storages` gave for the tensors.
    """
    tensors = look.tensors

    def refuse(number: int | None, why: str) -> None:
        if number is not None:
            raise TensafeError(f"{tensor_paths(nodes, names, len(tensors))[number]} {why}")

    if storages is None:
        refuse(_first(_is_meta, tensors), "is on the meta device and has no values: load it first")
    freed = _first_freed(tensors, storages or storages_of(tensors))
    refuse(freed, "has no memory for its elements: its storage was freed (resize_)")
    if storages is None:
        refuse(_first(_is_nested, tensors), "is a nested tensor: use layout=torch.jagged, or its unbind()")


def _first(test: Callable[[torch.Tensor], bool], tensors: list[torch.Tensor]) -> int | None:
    return next((number for number, one in enumerate(tensors) if test(one)), None)


def _first_freed(tensors: list[torch.Tensor], storages: Storages | None) -> int | None:
    """The number of a tensor whose storage was freed, which torch would read all the same."""
    if storages is not None and 0 not in map(_storage_nbytes, storages):
        return None
    return _first(lambda one: is_plain(one) and reaches_beyond(one), tensors)


def _flags_of(tensors: list[torch.Tensor]) -> list[bool]:
    """Which of them require gradients."""
    if all_give(tensors, torch.Tensor.requires_grad, False):
        return [False] * len(tensors)
    return list(map(_requires_grad, tensors))


def _present(found: list[torch.Tensor | None]) -> list[int]:
    return [number for number, one in enumerate(found) if one is not None]


def _take_arrays(look: Look) -> None:
    for node in look.restless:
        if isinstance(node, Array):
            node.saved = node.live.copy()


def _take_again(look: Look) -> None:
    for node in look.restless:
        if isinstance(node, Array):
            node.saved[...] = node.live
        elif not isinstance(node, Held):
            node.state = STREAMS[node.kind][0](node.live)
