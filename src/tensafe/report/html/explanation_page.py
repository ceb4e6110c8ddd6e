"""What `explain` says of one tensor, as a page of its own."""

from __future__ import annotations

from tensafe.aliases.model import Explanation
from tensafe.report.html.assets import asset
from tensafe.report.html.document import document
from tensafe.report.html.elements import Html, element
from tensafe.report.html.explanation_fragment import explanation_fragment
from tensafe.report.html.wording import shortened

TITLE_CHARACTERS = 120


def explanation_page(explanation: Explanation) -> str:
    """A self-contained page, as UTF-8 text, around what notebooks show."""
    name = shortened(explanation.name or "a tensor without a name", TITLE_CHARACTERS)
    heading = element("h1", element("span", "Memory of ", class_="faint"), element("bdi", name))
    body = element("main", heading, Html(explanation_fragment(explanation)))
    return document(f"{name} · tensafe", body, sheets=[asset("fragment.css")])
