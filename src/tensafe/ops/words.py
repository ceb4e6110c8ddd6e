"""Rows of names, written as text so that a table stays readable."""

from __future__ import annotations

# What a row's `saves` may name beside arguments and results.
IN_BETWEEN = "in between"  # a tensor made on the way
OLD = "old "  # before an argument's name: a copy of what it held before it was written


def words(text: str) -> frozenset[str]:
    """The names in a row: `words("add sub")`."""
    return frozenset(text.split())
