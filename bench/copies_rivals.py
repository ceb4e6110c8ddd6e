"""Ways to copy an object that `bench/copies.py` compares."""

from __future__ import annotations

import copy
import importlib
import io
import pickle
from collections.abc import Callable
from typing import Any

import torch

import tensafe

Copy = Callable[[Any], Any]


def cloned(tree: Any) -> Any:
    """`{k: v.clone()}`, as people write it: containers anew, tensors cloned, all else as it is."""
    if isinstance(tree, torch.Tensor):
        return tree.detach().clone()
    if isinstance(tree, dict):
        return {key: cloned(value) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)([cloned(value) for value in tree])
    return tree


def saved(tree: Any) -> Any:
    file = io.BytesIO()
    torch.save(tree, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def pickled(tree: Any) -> Any:
    buffers: list[Any] = []
    text = pickle.dumps(tree, protocol=5, buffer_callback=buffers.append)
    return pickle.loads(text, buffers=buffers)


def by_optree() -> Copy | None:
    try:
        optree = importlib.import_module("optree")
    except ImportError:
        return None

    def clone(x: Any) -> Any:
        return x.detach().clone() if isinstance(x, torch.Tensor) else x

    return lambda tree: optree.tree_map(clone, tree)


def by_stager() -> Copy | None:
    """DCP's stager of asynchronous checkpoints, without its cache, which it would overwrite."""
    try:
        staging = importlib.import_module("torch.distributed.checkpoint.staging")
        stager = staging.BlockingAsyncStager(cache_staged_state_dict=False)
    except (ImportError, AttributeError, TypeError):
        return None
    return lambda tree: stager.stage(tree)


def by_copium() -> Copy | None:
    try:
        return importlib.import_module("copium").deepcopy  # type: ignore[no-any-return]
    except (ImportError, AttributeError):
        return None


OPTIONAL = {"optree clone": by_optree(), "DCP stager": by_stager(), "copium": by_copium()}
RIVALS: dict[str, Copy] = {
    "copy.deepcopy": copy.deepcopy,
    "tensafe.deepcopy": tensafe.deepcopy,
    "tensafe.compact": tensafe.compact,
    "clone": cloned,
    **{name: rival for name, rival in OPTIONAL.items() if rival is not None},
    "torch.save/load": saved,
    "pickle 5": pickled,
}


def keeps_aliases(rival: Copy) -> str:
    """What is kept of a tensor, a view of it, and itself again: all ("yes"), "ties" alone, or "no"."""
    base = torch.zeros(4)
    try:
        copied = rival({"a": base, "b": base[1:], "c": base})
    except Exception:
        return "?"
    whole, view, again = copied["a"], copied["b"], copied["c"]
    whole.fill_(1.0)
    if base.sum() != 0:
        return "shares with the source"
    return "yes" if view.sum() == 3 else "ties" if again.sum() == 4 else "no"


def is_copy(rival: Copy, tree: Any) -> bool:
    """Whether the result is one: no tensor of it is left the source's, and modules are copied at all."""
    try:
        copied = rival(tree)
    except Exception:
        return False
    if isinstance(tree, (int, str)):
        return True
    if isinstance(tree, torch.Tensor) or copied is tree:
        return copied is not tree and copied.data_ptr() != tree.data_ptr()
    theirs, ours = tensafe.plan(tree), tensafe.plan(copied)
    addresses = {one.source.data_ptr() for one in theirs.storages}
    return theirs.view_count == ours.view_count and not any(
        one.source.data_ptr() in addresses for one in ours.storages
    )
