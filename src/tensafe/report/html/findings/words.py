"""Sentences in which names stand between backquotes, and texts of any length on one line."""

from __future__ import annotations

from tensafe.report.html.elements import Html, element, join
from tensafe.report.html.wording import shortened

MOST_CHARACTERS = 2_000


def words(sentence: str, most: int = MOST_CHARACTERS) -> Html:
    """A sentence, its names as code; one backquote without its partner stays as it is."""
    parts = shortened(sentence, most).split("`")
    if len(parts) % 2 == 0:
        return join(["`".join(parts)])
    return join(element("code", part) if at % 2 else part for at, part in enumerate(parts))


def plain_words(text: str, most: int) -> str:
    """Runs of white space as one space, the middle left out where it is long."""
    return shortened(" ".join(text.split()), most)
