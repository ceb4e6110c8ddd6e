"""`deepcopy`: `copy.deepcopy` for anything, fast for tensors, and able to cut or keep graphs."""

from __future__ import annotations

from typing import Any, TypeVar

import torch

from tensafe.copies.walking.layouts import of_subclass
from tensafe.copies.walking.modules import of_module
from tensafe.copies.walking.objects import ATOMS, COPIERS, FAMILIES, TORCH_ATOMS, copied, same
from tensafe.copies.walking.paths import STOCK_REFUSAL, place_of
from tensafe.copies.walking.session import MISSING, OPTIONS, Graph, Session
from tensafe.copies.walking.tensors import NonLeafError, NonLeafFound, of_first_tensor
from tensafe.copies.walking.trees import CONTAINERS, of_tree
from tensafe.errors import TensafeError

T = TypeVar("T")

FAMILIES[:] = [(torch.nn.Module, of_module), (torch.Tensor, of_subclass)]
DEEP = {
    **COPIERS,
    torch.Tensor: of_first_tensor,
    torch.nn.Parameter: of_first_tensor,
    **dict.fromkeys(TORCH_ATOMS, same),
}


def deepcopy(obj: T, memo: dict[Any, Any] | None = None, *, graph: Graph = "raise", grads: bool = False) -> T:
    """A deep copy of any object, as `copy.deepcopy` makes it, with every alias between tensors kept.

    Args:
        obj: anything; tensors may be of any layout, device and class.
        memo: as for `copy.deepcopy`: what was copied already, by `id`. The two may share one.
        graph: what to do with a tensor that is not a leaf: "raise" as `copy.deepcopy` does, "cut" copies its
            values, "keep" makes a differentiable copy, through which gradients reach the original.
        grads: copy `.grad` of Parameters, too, which `copy.deepcopy` leaves out.

    Raises:
        NonLeafError: a `RuntimeError` that names the tensor's place in `obj`.
        TensafeError: `graph` is none of the three words.

    An object that cannot be copied raises what `copy.deepcopy` raises, with its place as a note.
    """
    kind = type(obj)
    if kind in ATOMS:
        return obj
    if kind in CONTAINERS and memo is None and graph == "raise" and not grads:
        found = of_tree(obj)
        if found is not None:
            return found  # type: ignore[no-any-return]
    s = Session({} if memo is None else memo, DEEP, obj)
    outer = _enter(s, graph, grads) if memo or graph != "raise" or grads else None
    try:
        return copied(obj, s)  # type: ignore[no-any-return]
    except (NonLeafFound, RuntimeError, TypeError, ValueError) as problem:
        refusal = explained(problem, obj)
        if refusal is problem:
            raise
    finally:
        if memo is not None:
            s.lend()
        if outer is not None:
            _leave(s, outer)
    raise refusal


def _enter(s: Session, graph: Graph, grads: bool) -> Any:
    """Take the options of this call, or of the outer call that lent us its memo; what to put back later."""
    checked_graph(graph, ("raise", "cut", "keep"))
    outer = s.memo.get(OPTIONS, MISSING)
    if graph == "raise" and not grads:
        if outer is not MISSING:
            s.graph, s.grads = outer
        return None
    s.memo[OPTIONS] = s.graph, s.grads = graph, grads
    return outer


def checked_graph(graph: str, words: tuple[str, ...]) -> None:
    """Refuse a word that is none of these."""
    if graph not in words:
        *most, last = (f'"{word}"' for word in words)
        raise TensafeError(f"graph={graph!r}: it is {', '.join(most)} or {last}")


def _leave(s: Session, outer: Any) -> None:
    if outer is MISSING:
        del s.memo[OPTIONS]
    else:
        s.memo[OPTIONS] = outer


def explained(problem: Exception, obj: object) -> Exception:
    """The error to raise: one that names the place of a non-leaf, or the same with its place as a note."""
    if isinstance(problem, RecursionError):
        return problem
    try:
        place = place_of(obj, problem.__traceback__)
    except Exception:  # a container that cannot be read twice: the error itself matters more than its place
        place = "obj"
    if isinstance(problem, (NonLeafFound, NonLeafError)) or str(problem).startswith(STOCK_REFUSAL):
        return NonLeafError(
            f"{STOCK_REFUSAL} (graph leaves) support the deepcopy protocol, and `{place}` has a graph: "
            'detach it, or pass graph="cut" for its values, graph="keep" for a differentiable copy'
        )
    notes = getattr(problem, "__notes__", ())
    if hasattr(problem, "add_note") and not any(note.startswith("while copying") for note in notes):
        problem.add_note(f"while copying `{place}`")
    return problem
