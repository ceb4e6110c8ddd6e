"""Hears which rank of a distributed run this process becomes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch.distributed

from tensafe.runtime.patches import Patches
from tensafe.runtime.watcher import Watcher

OnRank = Callable[[int], None]


class Ranks(Watcher):
    """Tells `on_rank` once a process group is there."""

    def __init__(self, on_rank: OnRank, guarded: Any) -> None:
        self._on_rank = guarded("init_process_group", on_rank)

    def install(self, patches: Patches) -> None:
        if torch.distributed.is_available():
            for owner in (torch.distributed, torch.distributed.distributed_c10d):
                patches.wrap(owner, "init_process_group", self._joining)

    def _joining(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def init_process_group(*args: Any, **kwargs: Any) -> Any:
            result = call(*args, **kwargs)
            self._on_rank(torch.distributed.get_rank())
            return result

        return functools.update_wrapper(init_process_group, call)
