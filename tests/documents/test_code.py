"""All code of the README and of docs/ runs, and prints what stands under it."""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from documents.pages import FENCE, ROOT, Command, Page, all_pages, read
from documents.running import prepared, printed, printed_by, printed_in_ipython
from tensafe.checking.config import settings_in

PAGES = all_pages()
CONSOLES = {
    (
        page.files if any(name in one.line for name, _ in page.files for one in commands) else (),
        commands,
    ): page
    for page in PAGES
    for commands in page.consoles
}
"""Each once, though several pages show it."""


@pytest.mark.parametrize(
    ("files", "commands"), CONSOLES, ids=[f"{page.name}: {key[1][-1].line}" for key, page in CONSOLES.items()]
)
def test_a_command_prints_what_the_page_shows(
    files: tuple[tuple[str, str], ...], commands: tuple[Command, ...], tmp_path: Path
) -> None:
    skip_without(CONSOLES[files, commands])
    folder = prepared(tmp_path, files)
    for command in commands:
        assert printed(command, folder) == command.output


LANGUAGES = {"python": printed_by, "ipython": printed_in_ipython}
PROGRAMS = [
    (page, language)
    for page in PAGES
    for language in LANGUAGES
    if page.programs(language) and page.name != "README.ko.md"  # whose code is that of README.md, see below
]


NEEDS = {"docs/integrations.md": ("lightning", "transformers", "accelerate")}


def skip_without(page: Page) -> None:
    for library in NEEDS.get(page.name, ()):
        if find_spec(library) is None:
            pytest.skip(f"{library} is not installed")


@pytest.mark.parametrize(
    ("page", "language"), PROGRAMS, ids=[f"{page.name}-{lang}" for page, lang in PROGRAMS]
)
def test_a_program_runs_and_prints_what_the_page_shows(page: Page, language: str, tmp_path: Path) -> None:
    skip_without(page)
    shown = [output for _, output in page.programs(language)]
    gave = LANGUAGES[language](page, tmp_path)
    assert len(gave) == len(shown)
    for output, words in zip(shown, gave, strict=True):
        if output is not None:
            assert words == output.rstrip()


DATA = [
    (page, block) for page in PAGES for block in page.blocks if block.language in ("json", "toml", "yaml")
]


@pytest.mark.parametrize(("page", "block"), DATA, ids=[f"{page.name}:{block.line}" for page, block in DATA])
def test_settings_and_records_can_be_read(page: Page, block: Any, tmp_path: Path) -> None:
    if block.language == "json":
        assert json.loads(block.text)
    elif block.language == "yaml":
        assert yaml.safe_load(block.text)
    else:
        file = tmp_path / "pyproject.toml"
        file.write_text(block.text, encoding="utf-8")
        assert "[tool.tensafe]" not in block.text or settings_in(file).file == file


def test_there_is_code_to_run() -> None:
    readme = next(page for page in PAGES if page.name == "README.md")
    assert len(list(readme.consoles)) >= 7
    assert sum(len(page.programs()) for page in PAGES) >= 25
    assert len(CONSOLES) >= 20


def test_the_readmes_have_the_same_code() -> None:
    english, korean = (
        next(page for page in PAGES if page.name == name) for name in ("README.md", "README.ko.md")
    )
    assert [(block.language, code_of(block)) for block in korean.blocks] == [
        (block.language, code_of(block)) for block in english.blocks
    ]
    assert sum("가" <= letter <= "힣" for letter in korean.text) > 3000
    assert "](README.ko.md)" in english.text
    assert "](README.md)" in korean.text


def test_the_readmes_say_the_same() -> None:
    """Section by section: as many paragraphs, the same names in them, the same links."""
    english, korean = (sections(ROOT / name) for name in ("README.md", "README.ko.md"))
    assert len(english) == len(korean) >= 15
    for ours, theirs in zip(english[1:], korean[1:], strict=True):
        assert len(paragraphs(theirs)) == len(paragraphs(ours)), theirs
        assert names_in(theirs) == names_in(ours)
        assert set(LINKS.findall(theirs)) == set(LINKS.findall(ours))


LINKS = re.compile(r"\]\(([^)]+)\)")


def sections(path: Path) -> list[str]:
    """The text under each heading, a mark for each block of code."""
    return re.split(r"^##+ .*$", FENCE.sub("\n(code)\n", path.read_text(encoding="utf-8")), flags=re.M)


def paragraphs(section: str) -> list[str]:
    return [one for one in re.split(r"\n\s*\n", section) if one.strip()]


def names_in(section: str) -> set[str]:
    return {" ".join(name.split()) for name in re.findall(r"`([^`]+)`", section)}


def code_of(block: Any) -> str:
    """The text of a block; comments after code may be in the language of the page."""
    if block.language not in ("console", "python", "toml") or any(one.output for one in block.commands):
        return str(block.text)
    return "\n".join(line.split("  # ")[0].split(" # ")[0].rstrip() for line in block.text.splitlines())


def test_blocks_are_told_apart(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        '# A\n\n```python title="a.py"\nx = 1\n```\n\n'
        "```console\n$ python a.py\n$ tensafe rules | head -1\nTS\n```\n\n"
        "```python\nprint(2)\n```\n\n```text\n2\n```\n\nWords.\n\n```text\n3\n```\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("documents.pages.ROOT", tmp_path)
        found = read(page)
    assert found.files == (("a.py", "x = 1\n"),)
    assert list(found.consoles) == [(Command("python a.py", ""), Command("tensafe rules | head -1", "TS"))]
    assert [(block.text, output) for block, output in found.programs()] == [("print(2)\n", "2\n")]
    assert found.programs()[0][0].line == 14


def test_a_block_that_prints_something_else_or_fails_is_seen(tmp_path: Path) -> None:
    page = Page("page.md", "", ())
    text = "# A\n\n```python\nprint(1)\n```\n\n```python\n1 / 0\n```\n"
    path = tmp_path / "page.md"
    path.write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("documents.pages.ROOT", tmp_path)
        page = read(path)
    with pytest.raises(AssertionError, match="line 8"):
        printed_by(page, tmp_path / "folder")
    one = page._replace(blocks=page.blocks[:1])
    assert printed_by(one, tmp_path / "other") == ["1"]


@pytest.mark.parametrize("command", ["check --baseline known.json", "run --copies"])
def test_everything_at_the_top_of_a_record_and_in_its_summary_is_told(command: str, tmp_path: Path) -> None:
    page = next(page.text for page in PAGES if page.name == "docs/reference/record.md")
    folder = prepared(tmp_path, ())
    if "known.json" in command:
        printed(Command("tensafe check --baseline known.json --write-baseline examples", ""), folder)
    line = f"tensafe {command} --format json --output record.json examples/copy_a_batch.py"
    printed(Command(line, ""), folder)
    record = json.loads((folder / "record.json").read_text())
    assert len(record["summary"]) >= 5
    assert bool(record.get("copies")) is ("--copies" in command)
    entries = [key for copied in record.get("copies", ()) for key in copied]
    assert not [
        key
        for key in (*record, *record["summary"], *entries)
        if f"`{key}`" not in page and f'"{key}"' not in page
    ]
