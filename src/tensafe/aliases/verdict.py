"""May this tensor be written in place, here and now? Every reason against it, and what else a write does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tensafe.aliases.advice import cut, expression
from tensafe.aliases.autograd import AutogradState
from tensafe.aliases.model import Alias, Reason, Region, SavedBy
from tensafe.memory import Undecided, meet_itself

UNTOUCHED = "no common byte"


@dataclass(frozen=True)
class Fragile:
    """A view that autograd refuses once its base, or another view of it, was written."""

    name: str  # "" where it has none
    created: str  # how autograd names its making: "MULTI_OUTPUT_NODE", …
    counted: bool | None  # whether a write through the explained tensor is counted there


@dataclass(frozen=True)
class Situation:
    """All that the verdict rests on."""

    name: str
    is_array: bool
    state: AutogradState
    grad_mode: bool
    inference_mode: bool
    regions: Sequence[Region]
    aliases: Sequence[Alias]
    unnamed_count: int  # other tensors alive over common bytes, without a name
    graph_alias: str  # an alias with common bytes that requires grad, while this one does not
    is_alias_in_graph: bool  # it is no leaf
    saved_by: Sequence[SavedBy]
    is_frozen: bool
    is_writeable: bool  # of an array: its flag
    read_only_array: str  # the name of an array whose own memory is read-only
    unwritable_mapping: str
    shared_file: str
    held_by: Sequence[str]  # optimizers
    ties: Sequence[str]  # names of one parameter in modules
    fragile: Sequence[Fragile] = ()
    is_immutable: bool = False  # a `bytes` object owns the memory
    is_foreign: bool = False  # PyTorch did not allocate it, and nobody else over it was found

    @property
    def x(self) -> str:
        """How to write the tensor in advice."""
        return expression(self.name)

    @property
    def copy(self) -> str:
        """The expression that gives it memory of its own."""
        return f"{self.x}.copy()" if self.is_array else f"{self.x}.clone()"


def reasons(at: Situation) -> tuple[Reason, ...]:
    """Against writing; where there is none, a write neither raises nor makes a gradient wrong."""
    return (*_of_memory(at), *_of_autograd(at), *_of_saved(at), *_of_recording(at), *_of_fragile(at))


def cautions(at: Situation) -> tuple[Reason, ...]:
    """What a write does besides changing these elements."""
    return (*_of_others(at), *_of_graph(at), *_of_owners(at))


def _of_memory(at: Situation) -> Iterator[Reason]:
    if at.is_array and not at.is_writeable:
        yield Reason("read-only array", "raises", "The array is read-only.", f"Write to a copy: {at.copy}.")
    if at.is_frozen:
        yield Reason(
            "frozen",
            "raises",
            "Its storage is frozen: a write through any alias raises.",
            f"Use {at.copy}.",
        )
    if at.unwritable_mapping:
        yield Reason(
            "read-only mapping",
            "raises",
            f"Its memory is mapped read-only ({at.unwritable_mapping}): a write ends the process.",
            f"Use {at.copy}.",
        )
    if at.read_only_array:
        yield Reason(
            "read-only array behind",
            "silently wrong",
            f"A read-only NumPy array owns its memory ({at.read_only_array}), yet PyTorch writes it.",
            f"Use {at.copy}, or torch.from_numpy(a.copy()).",
        )
    if at.is_immutable:
        yield Reason(
            "immutable bytes",
            "silently wrong",
            "A bytes object owns its memory, which Python takes for constant, yet PyTorch writes it.",
            f"Use {at.copy}, or a bytearray.",
        )
    for region in at.regions:
        if region.device != "meta":  # no elements, and PyTorch does not look
            yield from _of_overlap(region, at)


def _of_overlap(region: Region, at: Situation) -> Iterator[Reason]:
    met = meet_itself(region.extent)
    if met is None:
        return
    if isinstance(met, Undecided):
        says = f"Whether two of its elements share memory {met}."
        yield Reason("overlaps itself", "silently wrong", says, f"Use {at.copy}.")
        return
    expanded = any(
        stride == 0 and size > 1
        for size, stride in zip(region.extent.shape, region.extent.strides, strict=True)
    )
    yield Reason(
        "expanded" if expanded else "overlaps itself",
        "raises" if expanded and not at.is_array else "silently wrong",
        f"Its elements {_index(met.first)} and {_index(met.second)} are the same memory{_why(expanded)}.",
        f"Use {at.copy}, which gives each its own.",
    )


def _why(expanded: bool) -> str:
    return " (an expanded dimension, stride 0)" if expanded else " (overlapping windows)"


def _index(index: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, index))}]"


def _of_autograd(at: Situation) -> Iterator[Reason]:
    state = at.state
    if at.is_array:
        return
    if state.is_inference and not at.inference_mode:
        yield Reason(
            "inference tensor",
            "raises",
            "It was made in inference mode and may be written only there.",
            f"Use {at.copy}.",
        )
        return
    if not state.requires_grad or not at.grad_mode:
        return
    if state.refusal:
        yield Reason("stale view", "raises", f"Autograd refuses it: {state.refusal}.", "Make the view again.")
    elif state.created in REFUSED:
        says, instead = REFUSED[state.created]
        yield Reason(f"view: {state.created.lower()}", "raises", says, instead.format(x=at.x))
    elif state.base is not None and state.base_is_leaf:
        yield Reason(
            "view of leaf",
            "raises",
            "It is a view of a leaf that requires grad.",
            f"Write under torch.no_grad(), or to {at.copy}.",
        )
    elif state.is_leaf:
        yield Reason(
            "leaf",
            "raises",
            "It is a leaf that requires grad, and grad mode is on.",
            f"Write under torch.no_grad() to change its value, or to {at.copy} to compute with it.",
        )


REFUSED = {
    "MULTI_OUTPUT_NODE": (
        "It is one of the views of one call (split, chunk, unbind), which autograd does not let one write.",
        "Index instead ({x}[0]), or write to a clone.",
    ),
    "IN_CUSTOM_FUNCTION": (
        "It is a view made by a custom autograd.Function, whose backward a write would bypass.",
        "Return {x}.clone() from that Function, or write to a clone.",
    ),
    "NO_GRAD_MODE": (
        "It is a view made under no_grad, and grad mode is on.",
        "Make the view outside no_grad, or write inside it.",
    ),
    "INFERENCE_MODE": (
        "It is a view made in inference mode of a tensor that requires grad.",
        "Make the view outside inference mode.",
    ),
}
"""How autograd names the making of a view that it does not let one write: why, and what to do."""


def _of_saved(at: Situation) -> Iterator[Reason]:
    by_effect: dict[tuple[str, bool], list[SavedBy]] = {}
    for saved in at.saved_by:
        apart = saved.relation == UNTOUCHED
        if apart and saved.counted is False:
            continue
        effect = "silently wrong" if saved.counted is False else "raises in backward"
        by_effect.setdefault((effect, apart), []).append(saved)
    for (effect, apart), nodes in by_effect.items():
        if apart and ("raises in backward", False) in by_effect:
            continue
        yield _saved_reason(at, effect, apart, nodes)


def _saved_reason(at: Situation, effect: str, apart: bool, nodes: list[SavedBy]) -> Reason:
    first = nodes[0]
    others = f" and {len(nodes) - 1} more" if len(nodes) > 1 else ""
    whose = f"{first.node} of `{first.path[0]}`" if first.path and first.path[0] else first.node
    what = "another part of the same storage" if apart else "these bytes"
    if effect == "silently wrong":
        says = f"{whose}{others} saved {what} for backward, and this write is not counted: a wrong gradient."
        return Reason("saved, uncounted", "silently wrong", says, f"Write to {at.copy}.")
    says = f"{whose}{others} saved {what} for backward, which raises after a write."
    if first.counted is None:
        says = says[:-1] + " (or computes a wrong gradient, where this came from .data)."
    return Reason("saved for backward", "raises in backward", says, f"Write to {at.copy}.")


def _of_others(at: Situation) -> Iterator[Reason]:
    touched = [alias for alias in at.aliases if alias.relation != UNTOUCHED]
    names = [f"`{cut(alias.name)}`" for alias in touched if alias.kind != "array"]
    arrays = [f"`{cut(alias.name)}`" for alias in touched if alias.kind == "array"]
    if at.is_array:
        names, arrays = arrays, names
    if names or at.unnamed_count:
        yield Reason("aliases", "note", f"{_listed(names, at.unnamed_count)} too: the memory is the same.")
    if arrays:
        other = "Tensors" if at.is_array else "NumPy arrays"
        shown = ", ".join(arrays[:3])
        says = f"{other} share it ({shown}): a write shows in both, and autograd counts none of an array's."
        yield Reason("numpy", "note", says)
    elif at.is_foreign and not at.is_immutable:
        says = "Its memory is not PyTorch's own (a buffer, an array, DLPack): who else uses it is not seen."
        yield Reason("foreign memory", "note", says)
    notes = {note for region in at.regions for note in region.notes}
    if "shared memory" in notes:
        yield Reason("shared memory", "note", "It lies in shared memory: other processes see the write.")
    if at.shared_file:
        yield Reason("mapped file", "note", f"A write changes the file on disk ({at.shared_file}).")
    if "copy-on-write" in notes:
        nbytes = sum(region.storage_nbytes for region in at.regions if "copy-on-write" in region.notes)
        yield Reason("copy-on-write", "note", f"The first write takes its own copy of {nbytes:,} bytes.")
    if any(region.device == "meta" for region in at.regions):
        yield Reason("meta", "note", "It has no memory (device meta): a write changes nothing.")


def _listed(names: list[str], unnamed: int) -> str:
    """Who changes too."""
    return f"{_several(names, unnamed)} change{'s' if len(names) + unnamed == 1 else ''}"


def _of_recording(at: Situation) -> Iterator[Reason]:
    """A write that autograd does not see, into values whose gradient is still to come."""
    state = at.state
    if state.requires_grad and not state.is_leaf and not at.grad_mode and not state.base_is_leaf:
        says = f"It is computed ({state.grad_fn}), and with grad mode off autograd does not record the write."
        yield Reason("unrecorded", "silently wrong", says, f"Write with grad mode on, or to {at.copy}.")
    elif at.graph_alias and at.is_alias_in_graph:
        says = f"`{at.graph_alias}` shares these bytes and its gradient will not know of the write."
        yield Reason(
            "unrecorded", "silently wrong", says, f"Write to `{at.graph_alias}` itself, or to {at.copy}."
        )


VIEWS = {
    "MULTI_OUTPUT_NODE": "of one call (split, chunk, unbind)",
    "IN_CUSTOM_FUNCTION": "from a custom autograd.Function",
    "NO_GRAD_MODE": "made under no_grad",
    "INFERENCE_MODE": "made in inference mode",
}


def _of_fragile(at: Situation) -> Iterator[Reason]:
    """Views that come to nothing when the tensor that they look into is written."""
    by_making: dict[tuple[str, bool | None], list[Fragile]] = {}
    for view in at.fragile:
        by_making.setdefault((view.created, view.counted), []).append(view)
    for (created, counted), views in by_making.items():
        names = [f"`{cut(view.name)}`" for view in views if view.name]
        shown = _several(names, len(views) - len(names))
        are = "is a view" if len(views) == 1 else "are views"
        unless = "" if counted else " (unless this came from .data)"
        says = f"{shown} {are} {VIEWS[created]}, which autograd refuses to use after a write here{unless}."
        yield Reason("views refused", "raises later", says, f"Write to {at.copy}, or drop the views first.")


def _several(names: list[str], unnamed: int) -> str:
    """`a`, `b`, `c` and 2 more."""
    if not names:
        return f"{unnamed} tensor{'s' if unnamed > 1 else ''} without a name"
    rest = len(names) - 3 + unnamed if len(names) > 3 else unnamed
    return ", ".join(names[:3]) + (f" and {rest} more" if rest else "")


def _of_graph(at: Situation) -> Iterator[Reason]:
    state = at.state
    if at.graph_alias and not at.is_alias_in_graph:
        says = (
            f"`{at.graph_alias}` requires grad: as a leaf it takes the new value, unrecorded, like an update."
        )
        yield Reason("update", "note", says)
    if state.requires_grad and not at.grad_mode and state.created in VIEWS:
        says = f"Autograd refuses it afterwards: it is a view {VIEWS[state.created]}."
        yield Reason("refused afterwards", "note", says)
    several = state.created in ("MULTI_OUTPUT_NODE", "IN_CUSTOM_FUNCTION")
    if several and not state.requires_grad and at.grad_mode and not at.is_array:
        yield Reason(
            "view",
            "note",
            "Writing values that require grad into it raises, as it is one of the views of one call.",
        )


def _of_owners(at: Situation) -> Iterator[Reason]:
    if at.held_by:
        yield Reason("optimizer", "note", f"`{at.held_by[0]}` holds it: every step() writes it, too.")
    if len(at.ties) > 1:
        names = _several([f"`{cut(name)}`" for name in at.ties], 0)
        yield Reason("tied", "note", f"It is tied: {names} are this one tensor.")
