"""Whether the program reads a name again after a statement, as far as it certainly runs that way."""

from __future__ import annotations

import ast
from functools import lru_cache

from tensafe.runtime.places.frames import Place
from tensafe.runtime.places.writing import scope_of
from tensafe.syntax.reading import Syntax


@lru_cache(maxsize=64)
def syntax_in(scope: ast.AST) -> Syntax:
    """The syntax of one function, or of the statements of a module."""
    return Syntax(scope)


def read_after(place: Place, statement: ast.stmt, name: str) -> ast.expr | None:
    """The first expression that reads this name's values after `statement`, in the function around it."""
    scope = scope_of(place, statement)
    return syntax_in(scope).read_after(statement, name) if scope is not None else None
