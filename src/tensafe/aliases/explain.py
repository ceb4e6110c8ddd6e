"""Everything about one live tensor or array: brought together, judged, and let go of."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from types import FrameType
from typing import Any

import torch

from tensafe.aliases import saved as graphs
from tensafe.aliases import verdict
from tensafe.aliases.allocations import allocations
from tensafe.aliases.autograd import AutogradState, autograd_state, counted_together, is_frozen, node_name
from tensafe.aliases.contents import is_array_type, is_tensor_type, reader_of
from tensafe.aliases.frames import roots_of
from tensafe.aliases.live import live_tensors
from tensafe.aliases.mappings import Mapping, Mappings
from tensafe.aliases.model import Alias, Explanation, Region, Relation, SavedBy
from tensafe.aliases.relation import relation
from tensafe.aliases.target import Home, aliases_in, homes_of, met_by, regions_of
from tensafe.aliases.walk import Found, Walk
from tensafe.errors import TensafeError
from tensafe.memory import from_numpy, from_torch

MOST_OBJECTS = 50_000
"""Objects that are looked at for names, reachable from the caller's variables."""
MOST_ITEMS = 10_000
"""Of one container, so that a large one does not use up the search."""


def explain_object(value: object, frame: FrameType | None = None) -> Explanation:
    """Explain a tensor or array, with the names that it and its aliases have for this frame and its callers.

    Changes nothing, reads no element. Raises `TensafeError` for anything else, and for tensors without memory
    that could be looked at.
    """
    _refuse_others(value)
    with torch._C.DisableTorchFunction(), from_torch.unwatched():
        return _explained(value, frame)


def _explained(value: object, frame: FrameType | None) -> Explanation:
    not_seen: list[str] = []
    tensors = live_tensors(not_seen)
    walk = _named(frame)
    not_seen += walk.not_seen
    _add_unnamed(walk, [value, *tensors])
    homes = homes_of(value, allocations(walk.found.values(), []))
    if not homes:
        raise TensafeError(_memoryless(value))
    return _Look(value, walk, tensors, homes, not_seen).explanation()


def _refuse_others(value: object) -> None:
    kind = type(value)
    if is_tensor_type(kind) or is_array_type(kind):
        return
    article = "an" if kind.__name__[:1].lower() in "aeiou" else "a"
    hint = f"tensafe.memory_map shows what {article} {kind.__name__} holds"
    if reader_of(kind) is None:
        hint = "give it the tensor itself"
    raise TensafeError(f"explain() takes a tensor or a NumPy array, not {article} {kind.__name__}: {hint}")


def _memoryless(value: Any) -> str:
    try:
        parts = from_numpy.parts_of(value) if from_numpy.is_array(value) else from_torch.parts_of(value)
    except from_torch.NoStorageError as error:
        return f"explain() cannot look into this {type(value).__name__}: {error}"
    except Exception as error:
        return f"explain() cannot look into this {type(value).__name__}: it raises {type(error).__name__}"
    return f"explain() cannot look into this {type(value).__name__}: it holds {len(parts)} tensors"


def _named(frame: FrameType | None) -> Walk:
    """Everything that the caller's variables lead to."""
    return Walk(MOST_OBJECTS, MOST_ITEMS).go(roots_of(frame))


def _add_unnamed(walk: Walk, values: Iterable[object]) -> None:
    for value in values:
        if id(value) not in walk.found:
            kind = "array" if is_array_type(type(value)) else "tensor"
            if isinstance(value, torch.nn.Parameter):
                kind = "parameter"
            walk.found[id(value)] = Found(value, kind)


