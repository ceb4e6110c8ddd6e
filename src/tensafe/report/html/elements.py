"""HTML by construction: every text and attribute is escaped, every element is closed."""

from __future__ import annotations

import html
from collections.abc import Iterable

from tensafe.report.characters import printable


class Html(str):
    """Markup that is escaped already; any other string is text."""

    __slots__ = ()


def text(value: str) -> Html:
    """Text as a reader may see it: markup escaped, what is invisible or turns the line shown as `\\x00`."""
    return Html(html.escape(printable(value)))


def join(parts: Iterable[str]) -> Html:
    """Markup and texts, one after the other."""
    return Html("".join(part if isinstance(part, Html) else text(part) for part in parts))


def element(name: str, /, *children: str, **attributes: str | int | bool | None) -> Html:
    """`<name …>children</name>`; `class_` and `aria_label` become `class` and `aria-label`.

    An attribute that is None or False is left out, and one that is True stands without a value.
    """
    return Html(f"<{name}{_attributes(attributes)}>{join(children)}</{name}>")


def void(name: str, /, **attributes: str | int | bool | None) -> Html:
    """An element that has no end tag, such as `<meta>`."""
    return Html(f"<{name}{_attributes(attributes)}>")


def _attributes(attributes: dict[str, str | int | bool | None]) -> str:
    return "".join(
        f" {_key(key)}" if value is True else f' {_key(key)}="{text(str(value))}"'
        for key, value in attributes.items()
        if value is not None and value is not False
    )


def _key(key: str) -> str:
    return key.rstrip("_").replace("_", "-")
