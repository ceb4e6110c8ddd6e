"""Everything about one live tensor or array: brought together, judged, and let go of."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from types import FrameType
from typing import Any

import torch

from tensafe.aliases import owners, verdict
from tensafe.aliases import saved as graphs
from tensafe.aliases.allocations import allocations, beside
from tensafe.aliases.attributes import full_name, kind_name, of_class
from tensafe.aliases.autograd import (
    AutogradState,
    autograd_state,
    counted_together,
    is_frozen,
    is_refused,
    making_of,
    node_name,
    references,
    unheld_view,
)
from tensafe.aliases.contents import is_array_type, is_tensor_type, reader_of
from tensafe.aliases.frames import roots_of
from tensafe.aliases.live import live_tensors
from tensafe.aliases.mappings import Mapping, Mappings
from tensafe.aliases.model import Alias, Explanation, Region, Relation, SavedBy
from tensafe.aliases.relation import relation
from tensafe.aliases.target import Home, aliases_in, homes_of, met_by, regions_of
from tensafe.aliases.walk import Found, Walk, is_parameter
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
    homes = homes_of(value, allocations(beside(value, walk.found.values()), []))
    if not homes:
        raise TensafeError(_memoryless(value))
    return _Look(value, walk, tensors, homes, not_seen).explanation()


def _refuse_others(value: object) -> None:
    kind = type(value)
    if is_tensor_type(kind) or is_array_type(kind):
        return
    name = kind_name(kind)
    article = "an" if name[:1].lower() in "aeiou" else "a"
    hint = f"tensafe.memory_map shows what {article} {name} holds"
    if reader_of(kind) is None:
        hint = "give it the tensor itself"
    raise TensafeError(f"explain() takes a tensor or a NumPy array, not {article} {name}: {hint}")


def _memoryless(value: Any) -> str:
    name = kind_name(type(value))
    try:
        parts = from_numpy.parts_of(value) if from_numpy.is_array(value) else from_torch.parts_of(value)
    except from_torch.NoStorageError as error:
        return f"explain() cannot look into this {name}: {error}"
    except Exception as error:
        return f"explain() cannot look into this {name}: it raises {kind_name(type(error))}"
    return f"explain() cannot look into this {name}: it holds {len(parts)} tensors"


def _named(frame: FrameType | None) -> Walk:
    """Everything that the caller's variables lead to."""
    return Walk(MOST_OBJECTS, MOST_ITEMS).go(roots_of(frame))


def _add_unnamed(walk: Walk, values: Iterable[object]) -> None:
    for value in values:
        if id(value) not in walk.found:
            kind = "array" if is_array_type(type(value)) else "tensor"
            if kind == "tensor" and is_parameter(value):
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
        hidden = self.hidden()
        aliases = aliases_in(self.homes, self.walk.names, self.state.base, hidden)
        named = tuple(alias for alias in aliases if alias.names)
        unnamed = tuple(alias for alias in aliases if not alias.names)
        saved_by = tuple(
            SavedBy(node_name(saved.node), saved.argument, saved.path, how, self.counted(saved))
            for saved, how in self.saved
        )
        at = self.situation(regions, aliases, saved_by, hidden)
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
        if not self.is_array and torch._C._functorch.is_functorch_wrapped_tensor(self.value):
            return tuple(self.value.stride())  # of one sample: the extent is that of the whole batch
        return tuple(stride // (extent.itemsize or 1) for stride in extent.strides)

    def base_name(self) -> str:
        base = self.value.base if self.is_array else self.state.base
        if base is None:
            return ""
        known = self.walk.found.get(id(base))
        names = self.walk.names(known) if known is not None and known.paths else ()
        if names:
            return names[0]
        return owners.said_owner(base) if self.is_array else "a tensor without a name"

    def hidden(self) -> set[int]:
        """Tensors that nobody reaches: a graph keeps them, a wrapper holds them, or this view alone does."""
        found = {id(saved.tensor) for saved, _ in self.saved} | set(map(id, inner_tensors(self.value)))
        view = unheld_view()
        base, alone = self.state.base, view._base
        if base is not None and alone is not None:
            ours = 1 + (id(base) in self.walk.found) + sum(tensor is base for tensor in self.tensors)
            if references(base) - ours <= references(alone):
                found.add(id(base))
        return found

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
        if torch._C._functorch.is_batchedtensor(self.value):
            yield "one sample inside vmap: bytes are those of the whole batch"

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
        self,
        regions: tuple[Region, ...],
        aliases: list[Alias],
        saved_by: tuple[SavedBy, ...],
        hidden: Container[int],
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
            fragile=tuple(self.fragile(hidden)),
            is_immutable=any(owners.is_bytes(home.allocation, self.mappings) for home in self.homes),
            is_foreign=self.is_foreign(mapping),
        )

    def is_foreign(self, mapping: Mapping | None) -> bool:
        """Whether PyTorch did not allocate the memory, and no array over it and no file was found."""
        owned = [home.allocation for home in self.homes if owners.is_foreign(home.own.part.storage)]
        known = mapping is not None and mapping.is_file
        return not known and any(not owners.has_array(one) for one in owned)

    def fragile(self, hidden: Container[int]) -> Iterator[verdict.Fragile]:
        """Views that autograd refuses to use after a write here, each once."""
        seen = {id(self.value)}
        for home in self.homes:
            for piece in home.allocation.pieces:
                view = piece.found.value
                if id(view) in seen or not is_tensor_type(type(view)):
                    continue
                seen.add(id(view))
                names = self.walk.names(piece.found)
                if (not names and id(view) in hidden) or not making_of(view) or is_refused(view):
                    continue
                counted = False if self.is_array else counted_together(self.value, view)
                if counted is not False:
                    yield verdict.Fragile(names[0] if names else "", making_of(view), counted)

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
        """Its places in modules, each by one name: two ways to one module are one place."""
        places: dict[tuple[int, str], str] = {}
        for path in self.found.paths:
            if path.kind in ("parameter", "buffer") and path.before is not None and not path.is_private:
                places.setdefault((id(path.before.value), str(path.step)), self.walk.spell(path))
        return tuple(places.values())


def inner_tensors(value: Any) -> list[Any]:
    """The tensors that a wrapper subclass is made of."""
    if is_array_type(type(value)) or not of_class(type(value), "__tensor_flatten__"):
        return []
    try:
        return [getattr(value, name) for name in value.__tensor_flatten__()[0]]
    except Exception:  # a subclass that does not answer
        return []


def _reaches_file(mapping: Mapping) -> bool:
    return mapping.is_file and mapping.is_writable and mapping.is_shared


def _requires_grad(value: object) -> bool:
    own: Any = torch.Tensor
    return is_tensor_type(type(value)) and bool(own.requires_grad.__get__(value))


def _root(array: Any) -> Any:
    while is_array_type(type(array.base)):
        array = array.base
    return array


def type_name(value: object) -> str:
    """`torch.Tensor`, `torch.nn.Parameter`, `numpy.ndarray`; a subclass by its own module."""
    kind = type(value)
    if kind is torch.nn.Parameter:
        return "torch.nn.Parameter"
    return full_name(kind)
