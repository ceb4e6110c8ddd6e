"""The pages of the project and the blocks of code in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
GENERATED = (
    "docs/rules/",
    "docs/ops/",
)  # their examples are those of the rules and of the table, tested there
FENCE = re.compile(r'^```(\w*)(?: +title="([^"]+)")?[ ]*\n(.*?)^```[ ]*$', re.M | re.S)
PROMPT = re.compile(r"^\$ (.+)$", re.M)


class Command(NamedTuple):
    """A line after a prompt, and what stands under it."""

    line: str
    output: str


class Block(NamedTuple):
    """A fenced block: its language, the file that its title names, and the line of its first line of code."""

    language: str
    title: str
    text: str
    line: int
    follows: bool  # directly under the block before it

    @property
    def commands(self) -> tuple[Command, ...]:
        """What a console block runs."""
        places = list(PROMPT.finditer(self.text))
        ends = [*(place.start() for place in places[1:]), len(self.text)][: len(places)]
        return tuple(
            Command(place[1], self.text[place.end() + 1 : end].rstrip("\n"))
            for place, end in zip(places, ends, strict=True)
        )


class Page(NamedTuple):
    """A page: its name from the project's root, its text, its blocks."""

    name: str
    text: str
    blocks: tuple[Block, ...]

    @property
    def files(self) -> tuple[tuple[str, str], ...]:
        """The files that its blocks are."""
        return tuple((block.title, block.text) for block in self.blocks if block.title)

    @property
    def consoles(self) -> Iterator[tuple[Command, ...]]:
        """The console blocks that show output, where tensafe or Python gives it."""
        for block in self.blocks:
            commands = block.commands if block.language == "console" else ()
            if any(one.output for one in commands) and all(is_ours(one.line) for one in commands):
                yield commands

    def programs(self, language: str = "python") -> list[tuple[Block, str | None]]:
        """The blocks that are no files, each with what it prints, None where the page does not say."""
        found: list[tuple[Block, str | None]] = []
        for block in self.blocks:
            if block.language == language and not block.title:
                found.append((block, None))
            elif block.language == "text" and block.follows and found and found[-1][0] is before(self, block):
                found[-1] = (found[-1][0], block.text)
        return found


def before(page: Page, block: Block) -> Block:
    """The block above another."""
    return page.blocks[page.blocks.index(block) - 1]


def is_ours(line: str) -> bool:
    return line.split()[0] in ("tensafe", "python", "pytest", "cat")


def read(path: Path) -> Page:
    """A page of the project."""
    text = path.read_text(encoding="utf-8")
    blocks, end = [], 0
    for found in FENCE.finditer(text):
        line = text.count("\n", 0, found.start(3)) + 1
        follows = not text[end : found.start()].strip()
        blocks.append(Block(found[1], found[2] or "", found[3], line, follows))
        end = found.end()
    return Page(path.relative_to(ROOT).as_posix(), text, tuple(blocks))


def all_pages() -> list[Page]:
    """The READMEs and every page of docs/ that a person wrote."""
    written = [ROOT / name for name in ("README.md", "README.ko.md", "CONTRIBUTING.md", "HOW_IT_WORKS.md")]
    pages = [*written, *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in map(read, pages) if not page.name.startswith(GENERATED)]
