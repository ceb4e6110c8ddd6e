"""The tensors in the state of optimizers, and what two of them have in common."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from tensafe.facts import StorageId
from tensafe.runtime.storages.ledger import ledger_of
from tensafe.runtime.storages.pictures import Drawn


def state_storages(optimizer: torch.optim.Optimizer) -> Iterator[StorageId]:
    for _, tensor in _state_tensors(optimizer):
        yield ledger_of(tensor).id


def _state_tensors(optimizer: torch.optim.Optimizer) -> Iterator[tuple[str, torch.Tensor]]:
    for state in optimizer.state.values():
        for name, item in state.items() if isinstance(state, dict) else ():
            if isinstance(item, torch.Tensor) and item.layout is torch.strided and item.numel():
                yield str(name), item


def shared_state(writer: torch.optim.Optimizer, holder: torch.optim.Optimizer) -> tuple[Drawn, ...]:
    """The largest tensor in the state of both; nothing where they share none."""
    own = {ledger_of(tensor).id: (name, tensor) for name, tensor in _state_tensors(writer)}
    held = [(own[at], two) for two in _state_tensors(holder) if (at := ledger_of(two[1]).id) in own]
    if not held:
        return ()
    (name, one), (other_name, other) = max(held, key=lambda pair: pair[1][1].numel())
    return Drawn("written by one", one, name), Drawn("held by the other", other, other_name)
