"""A row in words: what `tensafe ops NAME` prints and the page shows."""

from __future__ import annotations

from collections.abc import Iterator

from tensafe.ops.row import IN_BETWEEN, OLD, Facts, Graph, Result, Row

GRAPHS = {
    Graph.KEPT: "goes on",
    Graph.CUT: "cut: the result requires no gradient",
    Graph.EITHER: "goes on or is cut, depending on the arguments",
    Graph.PARTS: "as the operations that it calls do",
    Graph.REFUSED: "goes on, and backward raises: no derivative is implemented",
}
Fact = tuple[str, str]  # a heading, and a sentence


def facts_of(row: Row) -> list[Fact]:
    """Headings and sentences, the most wanted first."""
    groups = list(row.groups)
    same = (
        len(
            {
                (one.gives, one.of, one.when, one.writes, one.graph, one.graph_when, one.saves)
                for one in groups
            }
        )
        == 1
    )
    found: list[Fact] = []
    for facts in groups[:1] if same else groups:
        if not same:
            found.append(
                ("overload", ", ".join(f"{row.name}.{one}" if one else row.name for one in facts.overloads))
            )
        found += _facts(facts)
    return [*found, *_more(row)]


def _facts(facts: Facts) -> Iterator[Fact]:
    yield "result", result_of(facts)
    yield "writes", writes_of(facts)
    if facts.graph is not Graph.NONE:
        yield "graph", "; ".join(part for part in (GRAPHS[facts.graph], facts.graph_when) if part)
    if facts.graph not in (Graph.NONE, Graph.CUT, Graph.PARTS):
        yield "backward", saves_of(facts)


def _more(row: Row) -> Iterator[Fact]:
    if row.note:
        yield "note", row.note
    if row.in_place:
        yield "in place", row.in_place
    if row.out_of_place and not row.out_of_place.startswith("_"):
        yield "writing nothing", row.out_of_place
    if row.out:
        yield "out=", f"writes {_listed(row.out)} and gives it back"
    if row.spelled:
        yield "spelled", ", ".join(row.spelled)
    if row.kind == "script":
        yield "spelled", "in TorchScript only"
    if row.see:
        yield "see", row.see


def result_of(facts: Facts) -> str:
    """What the result's memory is, in words."""
    of = _listed(facts.of)
    return {
        Result.COPY: "a copy: memory of its own",
        Result.VIEW: f"a view of {of}",
        Result.EITHER: facts.when or f"a view of {of}, or a copy",
        Result.ITSELF: f"{_listed(facts.of[:1])} itself",
        Result.VALUE: "a value, no tensor",
        Result.NOTHING: "nothing",
    }[facts.gives]


def writes_of(facts: Facts) -> str:
    """Which arguments are written, in words."""
    words = _listed(facts.writes) if facts.writes else "nothing"
    return f"{words} ({facts.writes_when})" if facts.writes_when else words


def saves_of(facts: Facts) -> str:
    """What is kept for backward, in words."""
    if not facts.saves:
        return "keeps no tensor" + _how(facts)
    kept: dict[tuple[str, ...], list[str]] = {}
    for wanted, names in facts.saves:
        kept.setdefault(names, []).append(wanted)
    every = next(iter(kept)) if len(kept) == 1 else None
    if every is not None:
        return f"keeps {_kept(every)}" + _how(facts)
    parts = [f"{_kept(names)} for the gradient of {_listed(tuple(wanted))}" for names, wanted in kept.items()]
    return "keeps " + "; ".join(parts) + _how(facts)


def _how(facts: Facts) -> str:
    when = f", {facts.saves_when}" if facts.saves and facts.saves_when else ""
    return f"{when} (seen by running it)" if facts.seen else when


def _kept(names: tuple[str, ...]) -> str:
    said = []
    for name in names:
        if name == IN_BETWEEN:
            said.append("tensors made in between")
        elif name.startswith(OLD):
            said.append(f"a copy of what {_listed((name.removeprefix(OLD),))} was")
        else:
            said.append("the result" if name == "result" else name)
    return _listed(tuple(said))


def _listed(names: tuple[str, ...]) -> str:
    names = tuple("x" if name == "self" else name for name in names)
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else "nothing"


def title(row: Row) -> str:
    """`reshape(self, shape)`; the name alone for what is no call."""
    arguments = row.groups[0].arguments if row.kind in ("aten", "python", "script") else ()
    named = ", ".join("x" if one == "self" else one for one in arguments)
    return f"{row.name}({named})" if arguments else row.name


def in_one_line(row: Row) -> str:
    """What a list says of the row."""
    words = {Result.COPY: "copy", Result.VALUE: "value", Result.NOTHING: "nothing"}.get(row.gives)
    if words is None:
        words = "itself" if row.gives is Result.ITSELF else f"{row.gives.value} of {_listed(row.of)}"
    if row.gives is Result.EITHER:
        words = next((facts.when for facts in row.groups if facts.when), "by overload")
    written = f"writes {_listed(row.writes)}" if row.writes else ""
    written += " sometimes" if written and any(facts.writes_when for facts in row.groups) else ""
    cut = (
        "cuts the graph" if row.graph is Graph.CUT and row.gives not in (Result.VALUE, Result.NOTHING) else ""
    )
    return "; ".join(part for part in (words, written, cut) if part)


def examples_of(row: Row) -> list[str]:
    """Lines of Python, each of which was run."""
    return list(row.examples)
