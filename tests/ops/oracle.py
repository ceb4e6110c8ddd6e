"""What a call did against what the table says of it, in words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from tensafe.ops.from_torch.observing import Seen
from tensafe.ops.row import IN_BETWEEN, OLD, Facts, Graph, Result, Row


def facts_for(row: Row, overload: str | None) -> list[Facts]:
    """The groups that the call may have been of."""
    found = [facts for facts in row.groups if overload is not None and overload in facts.overloads]
    return found or list(row.groups)


def differences(row: Row, overload: str | None, seen: Seen, out: bool = False) -> list[str]:
    """What the call did and none of the facts allows; empty when one of them allows all of it."""
    answers = [list(_differences(row, facts, seen, out)) for facts in facts_for(row, overload)]
    return min(answers, key=len)


def _differences(row: Row, facts: Facts, seen: Seen, out: bool) -> Iterator[str]:
    if out:
        yield from _out(row, seen)
        return
    yield from _result(facts, seen)
    yield from _writes(facts, seen)
    yield from _graph(facts, seen)
    extra = seen.saves - kept(facts, seen) if seen.graph is not Graph.CUT else None
    if extra:
        yield f"keeps {sorted(extra)}, which the table does not say"


def _out(row: Row, seen: Seen) -> Iterator[str]:
    if not row.out:
        yield "takes out=, which the table does not say"
    if seen.results and ("out" not in seen.itself or seen.own):
        yield "does not give back out="
    if seen.changed - {"out", *row.writes}:
        yield f"writes {sorted(seen.changed - {'out'})} beside out="


def _result(facts: Facts, seen: Seen) -> Iterator[str]:
    stray = sorted(seen.shares - _names(facts.of, seen))
    if facts.gives in (Result.VALUE, Result.NOTHING):
        if seen.results:
            yield f"gives {seen.results} tensors, the table says {facts.gives.value}"
    elif facts.gives is Result.COPY and stray:
        yield f"shares memory with {stray}, the table says copy"
    elif stray:
        yield f"shares memory with {stray}, the table says {sorted(facts.of)}"
    if facts.gives in (Result.VIEW, Result.ITSELF) and seen.own:
        yield f"has memory of its own, the table says {facts.gives.value}"
    if facts.gives is Result.ITSELF and seen.results and not seen.itself & _names(facts.of, seen):
        yield "does not give back the argument itself"


def _writes(facts: Facts, seen: Seen) -> Iterator[str]:
    allowed = _names(facts.writes, seen)
    if seen.changed - allowed:
        yield f"writes {sorted(seen.changed - allowed)}, which the table does not say"
    moved = seen.bumped - allowed - (set(facts.of) if facts.gives is Result.ITSELF else set())
    if moved - seen.changed:
        yield f"moves the version of {sorted(moved)}, which the table does not say"


def _graph(facts: Facts, seen: Seen) -> Iterator[str]:
    if seen.graph is Graph.NONE or facts.graph is Graph.EITHER or not seen.results:
        return
    if facts.graph is not seen.graph:
        yield f"graph is {seen.graph.value}, the table says {facts.graph.value}"


def kept(facts: Facts, seen: Seen) -> set[str]:
    """The names of everything that the facts let be kept."""
    stated = {name for _, names in facts.saves for name in names}
    stated |= {f"result{place}" for place, name in enumerate(facts.results) if name in stated}
    if seen.results < len(facts.results) and any(name in facts.results for name in stated):
        stated |= {IN_BETWEEN}  # a result that this spelling does not give back
    if "result" in stated:
        stated |= {"result0"}
    if any(name.startswith(OLD) for name in stated):
        stated |= {IN_BETWEEN}
    return _names(tuple(stated), seen)


def _names(stated: Sequence[str], seen: Seen) -> set[str]:
    """With the other names of the same memory: a named result is `result0` too, two arguments may be one."""
    found = set(stated)
    for first, labels in seen.ambiguous.items():
        if labels & found:
            found |= labels | {first}
    return found


class Tally:
    """What every row was seen to do, over all its calls."""

    def __init__(self) -> None:
        self.saved: dict[str, set[str]] = defaultdict(set)
        self.written: dict[str, set[str]] = defaultdict(set)
        self.shared: dict[str, set[bool]] = defaultdict(set)
        self.graphs: dict[str, set[Graph]] = defaultdict(set)
        self.calls: dict[str, int] = defaultdict(int)

    def add(self, row: Row, seen: Seen) -> None:
        """Note one call."""
        self.calls[row.name] += 1
        for first in seen.saves if seen.graph is not Graph.CUT else ():
            self.saved[row.name] |= seen.ambiguous.get(first, frozenset({first}))
        self.written[row.name] |= seen.writes
        if seen.results:
            self.shared[row.name].add(bool(seen.shares))
        self.graphs[row.name].add(seen.graph)
