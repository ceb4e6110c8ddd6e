"""A fix to and from JSON: the action's class name and its fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from tensafe.facts import Site
from tensafe.findings.finding import (
    Action,
    AssignThroughIndex,
    CallInstead,
    Disallow,
    DropCall,
    Fix,
    OutOfPlace,
    SetKeyword,
    Wrap,
)

ACTIONS: tuple[type[Action], ...] = (
    Wrap,
    OutOfPlace,
    AssignThroughIndex,
    CallInstead,
    SetKeyword,
    DropCall,
    Disallow,
)


def fix_to_json(fix: Fix) -> dict[str, Any]:
    """`{"safe": ..., "title": ..., "action": {"do": "Wrap", "site": {...}, ...}}`."""
    return {
        "safe": fix.safe,
        "title": fix.title,
        "action": {"do": type(fix.action).__name__, **asdict(fix.action)},
    }


def fix_from_json(data: Mapping[str, Any]) -> Fix:
    """The inverse of `fix_to_json`; raises KeyError, TypeError or ValueError on anything else."""
    fields = dict(data["action"])
    name = fields.pop("do")
    action = next((kind for kind in ACTIONS if kind.__name__ == name), None)
    if action is None:
        raise ValueError(f"unknown fix action {name!r}")
    fields["site"] = Site(**fields["site"])
    for name in {"imports", "names"} & fields.keys():
        fields[name] = tuple(fields[name])
    return Fix(action(**fields), bool(data["safe"]), str(data["title"]))
