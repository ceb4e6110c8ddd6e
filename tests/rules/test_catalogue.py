"""The catalogue: complete pages, codes that differ, names that state a pattern, and no half rules."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tensafe.errors import TensafeError, UnknownRuleError
from tensafe.rules import Bad, Good, _pages, _skeleton
from tensafe.rules._loader import Rule, by_name, catalogue, read_rule, select
from tensafe.rules._page import HEADINGS

RULES = catalogue()
each_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)


@each_rule
def test_the_page_has_all_headings(rule: Rule) -> None:
    assert list(rule.page.sections)[: len(HEADINGS)] == list(HEADINGS)
    assert rule.page.headline.endswith(".")


@each_rule
def test_the_name_states_the_bad_pattern(rule: Rule) -> None:
    _skeleton.refuse_name(rule.name)


@each_rule
def test_the_help_is_one_sentence_without_an_end(rule: Rule) -> None:
    assert rule.help
    assert "\n" not in rule.help
    assert not rule.help.endswith(".")


@each_rule
def test_the_page_tells_whether_there_is_a_fix(rule: Rule) -> None:
    first = rule.page.sections["Fix safety"].split()[0].strip(":.,").lower()
    assert (first in ("safe", "unsafe")) == rule.has_fix


@each_rule
def test_the_docs_page_shows_every_section_and_example(rule: Rule) -> None:
    page = _pages.markdown(rule)
    assert [line[3:] for line in page.splitlines() if line.startswith("## ")] == [
        *rule.page.sections,
        "Examples",
    ]
    assert page.count("```python") == len(rule.examples) + 1
    assert "# finds" not in page
    assert f"# tensafe: allow {rule.name}" in page


def test_codes_and_names_differ() -> None:
    assert len({rule.code for rule in RULES}) == len({rule.name for rule in RULES}) == len(RULES)


def test_a_rule_is_found_by_name_code_and_prefix() -> None:
    assert by_name("lost-write") is by_name("TS106") is by_name("ts106")
    assert {rule.code[:3] for rule in select(["TS2"])} == {"TS2"}
    assert by_name("lost-write") not in select((), ["lost-write"])
    assert select(["TS1"], ["TS1"]) == ()


@pytest.mark.parametrize(
    ("name", "hint"),
    [("lost-rite", "did you mean lost-write?"), ("qqq", "`tensafe rules`"), ("", "`tensafe rules`")],
)
def test_an_unknown_name_comes_with_the_nearest(name: str, hint: str) -> None:
    for ask in (by_name, lambda name: select([name]), lambda name: select((), [name])):
        with pytest.raises(UnknownRuleError, match=re.escape(hint)):
            ask(name)


def whole_module() -> ModuleType:
    """A module that the loader accepts."""
    module = ModuleType("tensafe.rules.some_pattern")
    sections = "\n\n".join(f"## {heading}\nWords." for heading in HEADINGS)
    module.__doc__ = f"Something is wrong.\n\n{sections}\n"
    vars(module).update(
        CODE="TS901",
        SINCE="0.1",
        SEVERITY="warning",
        AT="written",
        HELP="do it well",
        SETUP="import torch",
        EXAMPLES=[Bad("x  # finds TS901"), Good("y", because="it is")],
        find=lambda call, history: iter(()),
    )
    return module


def test_a_whole_module_is_accepted() -> None:
    rule = read_rule(whole_module())
    assert (rule.code, rule.name) == ("TS901", "some-pattern")


@pytest.mark.parametrize("part", ["CODE", "SINCE", "SEVERITY", "AT", "HELP", "SETUP", "EXAMPLES", "find"])
def test_a_module_that_lacks_a_part_is_refused(part: str) -> None:
    module = whole_module()
    delattr(module, part)
    with pytest.raises(ValueError, match=f"some-pattern: .*{part}"):
        read_rule(module)


@pytest.mark.parametrize("heading", HEADINGS)
def test_a_page_that_lacks_a_section_is_refused(heading: str) -> None:
    for text in ("", f"## {heading}\n"):
        module = whole_module()
        assert module.__doc__ is not None
        module.__doc__ = module.__doc__.replace(f"## {heading}\nWords.", text)
        with pytest.raises(ValueError, match=f"some-pattern: .*{heading}"):
            read_rule(module)


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("CODE", "TS1", "TS1"),
        ("SEVERITY", "fatal", "fatal"),
        ("AT", "sometime", "sometime"),
        ("EXAMPLES", [Bad("x  # finds TS901")], "no Good"),
        ("EXAMPLES", [Good("x", because="y")], "no Bad"),
        ("__doc__", None, "What it does"),
    ],
)
def test_a_module_with_a_wrong_part_is_refused(name: str, value: object, why: str) -> None:
    module = whole_module()
    setattr(module, name, value)
    with pytest.raises(ValueError, match=f"some-pattern: .*{why}"):
        read_rule(module)


def test_the_skeleton_is_a_rule(tmp_path: Path, load: Callable[[Path], ModuleType]) -> None:
    path = _skeleton.write_rule("some-bad-pattern", tmp_path)
    assert path.name == "some_bad_pattern.py"
    rule = read_rule(load(path))
    assert rule.name == "some-bad-pattern"
    assert rule.code not in {other.code for other in RULES}


def test_the_skeleton_overwrites_nothing(tmp_path: Path) -> None:
    _skeleton.write_rule("some-bad-pattern", tmp_path)
    with pytest.raises(TensafeError, match="not overwritten"):
        _skeleton.write_rule("some-bad-pattern", tmp_path)


@pytest.mark.parametrize(
    "name", ["write", "Lost-Write", "lost_write", "../evil-path", "use-clone", "no-writes", "a-", ""]
)
def test_a_name_that_states_no_pattern_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(TensafeError):
        _skeleton.write_rule(name, tmp_path)
    assert not list(tmp_path.iterdir())


def test_pages_are_written_and_stale_ones_removed(tmp_path: Path) -> None:
    (tmp_path / "gone-rule.md").write_text("old")
    assert _pages.write_pages(tmp_path) == len(RULES)
    assert {path.stem for path in tmp_path.iterdir()} == {"README", *(rule.name for rule in RULES)}
    index = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert all(f"[{rule.name}]({rule.name}.md)" in index for rule in RULES)


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], ModuleType]:
    import importlib

    def import_from(path: Path) -> ModuleType:
        monkeypatch.syspath_prepend(str(path.parent))
        monkeypatch.delitem(sys.modules, path.stem, raising=False)
        return importlib.import_module(path.stem)

    return import_from


def test_the_pages_in_docs_are_the_rules_own(tmp_path: Path) -> None:
    """`make docs` renews them."""
    _pages.write_pages(tmp_path)
    committed = Path(__file__).parents[2] / "docs" / "rules"
    assert {path.name for path in committed.iterdir()} == {path.name for path in tmp_path.iterdir()}
    for page in tmp_path.iterdir():
        assert (committed / page.name).read_text() == page.read_text()
