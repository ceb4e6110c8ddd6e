"""An object's own attributes, read without running any of its code: no property, no metaclass."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

Read = Callable[[object], dict[str, Any]]

_readers: dict[int, tuple[type, Read | None]] = {}  # by `id`: hashing a type may run its metaclass
_MRO: Any = type.__dict__["__mro__"]
_NAMESPACE: Any = type.__dict__["__dict__"]
_NAME: Any = type.__dict__["__name__"]
_MODULE: Any = type.__dict__["__module__"]
_QUALNAME: Any = type.__dict__["__qualname__"]


def mro_of(kind: type) -> tuple[type, ...]:
    """The classes of a type, whatever its metaclass says."""
    return tuple(_MRO.__get__(kind))


def namespace_of(kind: type) -> Any:
    """The class dictionary."""
    return _NAMESPACE.__get__(kind)


def is_kind(kind: type, ancestor: type) -> bool:
    """Whether a type is `ancestor` or derives from it, whatever its metaclass says."""
    return type.__subclasscheck__(ancestor, kind)


def kind_name(kind: type) -> str:
    """`Linear`."""
    return str(_NAME.__get__(kind))


def full_name(kind: type) -> str:
    """`torch.nn.modules.linear.Linear`; without its module where that is no text."""
    module = module_of(kind)
    qualname = str(_QUALNAME.__get__(kind))
    return f"{module}.{qualname}" if module else qualname


def module_of(kind: type) -> str:
    """The module that a class was defined in, "" where that is no text."""
    found = _MODULE.__get__(kind)
    return found if type(found) is str else ""


def of_class(kind: type, name: str) -> Any:
    """What the class dictionaries of a type hold under a name, None where there is nothing."""
    return next((namespace_of(place)[name] for place in mro_of(kind) if name in namespace_of(place)), None)


def has_attributes(kind: type) -> bool:
    """Whether objects of this type have a `__dict__` or slots."""
    return _reader(kind) is not None


def attributes_of(value: object) -> dict[str, Any]:
    """Attributes in `__dict__` and in slots; unset slots are left out."""
    reader = _reader(type(value))
    return {} if reader is None else reader(value)


def _reader(kind: type) -> Read | None:
    known = _readers.get(id(kind))
    if known is None:
        known = _readers[id(kind)] = (kind, _make_reader(kind))
    return known[1]


def _make_reader(kind: type) -> Read | None:
    own: Any = None
    slots: list[tuple[str, Any]] = []
    for place in mro_of(kind):
        if place is object:
            continue
        names = namespace_of(place)
        found = names.get("__dict__")
        if own is None and type(found) in (types.GetSetDescriptorType, types.MemberDescriptorType):
            own = found
        slots += [
            (name, slot)
            for name, slot in names.items()
            if type(slot) is types.MemberDescriptorType and name != "__dict__"
        ]
    if own is None and not slots:
        return None

    def read(value: object) -> dict[str, Any]:
        attributes = dict(own.__get__(value)) if own is not None else {}
        for name, slot in slots:
            try:
                attributes.setdefault(name, slot.__get__(value))
            except AttributeError:  # the slot is unset
                continue
        return attributes

    return read
