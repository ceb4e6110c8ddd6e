"""Runs one call and tells what it did: whose memory the result is, what was written, cut and saved."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from tensafe.ops.row import IN_BETWEEN, Graph

REFUSING = "NotImplemented"  # the node of an operation without a derivative, whose backward raises


@dataclass(frozen=True, slots=True)
class Seen:
    """What one call did, in the names of its arguments."""

    results: int  # how many tensors came out
    shares: frozenset[str]  # arguments whose memory some result has
    own: bool  # some result has memory of its own
    itself: frozenset[str]  # arguments that came back as the very objects
    bumped: frozenset[str]  # arguments whose version counter moved
    changed: frozenset[str]  # arguments whose bytes changed
    graph: Graph
    saves: frozenset[str]  # arguments, `result`, `result0`, ..., and IN_BETWEEN
    ambiguous: Mapping[str, frozenset[str]] = field(default_factory=dict)  # names for one and the same memory

    @property
    def writes(self) -> frozenset[str]:
        return self.bumped | self.changed


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in a value: itself, or in tuples, lists and dictionaries."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from tensors_in(one)
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        for one in value:
            yield from tensors_in(one)


def storages(tensor: torch.Tensor) -> frozenset[int]:
    """The identities of the storages of a tensor; of its components when it is sparse."""
    if tensor.layout is torch.strided:
        return frozenset([tensor.untyped_storage()._cdata])
    if tensor.layout is torch.sparse_coo:
        parts = [tensor._indices(), tensor._values()]
    elif tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        parts = [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    elif tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        parts = [tensor.ccol_indices(), tensor.row_indices(), tensor.values()]
    else:
        return frozenset()
    return frozenset(part.untyped_storage()._cdata for part in parts)


def observe(call: Callable[..., Any], labelled: Sequence[tuple[str, Any]], *given: Any, **named: Any) -> Seen:
    """Call it; `labelled` are the names of the arguments with their values."""
    inputs = [(label, tensor) for label, value in labelled for tensor in tensors_in(value)]
    before = [(_version(tensor), _whole(tensor)) for _, tensor in inputs]
    copies = [None if whole is None else whole.clone() for _, whole in before]
    wanted = any(tensor.requires_grad for _, tensor in inputs)
    homes = [(label, storages(tensor)) for label, tensor in inputs]
    saved: list[torch.Tensor] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        saved.append(tensor.detach())
        return tensor

    with warnings.catch_warnings(), torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        warnings.simplefilter("ignore")
        result = call(*given, **named)
    moved = list(zip(inputs, before, copies, strict=True))
    outputs = list(tensors_in(result))
    names = _names(homes, outputs)
    return Seen(
        len(outputs),
        frozenset(label for label, home in homes if any(home & storages(one) for one in outputs)),
        any(not any(home & storages(one) for _, home in homes) for one in outputs),
        frozenset(label for label, tensor in inputs if any(tensor is one for one in outputs)),
        frozenset(label for (label, tensor), (version, _), _ in moved if version != _version(tensor)),
        frozenset(label for (label, _), (_, whole), copy in moved if not _same(whole, copy)),
        _graph(wanted, outputs),
        frozenset(_label(tensor, names) for tensor in saved),
        {_first(labels): frozenset(labels) for labels in names.values() if len(labels) > 1},
    )


def _names(homes: list[tuple[str, frozenset[int]]], outputs: list[torch.Tensor]) -> dict[int, list[str]]:
    """Every name that a storage goes by."""
    found: dict[int, list[str]] = {}
    for label, home in homes:
        for one in home:
            found.setdefault(one, []).append(label)
    for place, tensor in enumerate(outputs):
        for one in storages(tensor):
            found.setdefault(one, []).append("result" if len(outputs) == 1 else f"result{place}")
    return {key: list(dict.fromkeys(labels)) for key, labels in found.items()}


def _label(tensor: torch.Tensor, names: dict[int, list[str]]) -> str:
    known = [names[one] for one in storages(tensor) if one in names]
    return _first(known[0]) if known else IN_BETWEEN


def _first(labels: list[str]) -> str:
    return labels[0]


def _version(tensor: torch.Tensor) -> int:
    return -1 if tensor.is_inference() else tensor._version


def _whole(tensor: torch.Tensor) -> torch.Tensor | None:
    """All bytes of the storage, also outside the tensor's own extent; stays with the storage of now."""
    if tensor.layout is not torch.strided:
        return None
    empty = torch.empty(0, dtype=torch.uint8, device=tensor.device)
    return empty.set_(tensor.untyped_storage())


def _same(whole: torch.Tensor | None, copy: torch.Tensor | None) -> bool:
    return whole is None or copy is None or torch.equal(whole, copy)


def _graph(wanted: bool, outputs: list[torch.Tensor]) -> Graph:
    if not wanted or not outputs:
        return Graph.NONE if not wanted else Graph.CUT
    nodes = [one.grad_fn for one in outputs if one.grad_fn is not None]
    if not nodes:
        return Graph.KEPT if any(one.requires_grad for one in outputs) else Graph.CUT
    if all(node.name().endswith(REFUSING) for node in nodes):
        return Graph.REFUSED
    return Graph.REFUSED if all(_refuses(one) for one in outputs if one.grad_fn is not None) else Graph.KEPT


def _refuses(tensor: torch.Tensor) -> bool:
    """Whether backward says for every leaf that there is no derivative."""
    leaves = list(_leaves(tensor.grad_fn, set()))
    return bool(leaves) and all(_raises(tensor, leaf) for leaf in leaves)


def _leaves(node: Any, known: set[Any]) -> Iterator[torch.Tensor]:
    if node is None or node in known:
        return
    known.add(node)
    if hasattr(node, "variable"):
        yield node.variable
    for before, _ in node.next_functions:
        yield from _leaves(before, known)


def _raises(tensor: torch.Tensor, leaf: torch.Tensor) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.autograd.grad(tensor, leaf, torch.ones_like(tensor), retain_graph=True, allow_unused=True)
    except RuntimeError as error:
        return "derivative for" in str(error) and "is not implemented" in str(error)
    return False
