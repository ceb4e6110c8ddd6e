"""Runs the program of a stop line by line, and notes what each line gives."""

from __future__ import annotations

import ast
import contextlib
import io
import re
import warnings
from dataclasses import dataclass
from typing import Any

from tensafe.tour.pictures import GraphRow, MemoryRow, graph_of, memory_of
from tensafe.tour.stop import Stop

_FILE = "<console>"  # as in a console session, so that `explain` knows the names here
_CLAIM = re.compile(r"  #> (.*)$")


@dataclass(frozen=True)
class Shown:
    """One statement of a program: its source, what it was claimed to give, and what it gave."""

    source: str
    claimed: str | None
    gave: str | None

    @property
    def holds(self) -> bool:
        """Whether the claim is what happened; one that ends in `...` tells the beginning."""
        if self.claimed is None or self.gave is None:
            return self.claimed == self.gave
        if self.claimed.endswith("..."):
            return self.gave.startswith(self.claimed[:-3])
        return self.gave == self.claimed


@dataclass(frozen=True)
class Taken:
    """A stop that was run."""

    stop: Stop
    code: tuple[Shown, ...]
    memory: tuple[MemoryRow, ...]
    graph: tuple[GraphRow, ...]
    call: tuple[Shown, ...]

    @property
    def holds(self) -> bool:
        """Whether every claim is what happened here."""
        return all(shown.holds for shown in (*self.code, *self.call))


def take(stop: Stop) -> Taken:
    """Run a stop; the names that it binds are its own."""
    import torch

    names: dict[str, Any] = {}
    with torch.random.fork_rng(devices=[]), torch.enable_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some stops show what PyTorch only warns of
        torch.manual_seed(0)
        code = tuple(_run(stop.code, names))
        shown = {name: names[name] for name in stop.drawn}
        memory, graph = tuple(memory_of(shown)), tuple(graph_of(shown))
        call = tuple(_run(stop.call, names))
    return Taken(stop, code, memory, graph, call)


def _run(program: str, names: dict[str, Any]) -> list[Shown]:
    lines = program.strip("\n").splitlines()
    done = []
    for statement in ast.parse("\n".join(lines)).body:
        first = min([statement.lineno, *(one.lineno for one in getattr(statement, "decorator_list", []))])
        last = statement.end_lineno or statement.lineno
        source = "\n".join(lines[first - 1 : last])
        claim = _CLAIM.search(lines[last - 1])
        done.append(
            Shown(_CLAIM.sub("", source), claim.group(1) if claim else None, _carry_out(statement, names))
        )
    return done


def _carry_out(statement: ast.stmt, names: dict[str, Any]) -> str | None:
    """What an expression gives, what was printed, or the error that was raised; None where all was quiet."""
    printed = io.StringIO()
    value = None
    try:
        with contextlib.redirect_stdout(printed):
            if isinstance(statement, ast.Expr):
                value = eval(compile(ast.Expression(statement.value), _FILE, "eval"), names)
            else:
                exec(compile(ast.Module([statement], []), _FILE, "exec"), names)
    except Exception as problem:
        first_line = str(problem).partition("\n")[0]
        return f"{type(problem).__name__}: {first_line}" if first_line else type(problem).__name__
    return printed.getvalue().rstrip() or (None if value is None else repr(value))
