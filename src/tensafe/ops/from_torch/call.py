"""One call of one operation, not made yet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F


@dataclass(frozen=True, slots=True)
class Call:
    """An operation with its arguments, and how Python spells it."""

    operation: str  # by the name of torch's list of operations: `nn.functional.relu`
    spelling: str  # `F.relu`, `torch.add`, `x.add_`
    call: Callable[..., Any]
    given: tuple[Any, ...]
    named: dict[str, Any]
    dtype: torch.dtype
    out: bool = False


def function_named(spelling: str) -> Callable[..., Any] | None:
    """The function that a spelling names, None where this torch has none."""
    home, _, name = spelling.rpartition(".")
    places: dict[str, Any] = {"x": torch.Tensor, "F": F, "torch": torch}
    place = places.get(home) or torch
    for part in home.split(".")[1:]:
        place = getattr(place, part, None)
    found = getattr(place, name, None)
    return found if callable(found) else None
