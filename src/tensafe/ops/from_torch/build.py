"""Builds the table: schemas and formulas, corrected, spelled in Python, and run where only that can tell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from tensafe.ops.advice import ADVICE
from tensafe.ops.corrections import CORRECTIONS
from tensafe.ops.forms import FORMS
from tensafe.ops.from_torch.examples import with_examples
from tensafe.ops.from_torch.formulas import Formula, formulas
from tensafe.ops.from_torch.running import by_spelling, learned, python_rows
from tensafe.ops.from_torch.samples import calls
from tensafe.ops.from_torch.schemas import Overload, overloads
from tensafe.ops.from_torch.spellings import spelled
from tensafe.ops.row import Facts, Graph, Result, Row, union


def native_rows() -> dict[str, Row]:
    """A row for every aten operation, as schemas, formulas and corrections have it."""
    known = formulas()
    rows = {name: _row(name, group, known) for name, group in overloads(frozenset(known)).items()}
    return {name: _spelled(_twins(_foreach(_corrected(row)), rows)) for name, row in rows.items()}


def build() -> dict[str, Row]:
    """The whole table; every sample is run of what only running tells."""
    rows = native_rows() | {row.name: row for row in FORMS}
    index = by_spelling(rows.values())

    def is_open(spelling: str) -> bool:
        row = rows.get(index.get(spelling, ""))
        return row is None or any(facts.graph is Graph.PARTS for facts in row.groups)

    made = list(calls(wanted=is_open))
    rows |= {row.name: _corrected(row) for row in python_rows(rows, made)}
    return with_examples(learned(rows, made))


def _spelled(row: Row) -> Row:
    return (
        row if row.kind == "script" else replace(row, spelled=spelled(row.name), **ADVICE.get(row.name, {}))
    )


def _row(name: str, group: list[Overload], known: dict[str, Formula]) -> Row:
    plain = [one for one in group if not one.out] or group
    folded: dict[Facts, list[Overload]] = defaultdict(list)
    for one in plain:
        folded[_facts(one, known.get(one.full_name))].append(one)
    return Row(
        name=name,
        kind="script" if all(one.script for one in group) else "aten",
        groups=tuple(sorted((_fold(facts, of) for facts, of in folded.items()), key=_plainest)),
        out=union(one.out for one in group),
    )


def _facts(one: Overload, formula: Formula | None) -> Facts:
    graph = (formula.graph if formula else None) or Graph.PARTS
    missing = [] if formula is None else ["x" if name == "self" else name for name in formula.missing]
    return Facts(
        results=one.results if one.results not in (("result",), ()) else (),
        gives=one.gives,
        of=one.of,
        writes=one.writes,
        graph=Graph.CUT if one.gives is Result.VALUE and graph is Graph.PARTS else graph,
        graph_when=f"backward raises for the gradient of {' and '.join(missing)}: not implemented"
        if missing and graph is Graph.KEPT
        else "",
        saves=tuple(sorted(formula.saves.items())) if formula else (),
    )


def _fold(facts: Facts, of: list[Overload]) -> Facts:
    arguments = union(one.arguments for one in of)
    return replace(facts, overloads=tuple(one.overload for one in of), arguments=arguments)


def _plainest(facts: Facts) -> int:
    """The overload that tensors take comes first."""
    return 0 if "Tensor" in facts.overloads else 1 if "" in facts.overloads else 2


def _corrected(row: Row) -> Row:
    correction = CORRECTIONS.get(row.name)
    if correction is None:
        return row
    groups = [replace(one, **correction.facts) for one in row.groups]
    for overload, facts in correction.overloads.items():
        groups = _apart(groups, overload, facts)
    return replace(row, groups=tuple(groups), **correction.row)


def _apart(groups: list[Facts], overload: str, facts: Mapping[str, Any]) -> list[Facts]:
    """One overload out of its group, with facts of its own, at the end."""
    others = []
    for one in groups:
        rest = tuple(name for name in one.overloads if name != overload)
        others += [replace(one, overloads=rest)] if rest else []
    return [*others, replace(groups[0], overloads=(overload,), **facts)]


def _foreach(row: Row) -> Row:
    """The Python bindings of the in-place list operations give the list back; the schemas say nothing is."""
    if not (row.name.startswith("_foreach_") and row.name.endswith("_")):
        return row
    return replace(row, groups=tuple(replace(one, gives=Result.ITSELF, of=("self",)) for one in row.groups))


def _twins(row: Row, rows: Iterable[str]) -> Row:
    if row.name.endswith("_") and row.name[:-1] in rows:
        return replace(row, out_of_place=row.name[:-1])
    return replace(row, in_place=f"{row.name}_") if f"{row.name}_" in rows else row
