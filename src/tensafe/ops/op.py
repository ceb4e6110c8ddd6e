"""What one operation does to memory and to the graph, as a value."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Gives(str, Enum):
    """What the result's memory is."""

    FRESH = "fresh"
    VIEW = "view"
    EITHER = "either"  # a view when nothing has to change, else a copy


class Saves(str, Enum):
    """What autograd keeps for the backward of the operation."""

    NOTHING = "nothing"
    INPUT = "input"  # the first tensor
    INPUTS = "inputs"  # every tensor
    OUTPUT = "output"
    BOTH = "input and output"
    FACTORS = "factors"  # each tensor whose fellow needs a gradient: products
    DIVISOR = "divisor"  # the second tensor, and the first where the second needs a gradient
    POWER = "power"  # the input for a number as exponent; everything otherwise
    SECOND = "second"  # the second tensor alone


class Dtype(str, Enum):
    """What is known of a tensor's element type."""

    UNKNOWN = "unknown"
    FLOAT = "float"
    BOOL = "bool"
    INTEGER = "integer"


@dataclass(frozen=True, slots=True)
class Op:
    """An operation by PyTorch's own name, as a method, in `torch` or in `torch.nn.functional`."""

    name: str
    gives: Gives = Gives.FRESH
    saves: Saves = Saves.NOTHING
    dtype: Dtype = Dtype.UNKNOWN  # of the result; UNKNOWN means that of the input
    differentiable: bool = True


@dataclass(frozen=True, slots=True)
class LayerOp:
    """A class of `torch.nn`: the operation its call runs, and whether it owns parameters."""

    name: str
    op: Op
    owns_parameters: bool = False
    takes_inplace: bool = False
