"""Objects to copy, drawn by hypothesis: containers, instances, modules, tensors, ties, views and cycles."""

from __future__ import annotations

import enum
from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st
from torch import nn


class Plain:
    def __init__(self, **held: Any) -> None:
        self.__dict__.update(held)


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b


class SlottedAndMore(Slotted):
    pass


@dataclass
class Record:
    value: Any
    others: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class Frozen:
    value: Any


class Words(list):  # type: ignore[type-arg]
    pass


class Table(dict):  # type: ignore[type-arg]
    pass


class Colour(enum.Enum):
    RED = 1


class Own:
    """Copies itself, with the memo that it is given."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def __deepcopy__(self, memo: dict[int, Any]) -> Own:
        import copy

        new = Own(None)
        memo[id(self)] = new
        new.held = copy.deepcopy(self.held, memo)
        return new


class Stated:
    """Pickles by a state that is not its attributes."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def __getstate__(self) -> tuple[Any]:
        return (self.held,)

    def __setstate__(self, state: tuple[Any]) -> None:
        (self.held,) = state


Pair = namedtuple("Pair", ["first", "second"])


class Net(nn.Module):
    def __init__(self, tensors: list[torch.Tensor], held: Any) -> None:
        super().__init__()
        self.register_buffer("buffer", tensors[0])
        self.layer = nn.Linear(2, 2)
        self.again = self.layer
        self.weight = nn.Parameter(torch.randn(3, requires_grad=False))
        self.held = held
        self.layer.register_forward_hook(print)


@dataclass
class Tree:
    root: Any
    parts: list[Any]


def function(x: int) -> int:
    return x


@st.composite
def tensors(draw: st.DrawFn, bases: list[torch.Tensor]) -> torch.Tensor:
    """A new tensor, or a view of an earlier one."""
    if bases and draw(st.booleans()):
        base = draw(st.sampled_from(bases))
        flat = base.detach().as_strided((base.untyped_storage().nbytes() // base.itemsize,), (1,), 0)
        start = draw(st.integers(0, max(0, len(flat) - 1)))
        step = draw(st.integers(1, 3))
        return draw(st.sampled_from([flat[start::step], flat[start:], base.detach(), flat[:0]]))
    dtype = draw(st.sampled_from([torch.float32, torch.int64, torch.bfloat16, torch.uint8, torch.complex64]))
    shape = draw(st.sampled_from([(), (3,), (2, 3), (0,), (1, 4)]))
    made = torch.randint(0, 100, shape).to(dtype)
    kind = draw(st.integers(0, 4))
    if kind == 1 and dtype is torch.float32:
        made.requires_grad_()
        made.grad = torch.ones_like(made)
    if kind == 2 and made.dim() == 2:
        made = made.t()
    if kind == 3:
        made.note = ["kept", made.clone()]  # type: ignore[attr-defined]
    bases.append(made)
    return made


def holders(inner: Any) -> list[Any]:
    """Ways to hold two things."""
    a, b = inner
    return [
        [a, b], (a, b), {"a": a, 1: b}, OrderedDict(a=a, b=b), defaultdict(list, a=a, b=b), deque([a, b], 5),
        Plain(a=a, b=b), Slotted(a, b), SlottedAndMore(a, b), Record(a, [b]), Frozen((a, b)), Words([a, b]),
        Table(x=a, y=b), Own([a, b]), Stated([a, b]), Pair(a, b), [a, a, (b, b)], {"x": {"y": a}, "z": [b]},
    ]  # fmt: skip


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """An object with shared parts; now and then it holds itself."""
    bases: list[torch.Tensor] = []
    pool: list[Any] = [1, "text", None, 2.5, b"raw", (1, 2), Colour.RED, function, torch.float32, Plain]
    pool += [{1, 2}, frozenset(["a"]), np.arange(3), range(3), bytearray(b"x"), torch.Size([2])]
    for _ in range(draw(st.integers(1, 8))):
        what = draw(st.integers(0, 3))
        if what == 0:
            pool.append(draw(tensors(bases)))
        elif what == 1 and bases:
            pool.append(Net([draw(st.sampled_from(bases)).detach()], draw(st.sampled_from(pool))))
        else:
            two = draw(st.sampled_from(pool[-6:])), draw(st.sampled_from(pool))
            pool.append(draw(st.sampled_from(holders(two))))
    parts = pool[-draw(st.integers(1, 6)) :]
    root: Any = list(parts)
    if draw(st.booleans()):
        loop = draw(
            st.sampled_from([root, [root], {"root": root}, Plain(root=root), Slotted(root, 1), Own(root)])
        )
        root.append(loop)
    return Tree(root, parts)
