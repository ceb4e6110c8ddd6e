"""Patches with their undo: everything that tensafe replaces in torch goes through here and comes back."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

_ABSENT = object()


class Patches:
    """A stack of replaced attributes."""

    def __init__(self) -> None:
        self._undo: list[tuple[Any, str, Any]] = []

    def replace(self, owner: Any, name: str, value: Any) -> None:
        """Set an attribute and remember what the owner itself held (a class may have inherited it)."""
        own = vars(owner).get(name, _ABSENT)
        setattr(owner, name, value)
        self._undo.append((owner, name, own))

    def wrap(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Replace an attribute by `make(original)`; a name that this torch does not have is passed over."""
        original = getattr(owner, name, None)
        if original is not None:
            self.replace(owner, name, _found_by_pickle(make(original), owner, name))

    def undo(self) -> None:
        """Put everything back, last patch first; what somebody else patched meanwhile on top goes too."""
        while self._undo:
            owner, name, own = self._undo.pop()
            if own is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, own)


def _found_by_pickle(wrapper: Any, owner: Any, name: str) -> Any:
    """Pickle stores a function by module and qualified name, and wants to find the very object there."""
    if isinstance(wrapper, FunctionType):
        inside_module = isinstance(owner, ModuleType)
        wrapper.__module__ = owner.__name__ if inside_module else owner.__module__
        wrapper.__qualname__ = name if inside_module else f"{owner.__qualname__}.{name}"
    return wrapper