class _Look:
    """One tensor with everything alive around it; dropped as soon as the explanation stands."""

    def __init__(
        self, value: Any, walk: Walk, tensors: list[torch.Tensor], homes: list[Home], not_seen: list[str]
    ) -> None:
        self.value = value
        self.walk = walk
        self.tensors = tensors
        self.homes = homes
        self.not_seen = not_seen
        self.found = walk.found[id(value)]
        self.is_array = is_array_type(type(value))
        self.state = AutogradState() if self.is_array else autograd_state(value)
        self.mappings = Mappings()
        self.saved = self.saved_here()

    def explanation(self) -> Explanation:
        regions = regions_of(self.homes, self.walk.names, self.mappings, bool(self.base_name()))
        kept = {id(saved.tensor) for saved, _ in self.saved} | set(map(id, inner_tensors(self.value)))
        aliases = aliases_in(self.homes, self.walk.names, self.state.base, kept)
        named = tuple(alias for alias in aliases if alias.names)
        unnamed = tuple(alias for alias in aliases if not alias.names)
        saved_by = tuple(
            SavedBy(node_name(saved.node), saved.argument, saved.path, how, self.counted(saved))
            for saved, how in self.saved
        )
        at = self.situation(regions, aliases, saved_by)
        return Explanation(
            names=self.walk.names(self.found) if self.found.paths else (),
            kind=self.found.kind,
            type_name=type_name(self.value),
            shape=self.shape(),
            strides=self.strides(),
            dtype=str(self.value.dtype).removeprefix("torch."),
            itemsize=self.value.itemsize,
            device="cpu" if self.is_array else str(self.value.device),
            layout="strided" if self.is_array else str(self.value.layout).removeprefix("torch."),
            source="numpy" if self.is_array else "torch",
            regions=regions,
            aliases=named,
            unnamed_aliases=unnamed,
            base=self.base_name(),
            requires_grad=self.state.requires_grad,
            is_leaf=self.state.is_leaf,
            grad_fn=self.state.grad_fn,
            version=None if self.is_array else self.state.version,
            is_inference=self.state.is_inference,
            saved_by=saved_by,
            reasons=verdict.reasons(at),
            cautions=verdict.cautions(at),
            notes=tuple(self.notes()),
            not_seen=tuple(dict.fromkeys(self.not_seen)),
        )

    def shape(self) -> tuple[int, ...]:
        """In elements; -1 where rows of a nested tensor differ."""
        try:
            return tuple(map(int, self.value.shape))
        except Exception:  # nested, in one way or another
            return (int(self.value.size(0)), *(-1 for _ in range(self.value.dim() - 1)))

    def strides(self) -> tuple[int, ...] | None:
        """In elements; None where there is more than one region."""
        if len(self.homes) != 1 or self.homes[0].name:
            return None
        extent = self.homes[0].own.extent
        return tuple(stride // (extent.itemsize or 1) for stride in extent.strides)

    def base_name(self) -> str:
        base = self.value.base if self.is_array else self.state.base
        if base is None:
            return ""
        known = self.walk.found.get(id(base))
        names = self.walk.names(known) if known is not None and known.paths else ()
        return names[0] if names else "a tensor without a name"

    def notes(self) -> Iterator[str]:
        if self.is_array:
            return
        with torch._C.DisableTorchFunctionSubclass():
            if self.value.is_conj():
                yield "conjugated: reads give the conjugate of what is stored"
            if self.value.is_neg():
                yield "negated: reads give the negative of what is stored"
            if self.value.is_quantized:
                yield "quantised: the elements are integers"

    def saved_here(self) -> list[tuple[graphs.SavedTensor, Relation]]:
        """Tensors of this storage that nodes of live graphs keep."""
        found = []
        for saved in graphs.saved_tensors(self.graph_roots(), self.not_seen):
            try:
                parts = from_torch.parts_of(saved.tensor)
            except Exception:  # a tensor of a kind whose memory cannot be seen
                continue
            met = next(met_by(self.homes, parts), None)
            if met is not None:
                found.append((saved, met[1]))
        return found

    def counted(self, saved: graphs.SavedTensor) -> bool | None:
        if self.is_array or not saved.checked:
            return False
        return counted_together(self.value, saved.tensor)

    def graph_roots(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Tensors from which graphs hang, those with names first."""
        for one in self.walk.found.values():
            if one.paths and graphs.has_graph(one.value):
                yield self.walk.names(one)[0], one.value
        for tensor in [self.value, *self.tensors]:
            if graphs.has_graph(tensor):
                yield "", tensor

    def situation(
        self, regions: tuple[Region, ...], aliases: list[Alias], saved_by: tuple[SavedBy, ...]
    ) -> verdict.Situation:
        mapping = self.mapping()
        graph_alias, in_graph = self.graph_alias({id(saved.tensor) for saved, _ in self.saved})
        return verdict.Situation(
            name=self.walk.name(self.value) or "",
            is_array=self.is_array,
            state=self.state,
            grad_mode=torch.is_grad_enabled(),
            inference_mode=torch.is_inference_mode_enabled(),
            regions=regions,
            aliases=[alias for alias in aliases if alias.names],
            unnamed_count=sum(1 for one in aliases if not one.names and one.relation != verdict.UNTOUCHED),
            graph_alias=graph_alias,
            is_alias_in_graph=in_graph,
            saved_by=saved_by,
            is_frozen=not self.is_array and is_frozen(self.value),
            is_writeable=not self.is_array or bool(self.value.flags.writeable),
            read_only_array=self.read_only_array(),
            unwritable_mapping="" if mapping is None or mapping.is_writable else mapping.path or "no file",
            shared_file=mapping.path if mapping is not None and _reaches_file(mapping) else "",
            held_by=tuple(self.held_by()),
            ties=self.ties(),
        )

    def mapping(self) -> Mapping | None:
        allocation = self.homes[0].allocation
        return self.mappings.at(allocation.address) if allocation.device == "cpu" else None

    def graph_alias(self, kept: Container[int]) -> tuple[str, bool]:
        """A tensor of common bytes that requires grad, where this one does not; whether it is no leaf."""
        if self.state.requires_grad:
            return "", False
        found: list[tuple[bool, tuple[str, ...]]] = []
        for home in self.homes:
            for piece in home.allocation.pieces:
                other = piece.found.value
                if other is self.value or not _requires_grad(other) or id(other) in kept:
                    continue
                if relation(home.own.extent, piece.extent) != verdict.UNTOUCHED:
                    found.append((graphs.is_computed(other), self.walk.names(piece.found)))
        if not found:
            return "", False
        in_graph, names = max(found, key=lambda one: (one[0], bool(one[1])))
        return (names or ("a tensor without a name",))[0], in_graph

    def read_only_array(self) -> str:
        """An array whose own memory, not only its view of it, is read-only."""
        if self.is_array:
            return ""
        for home in self.homes:
            for piece in home.allocation.pieces:
                if is_array_type(type(piece.found.value)) and not _root(piece.found.value).flags.writeable:
                    return (self.walk.names(piece.found) or ("without a name",))[0]
        return ""

    def held_by(self) -> Iterator[str]:
        """Optimizers that hold this very tensor."""
        names = [self.walk.spell(path) for path in self.found.paths if path.kind == "held"]
        for name in names:
            yield name.partition(".param_groups")[0]

    def ties(self) -> tuple[str, ...]:
        paths = [path for path in self.found.paths if path.kind == "parameter"]
        return tuple(dict.fromkeys(self.walk.spell(path) for path in paths))


def inner_tensors(value: Any) -> list[Any]:
    """The tensors that a wrapper subclass is made of."""
    if is_array_type(type(value)) or not hasattr(type(value), "__tensor_flatten__"):
        return []
    try:
        return [getattr(value, name) for name in value.__tensor_flatten__()[0]]
    except Exception:  # a subclass that does not answer
        return []


def _reaches_file(mapping: Mapping) -> bool:
    return mapping.is_file and mapping.is_writable and mapping.is_shared


def _requires_grad(value: object) -> bool:
    own: Any = torch.Tensor
    return isinstance(value, torch.Tensor) and bool(own.requires_grad.__get__(value))


def _root(array: Any) -> Any:
    while is_array_type(type(array.base)):
        array = array.base
    return array


def type_name(value: object) -> str:
    """`torch.Tensor`, `torch.nn.Parameter`, `numpy.ndarray`; a subclass by its own module."""
    kind = type(value)
    if kind is torch.nn.Parameter:
        return "torch.nn.Parameter"
    return f"{kind.__module__}.{kind.__qualname__}"
