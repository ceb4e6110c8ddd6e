"""`tensafe.share` and the handle that it gives."""

from __future__ import annotations

import os
import weakref
from types import TracebackType
from typing import Any, Generic, TypeVar

from tensafe.copies.pickling import raw
from tensafe.copies.pickling.dumping import Graph, pack
from tensafe.copies.pickling.loading import loads
from tensafe.copies.sharing import arena
from tensafe.copies.sharing.arena import SharingError

T = TypeVar("T")


class Shared(Generic[T]):
    """A tree in shared memory. Small when pickled: it is a name.

    `tree` is the tree as this process sees it; in a process that got the handle by pickle or by fork it is
    attached on first use. As a context manager, leaving the block closes the handle.
    """

    def __init__(self, name: str, nbytes: int, tree: T | None = None, owner: bool = False) -> None:
        """Made by `share`, and by pickle."""
        self.name = name
        self.nbytes = nbytes  # of the arena
        self._tree = tree
        self._attached = owner
        self._closed = False
        self._owner = os.getpid() if owner else None
        self._finalizer = weakref.finalize(self, _remove, name, os.getpid()) if owner else None

    @property
    def tree(self) -> T:
        """The tree, its tensors and arrays over the shared memory."""
        if not self._attached:
            self._check_open()
            self._tree, self._attached = self.attach(), True
        self._check_open()
        return self._tree  # type: ignore[return-value]

    def attach(self, readonly: bool = False) -> T:
        """The tree again, over the same memory: what one process writes, all see.

        With `readonly`, memory is mapped so that it cannot be written: tensors are frozen
        (`tensafe.freeze`), arrays not writeable, while others may go on writing. Raises `SharingError` when
        the owner has closed the handle, or has ended.
        """
        self._check_open()
        tree: T = loads(arena.attach(self.name, readonly), writable=not readonly)
        return tree

    def close(self) -> None:
        """Let go of the tree; for the owner, remove the name too, so that nobody can attach any more.

        Tensors that somebody still holds, here or elsewhere, stay valid and shared: the memory is freed with
        the last of them. May be called twice.
        """
        self._closed = True
        self._tree = None
        if self.is_owner:
            self.unlink()

    def unlink(self) -> None:
        """Remove the name and keep the tree: those who are attached go on, nobody else can attach.

        Only in the process that shared the tree; elsewhere it raises `SharingError`.
        """
        if not self.is_owner or self._finalizer is None:
            raise SharingError(
                f"{self.name} can be removed only by the process that shared it: close it here"
            )
        self._finalizer()

    @property
    def is_owner(self) -> bool:
        """Whether this process shared the tree; not so for forked children, which see the same object."""
        return self._owner == os.getpid()

    def __enter__(self) -> Shared[T]:
        """The handle itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """The name and the size, never the memory."""
        self._check_open()
        return Shared, (self.name, self.nbytes)

    def __repr__(self) -> str:
        """Name, size and state."""
        attached = "attached" if self._attached else "not attached"
        state = "closed" if self._closed else "owner" if self.is_owner else attached
        return f"<Shared {self.name}, {self.nbytes} bytes, {state}>"

    def _check_open(self) -> None:
        if self._closed:
            raise SharingError(f"the handle of {self.name} is closed: share the tree again")


def share(tree: T, *, graph: Graph = "raise") -> Shared[T]:
    """Copy a tree into one arena of shared memory, and give a handle that other processes attach.

    Any object that `tensafe.dumps` takes, its bytes copied once and stored once: views, ties, a tensor and
    its array remain aliases of each other, hundreds of tensors cost one descriptor (none from Python 3.13
    on), and only bytes that are viewed are shared. The original tree is not changed and not shared:
    `handle.tree` is.

    Send the handle, not its tensors, to other processes, started by spawn or by fork, through arguments,
    queues or pipes; there, `handle.tree` or `handle.attach(readonly=True)`. The arena has a name until the
    owner closes the handle, leaves its `with` block, drops it, or ends; killed, its resource tracker removes
    the name (and says so on stderr, as for any shared memory of multiprocessing). No lock is taken: two
    processes that write one element race.

    `is_shared()` says False of these tensors, as torch did not make their memory; a `torch.multiprocessing`
    queue would copy them. Their storages cannot be resized.

    Raises `SharingError` when shared memory cannot be had, `PicklingError` as `dumps` does.
    """
    packed = pack(tree, graph=graph)
    name, mapping = arena.create(packed.nbytes)
    try:
        view = memoryview(mapping)
        packed.copy_to(raw.buffer_address(view))
        return Shared(name, packed.nbytes, loads(view), owner=True)
    except BaseException:
        arena.remove(name)
        raise


def _remove(name: str, process: int) -> None:
    """When the owner's handle goes; a forked child's copy of it must not remove what it does not own."""
    if os.getpid() == process:
        arena.remove(name)
