"""The built site: its pages, what they link to, and what they load."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from report.html.parsing import Parsed

LOADED = {"img": "src", "script": "src", "iframe": "src", "source": "src", "link": "href", "form": "action"}
IN_STYLE = re.compile(r"""(?:@import\s+|url\(\s*)["']?([^"')\s]+)""")


class Link(NamedTuple):
    """A link as it stands in a page, and the page and anchor that it leads to."""

    page: str
    address: str
    target: str
    anchor: str


class Site:
    """A folder with the built pages, each under its path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def pages(self) -> dict[str, Parsed]:
        """Every page, taken apart; `404.html` is for servers alone."""
        return {
            path.relative_to(self.folder).as_posix(): Parsed(path.read_text(encoding="utf-8"))
            for path in self.folder.rglob("*.html")
            if path.name != "404.html"
        }

    @cached_property
    def anchors(self) -> dict[str, set[str]]:
        """What a link can lead to inside each page."""
        return {
            name: {
                str(found) for _, attributes in page.elements for found in (attributes.get("id"),) if found
            }
            for name, page in self.pages.items()
        }

    def text(self, page: str) -> str:
        return (self.folder / page).read_text(encoding="utf-8")

    def links(self) -> Iterator[Link]:
        """Every link to the site itself."""
        for name, page in self.pages.items():
            for tag, attributes in page.elements:
                address = attributes.get("href") if tag == "a" else attributes.get(LOADED.get(tag, ""))
                if address and not urlsplit(address).scheme:
                    yield _resolved(name, address)

    def dead(self) -> list[str]:
        """Links to a file or an anchor that is not there."""
        return [
            f"{link.page}: {link.address}"
            for link in self.links()
            if not (self.folder / link.target).is_file()
            or (link.anchor and link.target in self.pages and link.anchor not in self.anchors[link.target])
        ]

    def loaded_from_elsewhere(self) -> list[str]:
        """What opening a page would ask of a server."""
        found = [
            f"{name}: {address}"
            for name, page in self.pages.items()
            for tag, attributes in page.elements
            if (address := attributes.get(LOADED.get(tag, ""))) and _is_remote(address)
        ]
        for path in self.folder.rglob("*.css"):
            text = path.read_text(encoding="utf-8")
            found += [f"{path.name}: {address}" for address in IN_STYLE.findall(text) if _is_remote(address)]
        return found


def _is_remote(address: str) -> bool:
    parts = urlsplit(address)
    return bool(parts.netloc) or parts.scheme not in ("", "data")


def _resolved(page: str, address: str) -> Link:
    parts = urlsplit(address)
    path = unquote(parts.path)
    target = posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page
    return Link(page, address, target, unquote(parts.fragment))
