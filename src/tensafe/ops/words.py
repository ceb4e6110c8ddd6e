"""Rows of names, written as text so that a table stays readable."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """The names in a row: `words("add sub")`."""
    return frozenset(text.split())
