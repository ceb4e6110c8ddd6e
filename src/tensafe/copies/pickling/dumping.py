"""`tensafe.dumps` and `Pickler`."""

from __future__ import annotations

import io
import pickle
from collections.abc import Mapping
from typing import Any, Literal

from tensafe.copies.pickling.errors import PicklingError
from tensafe.copies.pickling.layout import plan
from tensafe.copies.pickling.memory import Freed
from tensafe.copies.pickling.packed import Packed, Sink
from tensafe.copies.pickling.reducing import NonLeaf, Reducer, ReductionTable
from tensafe.copies.pickling.whereabouts import path_to

Graph = Literal["raise", "cut"]


class Pickler(pickle.Pickler):
    """A `pickle.Pickler` of protocol 5 whose tensors and arrays lie beside the stream.

    `dump` writes one container (see `tensafe.copies.pickling.container`) to the file, which
    `tensafe.Unpickler` and `tensafe.loads` read; each is complete in itself. A subclass may have
    `reducer_override` and `persistent_id`, which are asked first, and a `dispatch_table` of its own; entries
    may be added to the `dispatch_table` of an instance. Nothing global is changed.
    """

    def __init__(
        self,
        file: Sink,
        protocol: int | None = 5,
        *,
        buffers: list[pickle.PickleBuffer] | None = None,
        graph: Graph = "raise",
    ) -> None:
        """Like `dumps`, which says what the arguments mean."""
        if protocol not in (None, -1, 5):
            raise PicklingError(f"protocol {protocol} has no buffers beside the stream: leave it at 5")
        if graph not in ("raise", "cut"):
            raise PicklingError(f"graph={graph!r} is not known: give 'raise' or 'cut'")
        self._file = file
        self._apart = buffers
        self._stream = io.BytesIO()
        self._foreign: list[pickle.PickleBuffer] = []
        self._reducer = Reducer(graph)
        super().__init__(self._stream, 5, buffer_callback=self._foreign.append)
        registered = getattr(type(self), "dispatch_table", None)
        self.dispatch_table = self._table(registered if isinstance(registered, Mapping) else {})

    def _table(self, registered: Mapping[type, Any]) -> ReductionTable:
        return ReductionTable(self._reducer, registered)

    def dump(self, obj: Any) -> None:
        """Write one container with the object to the file.

        Raises `PicklingError` for a tensor with a graph, and what pickle raises for other objects that it
        cannot write.
        """
        packed = self.pack(obj)
        packed.write_to(self._file)
        if self._apart is not None:
            self._apart.extend(packed.apart)

    def pack(self, obj: Any) -> Packed:
        """The container with its memory not yet read."""
        try:
            super().dump(obj)
            layout = plan(self._reducer.recorder, self._apart is not None)
            return Packed(layout, self._foreign, self._stream.getvalue(), self._apart is not None)
        except NonLeaf as met:
            raise _with_a_graph(obj, met.tensor) from None
        except Freed as met:
            raise PicklingError(
                f"{path_to(obj, met.tensor)} has no memory for its elements, as its storage was freed "
                "(resize_): give the storage its memory back first, or leave the tensor out"
            ) from None
        finally:
            self.clear_memo()
            self._stream.seek(0)
            self._stream.truncate()
            self._reducer.recorder.clear()
            self._foreign.clear()


def _with_a_graph(obj: Any, tensor: Any) -> PicklingError:
    node = type(tensor.grad_fn).__name__
    return PicklingError(
        f"{path_to(obj, tensor)} has a graph ({node}), which cannot be pickled: "
        "detach it, or give graph='cut' to write it without its graph"
    )


class _Nowhere:
    """A file for a pickler that only packs."""

    def write(self, data: memoryview, /) -> object:
        raise NotImplementedError


def dumps(
    obj: Any,
    *,
    protocol: int | None = 5,
    buffers: list[pickle.PickleBuffer] | None = None,
    graph: Graph = "raise",
) -> bytes:
    """Pickle an object; the bytes of tensors and arrays are copied once, or not at all.

    Without `buffers`, everything is in the bytes returned, of which `loads` makes tensors in place. With a
    list, the memory of large tensors and arrays is appended to it as it lies, uncopied, to be sent or
    written by the caller before anybody writes to the tensors or resizes them; what is smaller than 16 KiB,
    or scattered, comes as one gathered buffer. Hand the list to `loads(data, buffers=...)`.

    Only bytes that some tensor or array of the tree reaches are written, each once: views, ties and a tensor
    with its array stay aliases of each other, while a slice leaves the rest of its storage behind (strides
    of scattered views change, as with `tensafe.compact`). Parameters, attributes and subclasses are kept;
    gradients and backward hooks are not, as with pickle. Sparse, nested, quantised and meta tensors are
    reduced as torch does, their components written as above. Tensors of other devices travel through the
    processor's memory and return to their device.

    Faster than pickle wherever there are tensors or large arrays. Thousands of small NumPy arrays take about
    twice pickle's time, which does not look for aliases among them.

    `protocol` may only be 5, and is there to be a drop-in for `pickle.dumps`. `graph="cut"` writes tensors
    that have a graph without it; "raise" raises `PicklingError` with the path inside the object
    (`obj["pred"].logits`).
    """
    packed = pack(obj, protocol, buffers=buffers, graph=graph)
    if buffers is not None:
        buffers.extend(packed.apart)
    return packed.to_bytes()


def pack(
    obj: Any,
    protocol: int | None = 5,
    *,
    buffers: list[pickle.PickleBuffer] | None = None,
    graph: Graph = "raise",
) -> Packed:
    """An object as a container that is not written yet."""
    return Pickler(_Nowhere(), protocol, buffers=buffers, graph=graph).pack(obj)
