"""The buffers that `loads` is given."""

from __future__ import annotations

from typing import Any

from tensafe.copies.pickling import raw


class Input:
    """One buffer: it, its address, and whether it may be written."""

    def __init__(self, data: Any) -> None:
        self.view = memoryview(data).cast("B")
        self.nbytes = self.view.nbytes
        self.readonly = self.view.readonly
        self.address = raw.buffer_address(self.view)
        self._exported: memoryview | None = None

    @property
    def writable_view(self) -> memoryview:
        """The same bytes as torch asks for them; tensors made of a read-only buffer are to be frozen."""
        if not self.readonly:
            return self.view
        if self._exported is None:
            self._exported = raw.exported(self.address, self.nbytes, self.view)
        return self._exported

    def from_offset(self, offset: int) -> Input:
        """What follows the offset, as an input of its own."""
        return Input(self.view[offset:])
