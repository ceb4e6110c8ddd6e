"""How an object was reached, as a chain of steps, and its name in Python's own spelling."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable
from typing import Any

from tensafe.aliases.attributes import attributes_of, is_kind, kind_name

LONGEST_NAME = 200
LONGEST_KEY = 60
NUMBERS = frozenset(map(id, (int, float, bool, bytes, type(None), complex)))

Spell = Callable[[object], str | None]
"""The name of a tensor, None for anything else."""


class Path:
    """One step from the object before: an attribute, an item, or the root's own name."""

    __slots__ = ("before", "how", "is_private", "kind", "step", "value")

    def __init__(
        self,
        before: Path | None,
        how: str,
        step: Any,
        value: object,
        kind: str = "",
        is_private: bool = False,
    ) -> None:
        self.before = before
        self.how = how  # "root", "attribute", "item", "member", "state"
        self.step = step
        self.value = value  # what is reached
        self.kind = kind  # "parameter", "buffer", "gradient", "optimizer state", "held"; "" when not said
        self.is_private = is_private  # leads through torch's own bookkeeping

    def passes(self, value: object) -> bool:
        """Whether the way here already went through this object."""
        path: Path | None = self
        while path is not None:
            if path.value is value:
                return True
            path = path.before
        return False


def natural(name: str) -> tuple[str | int, ...]:
    """To sort names so that `x[2]` comes before `x[10]`."""
    return tuple(int(part) if place % 2 else part for place, part in enumerate(_NUMBERS.split(name)))


_NUMBERS = re.compile(r"([0-9]{1,18})")


def spelled(path: Path, spell: Spell) -> str:
    """The name, cut in the middle where it is very long; from a tensor on the way by that one's name."""
    pieces: list[str] = []
    end: Path | None = path
    while end is not None:
        known = spell(end.value) if end is not path else None
        pieces.append(known or _piece(end, spell))
        end = end.before if known is None else None
    if len(pieces) > LONGEST_NAME:
        return f"{''.join(pieces[:-40:-1])}…{''.join(reversed(pieces[:39]))}"
    text = "".join(reversed(pieces))
    half = LONGEST_NAME // 2
    return text if len(text) <= LONGEST_NAME else f"{text[:half]}…{text[-half + 1 :]}"


def _piece(path: Path, spell: Spell) -> str:
    if path.how == "root":
        return str(path.step)
    if path.how == "attribute":
        return f".{path.step if type(path.step) is str else key_text(path.step, spell)}"
    if path.how == "member":
        return f"{{{path.step}}}"
    if path.how == "state":
        return f".state[{key_text(path.step, spell)}]"
    return f"[{key_text(path.step, spell)}]"


def key_text(key: object, spell: Spell) -> str:
    """A dictionary key as one writes it; of another type than Python's own, the name of its type."""
    kind = type(key)
    if kind is str:
        text = repr(key)
        text = text if '"' in text else f'"{text[1:-1]}"'
    elif id(kind) in NUMBERS:
        text = repr(key)
    elif kind is tuple and len(key) <= 8:  # type: ignore[arg-type]
        text = "(" + ", ".join(key_text(one, spell) for one in key) + ")"  # type: ignore[attr-defined]
    elif is_kind(kind, enum.Enum):
        text = f"{kind_name(kind)}.{attributes_of(key).get('_name_')}"
    else:
        text = spell(key) or f"<{kind_name(kind)}>"
    return text if len(text) <= LONGEST_KEY else f"{text[: LONGEST_KEY // 2]}…{text[-LONGEST_KEY // 2 :]}"
