"""Messages between processes by `tensafe.dumps`: queues, pipes, pools and executors of multiprocessing."""

from __future__ import annotations

import contextlib
import io
import struct
import threading
from collections.abc import Iterator, Mapping
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch

from tensafe.copies.pickling import raw
from tensafe.copies.pickling.dumping import Pickler
from tensafe.copies.pickling.loading import loads
from tensafe.copies.pickling.packed import Packed
from tensafe.copies.pickling.reducing import ReductionTable

_BEFORE = b"\x80\x05c" + __name__.encode() + b"\n_open\n\x96"
"""Protocol 5, the name of a function, a bytearray."""
_AFTER = b"\x85R."  # its arguments, a call, the end
_lock = threading.Lock()
_plain_dumps: Any = None
_times = 0


@contextlib.contextmanager
def installed() -> Iterator[None]:
    """Inside, this process sends messages of multiprocessing by `tensafe.dumps`.

    For `multiprocessing.Queue`, `SimpleQueue`, `Pipe`, `Pool` and `concurrent.futures.ProcessPoolExecutor`:
    a message's tensors and arrays travel as bytes, only those that are viewed, aliases kept within the
    message, instead of one shared-memory file and descriptor each. The receiver needs nothing but tensafe to
    be installed, and gets writable tensors of its own. What workers send back goes the plain way, unless
    they send so too: `ProcessPoolExecutor(initializer=install)`.

    Tensors in shared memory and those of other devices are sent as torch sends them, by handle. Queues of
    `torch.multiprocessing` and of DataLoader pickle for themselves and are not changed.
    """
    install()
    try:
        yield
    finally:
        uninstall()


def install() -> None:
    """What `installed` does on entry. Each call asks for one `uninstall`; an initializer needs none."""
    global _plain_dumps, _times
    with _lock:
        if not _times:
            _plain_dumps = ForkingPickler.__dict__["dumps"]
            ForkingPickler.dumps = classmethod(_dumps)  # type: ignore[assignment, method-assign]
        _times += 1


def uninstall() -> None:
    """Undo one `install`; after the last, multiprocessing is as it was."""
    global _times
    with _lock:
        if _times == 1:
            ForkingPickler.dumps = _plain_dumps  # type: ignore[method-assign]
        _times = max(_times - 1, 0)


class _MessagePickler(Pickler):
    """Knows what multiprocessing has registered (connections, locks), and leaves shared tensors to torch."""

    def __init__(self) -> None:
        super().__init__(_nowhere)

    def _table(self, registered: Mapping[type, Any]) -> ReductionTable:
        by_torch: dict[type, Any] = ForkingPickler(io.BytesIO()).dispatch_table
        table = super()._table(by_torch)
        for kind in (torch.Tensor, torch.nn.Parameter, torch.UntypedStorage):
            if kind in by_torch:
                table[kind] = _unless_shared(table[kind], by_torch[kind])
        return table


def _unless_shared(ours: Any, by_torch: Any) -> Any:
    def reduce(obj: Any) -> Any:
        return by_torch(obj) if obj.device.type != "cpu" or obj.is_shared() else ours(obj)

    return reduce


class _Nowhere:
    def write(self, data: memoryview, /) -> object:
        raise NotImplementedError


_nowhere = _Nowhere()


def _dumps(cls: Any, obj: Any, protocol: Any = None) -> Any:
    """In place of `ForkingPickler.dumps`: a pickle that any process can load."""
    packed = _MessagePickler().pack(obj)
    return memoryview(packed.stream) if packed.is_plain else memoryview(_message(packed))


def _message(packed: Packed) -> bytes:
    head = _BEFORE + struct.pack("<Q", packed.nbytes)
    whole, address = raw.fresh_bytes(len(head) + packed.nbytes + len(_AFTER))
    raw.move(address, head, len(head))
    packed.copy_to(address + len(head))
    raw.move(address + len(head) + packed.nbytes, _AFTER, len(_AFTER))
    return whole


def _open(container: bytearray) -> Any:
    """The receiver's side: tensors over the bytes that have just arrived."""
    return loads(container)
