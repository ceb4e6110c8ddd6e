"""Pages of the site that are no files of docs/: made while it is built, so that they cannot go stale."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from tensafe.cli import _pages as commands
from tensafe.rules._loader import catalogue
from tensafe.tour import _pages as tour

ROOT = Path(__file__).parent.parent
INCLUDED = {
    "HOW_IT_WORKS.md": "how-it-works.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "README.ko.md": "ko.md",
}
OTHERS = {"README.md": "index.md"}  # its words stand on the pages of the site
ALONE = {"index.md", "ops/README.md", "ko.md"}  # pages with no neighbours under their heading
KOREAN = {"ko.md", "tour.ko.md"}
LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)(#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put every rule under its heading."""
    for section in config.nav or []:
        if "Rules" in section:
            section["Rules"] += [
                {f"{rule.code} {rule.name}": f"rules/{rule.name}.md"} for rule in catalogue()
            ]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made or included."""
    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(text: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Give the room of an empty navigation to the page."""
    if page.file.src_uri in ALONE:
        page.meta["hide"] = ["navigation"]
    return text


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Tell browsers and screen readers which pages are in Korean."""
    return output.replace('lang="en"', 'lang="ko"', 1) if page.file.src_uri in KOREAN else output


def pages() -> dict[str, str]:
    """Every page that is no file of docs/, by its path in the site's sources."""
    included = {page: rewritten((ROOT / name).read_text(encoding="utf-8")) for name, page in INCLUDED.items()}
    return {
        **included,
        "reference/commands.md": commands.page(),
        "tour.md": tour.page("en"),
        "tour.ko.md": tour.page("ko"),
    }


def rewritten(text: str) -> str:
    """A file of the project's root as a page: its links lead to pages, or, where there is none, nowhere."""
    return LINK.sub(_link, text)


def _link(found: re.Match[str]) -> str:
    path, anchor = posixpath.normpath(found[1]), found[2] or ""
    pages = {**INCLUDED, **OTHERS}
    if path in pages:
        return f"]({pages[path]}{anchor})"
    if path.startswith("docs/"):
        return f"]({path.removeprefix('docs/')}{anchor})"
    return f"]({found[1]}{anchor})"
