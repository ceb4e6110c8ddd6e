"""While looking: no garbage collection in between, and `torch.compile` traces nothing of ours."""

from __future__ import annotations

import gc
from types import TracebackType

from tensafe.uncompiled import go_on, leave_uncompiled, pause_compiling


class Quiet:
    """A look makes many objects and drops them: each collection would go through all that is alive."""

    def __enter__(self) -> None:
        self._paused = pause_compiling()
        self._collects = gc.isenabled()
        gc.disable()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._collects:
            gc.enable()
        go_on(self._paused)


leave_uncompiled(Quiet.__enter__, pause_compiling)
