"""The documentation site: built strictly, no dead link, nothing from a server, and a place for everything."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from types import FunctionType

import pytest

import tensafe
from documents.built import Site
from documents.pages import ROOT, Page, all_pages
from report.html.opened import Opened
from tensafe.aliases.model import Alias, LinePlace, Reason, Region, SavedBy
from tensafe.aliases.overlap import Side
from tensafe.checking.config import _READERS
from tensafe.cli._pages import options_of, parser_of
from tensafe.cli.commands import COMMANDS
from tensafe.cli.run import split
from tensafe.copies.plan import CopyPlan
from tensafe.look import Explanation, MemoryMap
from tensafe.memory.extent import Extent
from tensafe.memory.map import NamedTensor, Storage
from tensafe.rules._loader import catalogue
from tensafe.rules._pages import index, markdown
from tensafe.runtime.watchpoints.region import WriteSeen
from tensafe.tour import STOPS

PAGES = all_pages()


def test_no_link_is_dead(site: Site) -> None:
    assert len(list(site.links())) > 2000
    assert not site.dead()


def test_a_dead_link_and_a_missing_anchor_are_seen(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<a href="b.html">b</a><a href="#x">x</a><a href="#y">y</a><i id="y"></i>'
    )
    assert Site(tmp_path).dead() == ["a.html: b.html", "a.html: #x"]


def test_no_page_asks_a_server_for_anything(site: Site) -> None:
    assert not site.loaded_from_elsewhere()


def test_what_a_page_asks_of_a_server_is_seen(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<script src="https://example.org/x.js"></script>')
    (tmp_path / "a.css").write_text("@import 'https://example.org/y.css'; a { background: url(data:,x) }")
    assert Site(tmp_path).loaded_from_elsewhere() == [
        "a.html: https://example.org/x.js",
        "a.css: https://example.org/y.css",
    ]


@pytest.mark.parametrize("page", ["index.html", "reference/api/copies.html", "rules/index.html"])
def test_a_page_opens_from_a_file(site: Site, opened: Opened, page: str) -> None:
    for log in ("performance", "browser"):
        opened.driver.get_log(log)
    opened.driver.get((site.folder / page).as_uri())
    assert opened.run("return document.readyState") == "complete"
    asked = {request.partition(":")[0] for request in opened.requests()}
    assert "file" in asked
    assert not asked & {"http", "https", "ws", "wss"}
    assert not opened.complaints()


def test_a_command_is_copied_without_its_prompt_and_what_it_prints(site: Site, opened: Opened) -> None:
    opened.driver.get((site.folder / "index.html").as_uri())
    mark = "data-md-copying"  # set by the theme while its button copies `innerText`
    assert mark in "".join(path.read_text() for path in site.folder.rglob("bundle*.js"))
    copied = opened.run(
        "return [...document.querySelectorAll('.language-console code')].map((code) => {"
        "code.setAttribute(arguments[0], ''); return code.innerText.trim(); })",
        mark,
    )
    assert [text.partition("  ")[0] for text in copied] == [
        'pip install "tensafe[torch]"',
        "tensafe run examples/train_residual.py 2>&1 | head -15",
        "tensafe check examples/masked_targets.py 2>&1",
    ]


def test_the_search_works_from_a_file(site: Site, opened: Opened) -> None:
    from selenium.webdriver.support.wait import WebDriverWait

    opened.driver.get((site.folder / "index.html").as_uri())
    opened.run("document.querySelector('.md-search__input').focus()")
    opened.press("lost-write")
    found = "return [...document.querySelectorAll('.md-search-result__link')].map((link) => link.href)"
    links = WebDriverWait(opened.driver, 30).until(lambda _: opened.run(found))
    assert any("rules/lost-write.html" in link for link in links)


def test_every_rule_has_its_page(site: Site) -> None:
    listed = {link.target for link in site.links() if link.page == "rules/index.html"}
    assert {f"rules/{rule.name}.html" for rule in catalogue()} <= listed & set(site.pages)


def test_the_pages_of_the_rules_are_those_of_the_catalogue() -> None:
    rules = catalogue()
    expected = {f"{rule.name}.md": markdown(rule) for rule in rules} | {"README.md": index(rules)}
    there = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "rules").iterdir()}
    assert there == expected, "run `make docs`"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_and_option_is_told(site: Site, command: str) -> None:
    assert f"tensafe-{command}" in site.anchors["reference/commands.html"]
    section = site.text("reference/commands.html").split(f'id="tensafe-{command}"')[1].split("<h2")[0]
    words = re.sub(r"<[^>]+>", "", section)
    for action in options_of(parser_of(command)):
        for name in action.option_strings or [str(action.metavar)]:
            assert name in words
        assert not action.choices or all(str(choice) in words for choice in action.choices)


def test_every_option_of_pytest_is_told() -> None:
    page = next(page.text for page in PAGES if page.name == "docs/how-to/pytest.md")
    source = (ROOT / "src" / "tensafe" / "pytest_plugin.py").read_text()
    options = set(re.findall(r'"(--tensafe[\w=-]*)"', source))
    assert len(options) >= 5
    assert all(f"`{option}" in page for option in options)


def test_every_public_name_has_its_place(site: Site) -> None:
    anchors = {anchor for name, found in site.anchors.items() if "api/" in name for anchor in found}
    assert {f"tensafe.{name}" for name in tensafe.__all__} <= anchors
    assert len(set(methods())) >= 15
    assert set(methods()) <= anchors
    assert set(errors_of_the_package()) <= anchors


def methods() -> Iterator[str]:
    """The public methods and properties of the public classes, but for those of a base that is not ours."""
    for name in tensafe.__all__:
        public = getattr(tensafe, name)
        for base in public.__mro__ if isinstance(public, type) else ():
            if base.__module__.startswith("tensafe."):
                kinds = (property, classmethod, FunctionType)
                own = [key for key, value in vars(base).items() if isinstance(value, kinds)]
                yield from (f"tensafe.{name}.{key}" for key in own if not key.startswith("_"))


GIVEN = {
    "looking": (
        Explanation,
        Region,
        Alias,
        SavedBy,
        Reason,
        LinePlace,
        tensafe.Overlap,
        Side,
        tensafe.Undecided,
        MemoryMap,
        Storage,
        NamedTensor,
        Extent,
    ),
    "copies": (CopyPlan,),
    "watching": (WriteSeen,),
}
"""What public functions give, and what is found in it."""


@pytest.mark.parametrize("page", GIVEN)
def test_every_field_and_property_of_what_is_given_is_told(site: Site, page: str) -> None:
    name = f"reference/api/{page}.html"
    for given in GIVEN[page]:
        anchor = f"{given.__module__}.{given.__name__}"
        section = site.text(name).split(f'id="{PUBLIC.get(given, anchor)}"')[1].split("<h3")[0]
        fields = [*getattr(given, "__dataclass_fields__", getattr(given, "_fields", ()))]
        bases = [base for base in given.__mro__ if base.__module__.startswith("tensafe.")]
        properties = [key for base in bases for key, value in vars(base).items() if isinstance(value, TOLD)]
        for told in (*fields, *properties):
            assert told.startswith("_") or f"<code>{told}</code>" in section or f".{told}" in section, told


TOLD = (property, cached_property)
PUBLIC = {tensafe.Overlap: "tensafe.Overlap", tensafe.Undecided: "tensafe.Undecided"}


def errors_of_the_package() -> Iterator[str]:
    """The full name of each class that is a `TensafeError` by its bases, but for those inside commands."""
    for path in (ROOT / "src" / "tensafe").rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            bases = node.bases if isinstance(node, ast.ClassDef) else []
            if "ops" not in path.parts and "TensafeError" in {getattr(base, "id", "") for base in bases}:
                yield ".".join((*path.relative_to(ROOT / "src").with_suffix("").parts, node.name))


@pytest.mark.parametrize("page", ["tour.html", "tour.ko.html"])
def test_every_stop_of_the_tour_is_there(site: Site, page: str) -> None:
    assert {stop.name for stop in STOPS} <= site.anchors[page]


def test_every_setting_is_told() -> None:
    page = next(page.text for page in PAGES if page.name == "docs/reference/configuration.md")
    assert all(f"| `{key}` |" in page for key in _READERS)


def test_every_field_of_a_finding_is_told() -> None:
    page = next(page.text for page in PAGES if page.name == "docs/reference/record.md")
    source = (ROOT / "src" / "tensafe" / "findings" / "record.py").read_text()
    written = source.partition("def finding_to_json")[2].partition("\ndef ")[0]
    fields = set(re.findall(r'"(\w+)":', written))
    assert {"code", "fix", "processes"} <= fields
    assert all(f"`{field}`" in page for field in fields)


USAGE = re.compile(rf"`(?:\$ )?(tensafe (?:{'|'.join(COMMANDS)})\b[^`\n]*)`")


def usages(page: Page) -> Iterator[str]:
    """Every command line of ours that a page shows."""
    for block in page.blocks:
        yield from (one.line for one in block.commands if block.language == "console")
    yield from USAGE.findall(page.text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_options_that_a_page_names_exist(page: Page) -> None:
    for line in usages(page):
        words = shlex.split(line.partition("|")[0], comments=True)
        if words[:1] != ["tensafe"] or words[1:2] == [] or words[1] not in COMMANDS:
            continue
        options = split(words[2:])[0] if words[1] == "run" and len(words) > 3 else words[2:]
        known = {name for action in parser_of(words[1])._actions for name in action.option_strings}
        assert {word.partition("=")[0] for word in options if word.startswith("--")} <= known, line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_record_is_written_as_one(page: Page) -> None:
    """What `tensafe report` is to read needs `--format json`: a name alone decides nothing."""
    for line in re.findall(r"tensafe (?:run|check)\b[^`\n#]*--output \S+\.json\b[^`\n#]*", page.text):
        assert "--format json" in line


def test_every_variable_of_the_environment_is_told() -> None:
    page = next(page.text for page in PAGES if page.name == "docs/reference/configuration.md")
    sources = "".join(path.read_text() for path in (ROOT / "src" / "tensafe").rglob("*.py"))
    read = set(re.findall(r'os\.environ(?:\.get\(|\[)"(\w+)"', sources))
    assert len(read) >= 5
    assert {name for name in read if f"`{name}`" not in page} == set()


def test_how_it_works_is_short_and_names_what_is_there() -> None:
    text = next(page.text for page in PAGES if page.name == "HOW_IT_WORKS.md")
    assert len(text.splitlines()) < 150
    source = ROOT / "src" / "tensafe"
    rooms = {
        path.stem if path.is_dir() else path.name for path in source.iterdir() if path.name[0] not in "_p"
    }
    assert rooms | {"pytest_plugin.py"} <= set(re.findall(r"\*\*([\w.]+)\*\*", text))
    files = {
        path.relative_to(ROOT).as_posix() for path in (*source.rglob("*.*"), *(ROOT / "tests").glob("*.py"))
    }
    named = re.findall(r"`([\w/]+\.(?:py|json))`", text)
    assert len(named) > 25
    assert [name for name in named if not any(f"/{file}".endswith(f"/{name}") for file in files)] == []


def test_what_a_run_costs_is_the_same_wherever_it_is_told() -> None:
    told = {page.name: table for page in PAGES if (table := costs(page.text))}
    assert len(told) >= 4
    assert len({len(table) for table in told.values()}) == 1
    for name, table in told.items():
        assert table == told["README.md"], name


def costs(text: str) -> list[tuple[str, str]]:
    """The last two columns of the table of training steps: under `tensafe run`, under anomaly mode."""
    table = text.partition("`tensafe run` | anomaly mode |\n")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()[1:]]
    return [(row[-2], row[-1]) for row in rows]
