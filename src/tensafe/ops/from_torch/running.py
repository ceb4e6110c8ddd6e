"""What running shows of the operations whose schemas and formulas cannot tell."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from tensafe.ops.from_torch.binding import parameters
from tensafe.ops.from_torch.call import Call
from tensafe.ops.from_torch.observing import Seen
from tensafe.ops.from_torch.samples import NotRun, run
from tensafe.ops.names import DUNDERS
from tensafe.ops.row import IN_BETWEEN, Facts, Graph, Result, Row, union


@dataclass(slots=True)
class Noted:
    """What all calls of some overloads did, together."""

    graphs: set[Graph] = field(default_factory=set)
    saves: dict[str, None] = field(default_factory=dict)
    shares: dict[str, None] = field(default_factory=dict)
    own: bool = False
    writes: dict[str, None] = field(default_factory=dict)
    results: set[int] = field(default_factory=set)
    takes_out: bool = False
    kept_nothing: bool = False

    def add(self, seen: Seen, out: bool = False) -> None:
        if out:
            self.takes_out = True
            return
        self.graphs.add(seen.graph)
        if seen.graph is not Graph.CUT:  # what a part saved goes with the part's graph
            self.saves.update(dict.fromkeys(sorted(seen.saves)))
            self.kept_nothing = self.kept_nothing or (seen.graph is Graph.KEPT and not seen.saves)
        self.shares.update(dict.fromkeys(sorted(seen.shares)))
        self.writes.update(dict.fromkeys(sorted(seen.writes)))
        self.own = self.own or seen.own
        self.results.add(seen.results)


def by_spelling(rows: Iterable[Row]) -> dict[str, str]:
    """The row that each spelling means."""
    found: dict[str, str] = {}
    for row in rows:
        for one in row.spelled:
            found.setdefault(one, row.name)
    for row in rows:
        if row.kind in ("aten", "script"):
            found.setdefault(f"aten::{row.name}", row.name)
            found.setdefault(f"x.{row.name}", row.name)
    for dunder, name in DUNDERS.items():
        found.setdefault(f"x.__{dunder}__", name)
    return found


def runs(
    calls: Iterable[Call], rows: Mapping[str, Row], wanted: Mapping[str, Row] | None = None
) -> Iterator[tuple[Call, Row, str | None, Seen]]:
    """Every call of the rows, or of the wanted ones, that torch does not refuse, made."""
    index = by_spelling(rows.values())
    for call in calls:
        row = (wanted or rows).get(index.get(call.spelling, ""))
        if row is not None:
            try:
                overload, seen = run(call, row)
            except NotRun:
                continue
            yield call, row, overload, seen


def learned(rows: Mapping[str, Row], calls: Iterable[Call]) -> dict[str, Row]:
    """The rows, with graph and saves as seen where they are only the parts' own."""
    notes: dict[str, list[tuple[str | None, Seen]]] = defaultdict(list)
    wanted = {name: row for name, row in rows.items() if any(f.graph is Graph.PARTS for f in row.groups)}
    for _, row, overload, seen in runs((call for call in calls if not call.out), rows, wanted):
        notes[row.name].append((overload, seen))
    return {name: _taught(row, notes[name]) if name in notes else row for name, row in rows.items()}


def _taught(row: Row, notes: list[tuple[str | None, Seen]]) -> Row:
    return replace(row, groups=tuple(_seen(facts, notes, len(row.groups) == 1) for facts in row.groups))


def _seen(facts: Facts, notes: list[tuple[str | None, Seen]], alone: bool) -> Facts:
    if facts.graph is not Graph.PARTS:
        return facts
    noted = Noted()
    for overload, seen in notes:
        if alone or overload is None or overload in facts.overloads:
            noted.add(seen)
    return replace(facts, **graph_and_saves(facts, noted)) if noted.graphs - {Graph.NONE} else facts


def graph_and_saves(facts: Facts, noted: Noted) -> dict[str, Any]:
    """The two facts that only running tells."""
    graphs = noted.graphs - {Graph.NONE}
    graph = Graph.EITHER if len(graphs) > 1 else next(iter(graphs), Graph.NONE)
    names = union([_named(one, facts) for one in noted.saves if one != IN_BETWEEN] for _ in "1")
    names += (IN_BETWEEN,) if IN_BETWEEN in noted.saves else ()
    when = facts.saves_when or (
        "or nothing, depending on the arguments" if names and noted.kept_nothing else ""
    )
    saves = (("any", names),) if names else ()
    return {"graph": graph, "saves": saves, "saves_when": when, "seen": True}


def _named(label: str, facts: Facts) -> str:
    place = label.removeprefix("result")
    known = label.startswith("result") and place.isdigit() and int(place) < len(facts.results)
    return facts.results[int(place)] if known else label


def python_rows(rows: Mapping[str, Row], calls: Iterable[Call]) -> list[Row]:
    """Rows for the public functions written in Python that are no operation of their own."""
    index = by_spelling(rows.values())
    noted: dict[str, Noted] = defaultdict(Noted)
    made: dict[str, Row] = {}
    for call in calls:
        home, _, name = call.spelling.rpartition(".")
        if call.spelling not in index and home != "x" and not name.startswith("_"):
            made.setdefault(call.spelling, _python_row(call))
            with contextlib.suppress(NotRun):
                seen = run(call, made[call.spelling])[1]
                noted[call.spelling].add(seen, call.out)
    return [_known(row, noted[name]) for name, row in made.items() if name in noted]


def _python_row(call: Call) -> Row:
    """A row that does not know yet what the function does."""
    method = "x." + call.spelling.rpartition(".")[2]
    spelled = (
        (call.spelling, method)
        if call.spelling == f"torch.{method[2:]}" and _is_method(method)
        else (call.spelling,)
    )
    facts = Facts(arguments=parameters(call) or ())
    return Row(name=call.spelling, kind="python", groups=(facts,), spelled=spelled)


def _is_method(spelling: str) -> bool:
    return callable(getattr(torch.Tensor, spelling[2:], None))


def _known(row: Row, noted: Noted) -> Row:
    facts = python_facts(row.groups[0].arguments, noted)
    return replace(row, groups=(facts,), out=("out",) if noted.takes_out else ())


def python_facts(arguments: tuple[str, ...], noted: Noted) -> Facts:
    """The facts of a function that is written in Python, as its calls show them."""
    shares = tuple(noted.shares)
    gives = Result.EITHER if shares and noted.own else Result.VIEW if shares else Result.COPY
    gives = gives if noted.results != {0} else Result.VALUE
    facts = Facts(arguments=arguments, gives=gives, of=shares, writes=tuple(noted.writes))
    return replace(facts, **graph_and_saves(facts, noted))
