"""Pages taken apart with the standard library's parser, as a dumb reader would."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

VOID = {"meta", "input", "col", "br", "hr", "img", "link"}


class Parsed(HTMLParser):
    """Elements with their attributes, texts, and every tag that is not closed where it should be."""

    def __init__(self, markup: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.unbalanced: list[str] = []
        self.scripts: list[str] = []
        self.data = ""
        self._open: list[str] = []
        self.feed(markup)
        self.close()
        self.unbalanced += self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._open and self._open[-1] == tag:
            self._open.pop()
        else:
            self.unbalanced.append(f"/{tag}")

    def handle_data(self, data: str) -> None:
        inside = self._open[-1] if self._open else ""
        if inside == "script":
            self.scripts.append(data)
        elif inside != "style":
            self.texts.append(data)

    @property
    def tags(self) -> set[str]:
        return {tag for tag, _ in self.elements}

    @property
    def attributes(self) -> set[str]:
        return {name for _, attributes in self.elements for name in attributes}

    @property
    def text(self) -> str:
        return "\n".join(self.texts)

    def json(self) -> Any:
        """The page's inert data block, its first script."""
        return json.loads(self.scripts[0])
