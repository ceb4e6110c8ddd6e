"""The stored table in the few words that the static engine reasons with: gives, saves, differentiable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tensafe.ops.op import Dtype, Gives, Op, Saves
from tensafe.ops.stored import Stored
from tensafe.ops.words import IN_BETWEEN

# Whole numbers and masks: kept as well, and not followed, for they are hardly ever written in place.
NOT_FOLLOWED = frozenset({"index", "indices", "mask", "condition", "source", "dim", IN_BETWEEN})
# The operation behind a function of another name.
OTHER_NAMES = {
    "logsigmoid": "log_sigmoid",
    "grid_sample": "grid_sampler",
    "cross_entropy": "cross_entropy_loss",
    "multiply": "mul",
    "divide": "div",
    "true_divide": "div",
}
_GIVES = {"view": Gives.VIEW, "either": Gives.EITHER}


def op_of(name: str, table: Stored) -> Op:
    """The operation of this name as the table has it; KeyError when it has none."""
    facts = table.data(_row(name, table))["groups"][0]
    gives = _GIVES.get(facts.get("gives", "copy"), Gives.FRESH)
    differentiable = facts.get("graph", "kept") not in ("cut", "none")
    saves = _saves(facts) if gives is Gives.FRESH and differentiable else Saves.NOTHING
    return Op(name, gives=gives, saves=saves, dtype=Dtype.UNKNOWN, differentiable=differentiable)


def _row(name: str, table: Stored) -> str:
    places = (OTHER_NAMES.get(name, name), f"F.{name}", f"linalg_{name}", f"x.{name}()")
    return next((place for place in places if place in table), name)


def _saves(facts: Mapping[str, Any]) -> Saves:
    """The category of what is kept; a superset where the table says more than a category can."""
    first = facts["arguments"][0]
    results = {"result", *facts.get("results", ())}
    saved = {
        wanted: {one for one in names if one not in NOT_FOLLOWED}
        for wanted, names in facts.get("saves", {}).items()
    }
    everything = set().union(*saved.values())
    outputs, inputs = everything & results, everything - results
    if not inputs:
        return Saves.OUTPUT if outputs else Saves.NOTHING
    if inputs == {first}:
        return Saves.BOTH if outputs else Saves.INPUT
    if first not in inputs and len(inputs) == 1:
        return Saves.SECOND
    return _of_several(first, saved)


def _of_several(first: str, saved: Mapping[str, set[str]]) -> Saves:
    others = [name for name in saved if name != first]
    if first in saved and len(others) == 1 and saved[first] == {others[0]}:
        if saved[others[0]] == {first}:
            return Saves.FACTORS
        if saved[others[0]] == {first, others[0]}:
            return Saves.DIVISOR
    return Saves.INPUTS


def writers(table: Stored) -> frozenset[str]:
    """The methods and functions whose name ends in an underscore and that write their first argument."""
    return frozenset(name for name in table if _is_in_place(name) and '"writes":["' in table.line(name))


def not_writers(table: Stored) -> frozenset[str]:
    """Those that end in an underscore and write no element."""
    return frozenset(name for name in table if _is_in_place(name) and '"writes":["' not in table.line(name))


def _is_in_place(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_") and name.isidentifier()
