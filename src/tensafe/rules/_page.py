"""A rule's page: the module docstring, split at its fixed headings."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass

HEADINGS = ("What it does", "Why it matters", "Instead", "Fix safety")


@dataclass(frozen=True, slots=True)
class Page:
    """The headline and the sections of a rule's docstring, in the order of `HEADINGS`, then any others."""

    headline: str
    sections: Mapping[str, str]


def parse(docstring: str) -> Page:
    """Split a docstring; raises ValueError naming the heading that is missing or empty."""
    head, *parts = inspect.cleandoc(docstring).split("\n## ")
    sections = {}
    for part in parts:
        title, _, body = part.partition("\n")
        sections[title.strip()] = body.strip()
    for heading in HEADINGS:
        if not sections.get(heading):
            raise ValueError(f"the page lacks a section '## {heading}'")
    return Page(" ".join(head.split()), sections)
