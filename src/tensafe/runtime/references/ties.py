"""Tensors that were to be one memory, and are no longer: after copies, conversions, loads, in optimizers."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.compiler import is_compiling

from tensafe.facts import Call, Kind, Memory, Moment, Site, Value
from tensafe.runtime import modes
from tensafe.runtime.calls.events import MOVES
from tensafe.runtime.modes import PLAIN
from tensafe.runtime.patches import Patches
from tensafe.runtime.places.frames import Place, site_of, user_place
from tensafe.runtime.places.names import named_tensors
from tensafe.runtime.places.variables import attribute, first_argument, user_frames
from tensafe.runtime.references.links import (
    Copied,
    Part,
    broken,
    links,
    parted,
    stale_holder,
    tied_names,
    unequal,
)
from tensafe.runtime.references.orphans import Orphans, Registered
from tensafe.runtime.storages.ledger import LedgerHistory, RawWrite, Write, clock, ledger_of
from tensafe.runtime.storages.listeners import listen
from tensafe.runtime.storages.pictures import Drawn, memory_of
from tensafe.runtime.storages.weak import WeakFacts
from tensafe.runtime.watcher import Context, Watcher

MOST_COPIES = 64


class Ties(Watcher):
    """Remembers which tensors shared memory, and asks once a write reaches only one of them."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._registered: WeakFacts[list[Registered]] = WeakFacts()  # by storage
        self._copies: WeakFacts[list[Copied]] = WeakFacts()  # by the storage that was copied
        self._orphans = Orphans(self._registered, self._report)
        self._told: set[Place] = set()

    def install(self, patches: Patches) -> None:
        module = torch.nn.Module
        patches.wrap(module, "register_parameter", self._register)
        patches.wrap(module, "load_state_dict", self._load)
        for name in MOVES:
            patches.wrap(module, name, functools.partial(self._move, f"Module.{name}"))
        patches.wrap(torch.nn.Parameter, "__deepcopy__", self._deepcopy)
        patches.wrap(torch.Tensor, "__deepcopy__", self._deepcopy)
        patches.wrap(torch.optim.Optimizer, "__init__", self._orphans.creation(self._context.guarded))

    def stepped(self, optimizer: torch.optim.Optimizer, place: Place | None) -> None:
        self._orphans.stepped(optimizer, place)

    def forget(self, tensor: torch.Tensor) -> None:
        self._orphans.forget(tensor)

    # --- where a tie is made

    def _register(self, call: Callable[..., Any]) -> Callable[..., Any]:
        @self._context.guarded.watcher("Module.register_parameter")
        def remember(parameter: Any, place: Place | None) -> None:
            if type(parameter) not in PLAIN or place is None or modes.asked():
                return
            storage = parameter.untyped_storage()
            known = self._registered.get(storage)
            if known is None:
                self._registered.put(storage, [Registered(place, next(clock))])
            elif len(known) < 4:
                known.append(Registered(place, next(clock)))

        def register_parameter(self: Any, name: Any, param: Any) -> Any:
            result = call(self, name, param)
            if param is not None and not is_compiling():
                remember(param, user_place(2))
            return result

        return functools.update_wrapper(register_parameter, call)

    # --- a checkpoint with two values for one parameter

    def _load(self, call: Callable[..., Any]) -> Callable[..., Any]:
        look = self._context.guarded("Module.load_state_dict", self._loading)
        assigned = self._context.guarded("Module.load_state_dict", self._orphans.assigned)

        def load_state_dict(self: Any, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
            place = user_place(2)
            assign = bool(kwargs.get("assign", args[1] if len(args) > 1 else False))
            if isinstance(state_dict, Mapping) and not assign:
                look(self, dict(state_dict), place)
            result = call(self, state_dict, *args, **kwargs)
            if assign:
                assigned(self, place)
            return result

        return functools.update_wrapper(load_state_dict, call)

    def _loading(self, module: torch.nn.Module, state: dict[str, Any], place: Place | None) -> None:
        if place is None or place in self._told:
            return
        for names in tied_names(module):
            given = [(name, state[name]) for name in names if type(state.get(name)) in PLAIN]
            for name, value in given[1:]:
                first, other = given[0]
                if unequal(other, value):
                    self._told.add(place)
                    tensor = dict(named_tensors(module))[name]
                    trail = self._where_tied(tensor)
                    op, label = "Module.load_state_dict", f"`{first}` and `{name}`"
                    self._report(
                        site_of(place), op, "checkpoint", trail, label, memory_of(Drawn("tied", tensor, name))
                    )
                    return

    def _where_tied(self, tensor: torch.Tensor) -> tuple[Moment, ...]:
        known = self._registered.get(tensor.untyped_storage()) or []
        last = known[-1] if len(known) > 1 else None
        return () if last is None else (Moment(Kind.VIEWED, "", site_of(last.place), last.order),)

    # --- copies and conversions that give each tensor memory of its own

    def _deepcopy(self, call: Callable[..., Any]) -> Callable[..., Any]:
        remember = self._context.guarded("a deep copy", self._copied)

        def deepcopy(self: Any, memo: Any) -> Any:
            copy = call(self, memo)
            if type(self) in PLAIN and copy is not self and type(copy) in PLAIN and not is_compiling():
                remember(self, copy, id(memo), user_place(2))
            return copy

        return functools.update_wrapper(deepcopy, call)

    def _copied(self, own: torch.Tensor, copy: torch.Tensor, memo: int, place: Place | None) -> None:
        if place is None or own.layout is not torch.strided or modes.asked():
            return
        storage = own.untyped_storage()
        if isinstance(copy, torch.nn.Parameter):
            self._registered.put(copy.untyped_storage(), [Registered(place, next(clock))])
        if storage.nbytes() == own.numel() * own.element_size() and isinstance(own, torch.nn.Parameter):
            known = self._copies.get(storage)
            if known is None:
                return  # alone in its storage, and nothing else of it was copied
        known = [
            item for item in self._copies.get(storage) or [] if item.memo == memo and item.place == place
        ]
        copied = Copied(memo, place, next(clock), Part.of(own), weakref.ref(copy))
        for item in known:
            if broken(item, copied):
                self._hear(item, copied, "Parameter.__deepcopy__", own)
        self._copies.put(storage, [*known[-MOST_COPIES:], copied])

    def _move(self, label: str, call: Callable[..., Any]) -> Callable[..., Any]:
        before = self._context.guarded(label, self._before_move)
        after = self._context.guarded(label, self._after_move)

        def move(self: Any, *args: Any, **kwargs: Any) -> Any:
            if is_compiling():
                return call(self, *args, **kwargs)
            known: dict[str, Any] = {}
            before(self, known)
            result = call(self, *args, **kwargs)
            after(label, self, known, user_place(2))
            return result

        return functools.update_wrapper(move, call)

    def _before_move(self, module: torch.nn.Module, known: dict[str, Any]) -> None:
        known["storages"] = {
            name: weakref.ref(tensor.untyped_storage())
            for name, tensor in named_tensors(module)
            if type(tensor) in PLAIN and tensor.layout is torch.strided
        }
        known["links"] = links(module)

    def _after_move(
        self, label: str, module: torch.nn.Module, known: dict[str, Any], place: Place | None
    ) -> None:
        own = dict(named_tensors(module))
        order = next(clock)
        for first, second in known.get("links", ()):
            one = Copied(0, place, order, first[1], weakref.ref(own[first[0]]))
            two = Copied(0, place, order, second[1], weakref.ref(own[second[0]]))
            if parted(one, two):
                names = "" if broken(one, two) else f"`{first[0]}` and `{second[0]}`"
                self._hear(one, two, label, own[second[0]], names)
        for name, ref in known.get("storages", {}).items():
            old = ref()
            if old is not None and type(own.get(name)) in PLAIN and own[name].untyped_storage() is not old:
                self._hear_stale(weakref.ref(module), ref, label, place)

    def _hear(self, one: Copied, two: Copied, op: str, original: torch.Tensor, names: str = "") -> None:
        """Two that were one are two now: wait for a write into either."""
        made = self._registered.get(original.untyped_storage()) or []
        trail = [Moment(Kind.VIEWED, "", site_of(made[0].place), made[0].order)] if made else []

        def written(tensor: torch.Tensor, raw: RawWrite) -> None:
            first, second = one.copy(), two.copy()
            if first is None or second is None or one.place is None or one.place in self._told:
                return
            if raw[1] is None or first.untyped_storage() is second.untyped_storage():
                return
            self._told.add(one.place)
            write = Write(*raw)
            moment = Moment(Kind.WRITTEN, write.op, site_of(write.place), write.order)
            note, drawn = (
                "parted" if names else "unlinked",
                memory_of(Drawn("one", first), Drawn("the other", second)),
            )
            self._report(site_of(one.place), op, note, (*trail, moment), names, drawn)

        for item in (one, two):
            copy = item.copy()
            if copy is not None:
                listen(ledger_of(copy), written)

    def _hear_stale(
        self, module: weakref.ref[Any], storage: weakref.ref[Any], op: str, place: Place | None
    ) -> None:
        """Somebody still holds the memory that the module has left: wait for a write into it."""
        converted = Moment(Kind.COPIED, op, site_of(place), next(clock))
        old = storage()

        def written(tensor: torch.Tensor, raw: RawWrite) -> None:
            owner, memory = module(), storage()
            if owner is None or memory is None or raw[1] is None:
                return
            if not any(_is_inside(owner, frame) for frame in user_frames(4)):
                return
            site = stale_holder(owner, memory)
            if site is not None and place is not None and place not in self._told:
                self._told.add(place)
                write = Write(*raw)
                moment = Moment(Kind.WRITTEN, write.op, site_of(write.place), write.order)
                drawn = memory_of(Drawn("left behind", tensor))
                self._report(site, op, "stale", (converted, moment), "", drawn)

        if old is not None:
            from tensafe.runtime.storages.ledger import ledger_of_storage

            listen(ledger_of_storage(old), written)

    def _report(
        self,
        site: Site | None,
        op: str,
        note: str,
        trail: tuple[Moment, ...],
        label: str = "",
        drawn: tuple[Memory, ...] = (),
    ) -> None:
        if site is None:
            return
        value = Value(frozenset(), trail, label)
        call = Call(Kind.UNTIED, op, site, next(clock), {"tied": value}, note=note, memory=drawn)
        self._context.ask(call, LedgerHistory({}))


def _is_inside(module: torch.nn.Module, frame: Any) -> bool:
    """Whether a frame runs a method of the module or of one of its children."""
    own = first_argument(frame)
    return own is module or any(own is child for child in _children(module))


def _children(module: torch.nn.Module) -> list[Any]:
    children = list(attribute(module, "_modules").values())
    return children + [deeper for child in children if child is not None for deeper in _children(child)]
