"""`compact` and `copy`: copies of the bytes that tensors reach, and of no other."""

from __future__ import annotations

from typing import Any, Literal, TypeVar

import torch

from tensafe.copies.deep import DEEP, checked_graph, explained
from tensafe.copies.walking.objects import ATOMS, copied
from tensafe.copies.walking.placing import of_clones, of_first_compact, of_values
from tensafe.copies.walking.session import Copier, Graph, Session
from tensafe.copies.walking.sharing import of_alias, of_detached, of_shared_array
from tensafe.errors import TensafeError

T = TypeVar("T")
_Parameter = torch.nn.Parameter


def compact(x_or_tree: T, *, graph: Graph = "raise", grads: bool = False) -> T:
    """The smallest deep copy that keeps every alias: of each storage, the bytes that some tensor reaches.

    Where `deepcopy` and `torch.save` take the whole storage of a slice, this takes the slice. Views of one
    memory stay views of one memory; strides may become smaller.

    Args:
        x_or_tree: a tensor, or anything that `deepcopy` accepts.
        graph: as for `deepcopy`: "raise", "cut" or "keep".
        grads: copy `.grad` of Parameters, too.

    Raises:
        NonLeafError: a `RuntimeError` that names the tensor's place.
        TensafeError: `graph` is none of the three words.
    """
    checked_graph(graph, ("raise", "cut", "keep"))
    return _carried_out(x_or_tree, of_first_compact, graph, grads)


def copy(
    x_or_tree: T,
    *,
    memory: Literal["own", "share"] = "own",
    graph: Literal["cut", "keep"] = "cut",
) -> T:
    """One of the four things that "copy" may mean, of a tensor or of every tensor in a tree.

    | memory  | graph  | of a tensor          |
    |---------|--------|----------------------|
    | "own"   | "cut"  | `x.detach().clone()` |
    | "own"   | "keep" | `x.clone()`          |
    | "share" | "cut"  | `x.detach()`         |
    | "share" | "keep" | `x.view_as(x)`       |

    A tree is anything that `deepcopy` accepts; its containers and objects are new. Tensors of it that share
    memory share memory in the copy. Parameters inside a module stay Parameters, except that memory="own" with
    graph="keep" makes them clones, through which gradients reach the module that was copied.

    Raises:
        TensafeError: another word for `memory` or `graph`.
    """
    checked_graph(graph, ("cut", "keep"))
    if memory == "own":
        return _carried_out(x_or_tree, of_values if graph == "cut" else of_clones, graph, False)
    if memory != "share":
        raise TensafeError(f'memory={memory!r}: it is "own" or "share"')
    s = _session(x_or_tree, of_detached if graph == "cut" else of_alias, graph)
    _share_arrays(s)
    return _walked(x_or_tree, s)


def _carried_out(obj: T, of_tensor: Copier, graph: Graph, grads: bool) -> T:
    if type(obj) in ATOMS:
        return obj
    s = _session(obj, of_tensor, graph)
    s.grads = grads
    return _walked(obj, s)


def _session(obj: object, of_tensor: Copier, graph: Graph) -> Session:
    s = Session({}, DEEP, obj)
    s.graph = graph
    s.copiers[torch.Tensor] = s.copiers[_Parameter] = of_tensor
    s.each = None if of_tensor is of_first_compact else of_tensor
    s.storages = s.memo.setdefault("torch", {})
    return s


def _walked(obj: T, s: Session) -> T:
    try:
        return copied(obj, s)  # type: ignore[no-any-return]
    except Exception as problem:
        refusal = explained(problem, obj)
        if refusal is problem:
            raise
    raise refusal


def _share_arrays(s: Session) -> None:
    import sys

    numpy: Any = sys.modules.get("numpy")
    if numpy is not None:
        s.copiers[numpy.ndarray] = of_shared_array
