"""Patches with their undo: everything that tensafe replaces in torch goes through here and comes back.

Several stacks of patches may be in place at once (an engine, a watchpoint, a healed stretch) and go in any
order: a layer that is taken out from under another is left out of it.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

from tensafe.uncompiled import compiler_knows, make_compiler_look_again

_ABSENT = object()
Make = Callable[[Any], Any]


class _Layer:
    """One replaced attribute: what was there, and what is there now."""

    def __init__(self, owner: Any, name: str, make: Make, own: Any, original: Any) -> None:
        self.owner = owner
        self.name = name
        self._make = make
        self.own = own  # what the owner itself held (a class may have inherited it)
        self.original = original
        self.value = _found_by_pickle(make(original), owner, name)

    @property
    def is_outermost(self) -> bool:
        return vars(self.owner).get(self.name, _ABSENT) is self.value

    def lay_on(self, own: Any, original: Any) -> None:
        """Wrap something else from now on."""
        self.own, self.original = own, original
        self.value = _found_by_pickle(self._make(original), self.owner, self.name)

    def uncover(self) -> None:
        if self.own is _ABSENT:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, self.own)


_layers: dict[tuple[int, str], list[_Layer]] = {}
"""The layers on each attribute, innermost first, of all stacks; the layers keep the owners alive."""
_known_before = [False]
"""Whether `torch.compile` had looked at torch's functions before the first of all layers."""


class Patches:
    """A stack of replaced attributes."""

    def __init__(self) -> None:
        self._undo: list[_Layer] = []

    def replace(self, owner: Any, name: str, value: Any) -> None:
        """Set an attribute and remember what was there."""
        self._lay(owner, name, lambda _: value, getattr(owner, name, None))

    def wrap(self, owner: Any, name: str, make: Make, *, innermost: bool = False) -> None:
        """Replace an attribute by `make(original)`; a name that this torch does not have is passed over.

        `innermost` puts the wrapper under those of other stacks, which then wrap it.
        """
        original = getattr(owner, name, None)
        if original is None:
            return
        above = _layers.get((id(owner), name), [])
        if innermost and above and above[-1].is_outermost:
            layer = _Layer(owner, name, make, above[0].own, above[0].original)
            self._undo.append(layer)
            _lay_again(above, layer.value, _as_found(layer))
            above.insert(0, layer)
        else:
            self._lay(owner, name, make, original)

    def _lay(self, owner: Any, name: str, make: Make, original: Any) -> None:
        if not _layers:
            _known_before[0] = compiler_knows()
        layer = _Layer(owner, name, make, vars(owner).get(name, _ABSENT), original)
        setattr(owner, name, layer.value)
        self._undo.append(layer)
        _layers.setdefault((id(owner), name), []).append(layer)

    def undo(self) -> None:
        """Put everything back, last patch first; what somebody else patched meanwhile on top goes too."""
        while self._undo:
            _take_out(self._undo.pop())
            if not _layers and not _known_before[0] and compiler_knows():
                make_compiler_look_again()


def _take_out(layer: _Layer) -> None:
    key = (id(layer.owner), layer.name)
    layers = _layers[key]
    place = layers.index(layer)
    above = layers[place + 1 :]
    del layers[place]
    if not layers:
        del _layers[key]
    if not above:
        layer.uncover()
    elif above[0].own is layer.value:
        _lay_again(above, layer.own, layer.original)


def _lay_again(layers: list[_Layer], own: Any, original: Any) -> None:
    """Wrap anew from the inside out; a foreign patch in between ends it, and keeps what it had."""
    for place, layer in enumerate(layers):
        before, outermost = layer.value, layer.is_outermost
        layer.lay_on(own, original)
        if outermost:
            setattr(layer.owner, layer.name, layer.value)
            return
        if place + 1 < len(layers) and layers[place + 1].own is not before:
            return
        own, original = layer.value, _as_found(layer)


def _as_found(layer: _Layer) -> Any:
    """What `getattr` finds of it."""
    value = layer.value
    return value.__get__(None, layer.owner) if isinstance(value, classmethod | staticmethod) else value


def _found_by_pickle(wrapper: Any, owner: Any, name: str) -> Any:
    """Pickle stores a function by module and qualified name, and wants to find the very object there."""
    if isinstance(wrapper, FunctionType):
        inside_module = isinstance(owner, ModuleType)
        wrapper.__module__ = owner.__name__ if inside_module else owner.__module__
        wrapper.__qualname__ = name if inside_module else f"{owner.__qualname__}.{name}"
    return wrapper
