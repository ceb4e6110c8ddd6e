"""Several operations in turn: whose memory the result is, what is written, and what of the graph is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tensafe.ops.reading import Reading, Step
from tensafe.ops.row import Graph, Result, Row

UNCOUNTED = frozenset({"x.data", "x.numpy()", "x.untyped_storage()", "x.__dlpack__()"})
CUTTING = "cut: the result requires no gradient of {base}"


@dataclass(frozen=True, slots=True)
class InAll:
    """What the steps do together."""

    base: str
    gives: Result = Result.ITSELF
    graph: Graph = Graph.KEPT
    counted: bool = True  # autograd's check sees writes through what came out so far
    writes: tuple[str, ...] = ()

    def words(self) -> str:
        """One sentence."""
        result = {
            Result.COPY: "a copy: memory of its own",
            Result.VIEW: f"a view of {self.base}",
            Result.EITHER: f"a view of {self.base}, or a copy",
            Result.ITSELF: f"{self.base} itself",
            Result.VALUE: "a value, no tensor",
            Result.NOTHING: "",
        }[self.gives]
        graph = {
            Graph.CUT: CUTTING.format(base=self.base),
            Graph.REFUSED: "backward raises: no derivative is implemented",
            Graph.EITHER: "the graph goes on or is cut",
        }.get(self.graph, "")
        graph = "" if self.gives in (Result.VALUE, Result.NOTHING) else graph
        return "; ".join(part for part in (result, *(self.writes or ("writes nothing",)), graph) if part)


def in_all(reading: Reading, rows: Sequence[Row]) -> InAll:
    """What the steps, each told by its row, do together."""
    done = InAll(reading.base)
    for step, row in zip(reading.steps, rows, strict=True):
        done = _after(done, step, row)
    return done


def _after(done: InAll, step: Step, row: Row) -> InAll:
    if done.gives is Result.VALUE:
        return done
    if step.out:
        return InAll(step.out, writes=(*done.writes, f"writes {step.out}"))
    done = _written(done, row)
    gives = _memory(done.gives, Result.COPY if step.copies else row.gives)
    return replace(
        done,
        gives=gives,
        graph=_graph(done.graph, row.graph),
        counted=done.counted and row.name not in UNCOUNTED,
    )


def _memory(before: Result, now: Result) -> Result:
    if now in (Result.COPY, Result.VALUE, Result.NOTHING):
        return now
    if now is Result.ITSELF or before is Result.COPY:
        return before
    if Result.EITHER in (before, now):
        return Result.EITHER
    return Result.VIEW


def _graph(before: Graph, now: Graph) -> Graph:
    if before in (Graph.CUT, Graph.REFUSED) or now in (Graph.KEPT, Graph.NONE):
        return before
    return Graph.EITHER if now is Graph.PARTS else now


def _written(done: InAll, row: Row) -> InAll:
    first = row.groups[0].arguments[:1]
    new: tuple[str, ...] = ()
    if any(one in row.writes for one in (*first, "x")):
        new = (_through(done, row),)
    elif row.writes:
        new = (f"writes {' and '.join(row.writes)}" + (" sometimes" if _sometimes(row) else ""),)
    return replace(done, writes=tuple(dict.fromkeys((*done.writes, *new))))


def _sometimes(row: Row) -> bool:
    return any(facts.writes_when for facts in row.groups)


def _through(done: InAll, row: Row) -> str:
    """What a write into what came out so far reaches."""
    word = "may write" if _sometimes(row) else "writes"
    if done.gives is Result.COPY:
        return f"{word} the copy alone, {done.base} is unchanged"
    if done.gives is Result.EITHER:
        return f"{word} {done.base} where it is a view of it, else the copy alone"
    if not done.counted:
        return f"{word} {done.base}, uncounted: autograd's check does not see it"
    return f"{word} {done.base}"
