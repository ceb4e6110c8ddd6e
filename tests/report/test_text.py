"""The text page read back: every place is underlined under its own characters, in line order, safely."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from report.reading import Underlined, cell_width, source_lines, underlines
from tensafe.findings import Because, Finding, NotChecked, Record, Severity, Site
from tensafe.report.characters import cells, printable
from tensafe.report.sources import Sources
from tensafe.report.style import plain
from tensafe.report.text import View, one, render

HELP = "write the out-of-place form"


def site(path: Path, words: str, function: str = "") -> Site:
    """The site of the first occurrence of these words in a file."""
    text = path.read_bytes().decode()
    start = text.index(words)
    line, before = text.count("\n", 0, start) + 1, text[:start].rpartition("\n")[2]
    end_line = line + words.count("\n")
    end = len(words.rpartition("\n")[2]) + 1 + (len(before) if end_line == line else 0)
    return Site(str(path), line, len(before) + 1, end_line, end, function)


def finding(at: Site, *because: Because, label: str = "changed here", count: int = 1) -> Finding:
    return Finding(
        "TS201",
        "a tensor is changed",
        at,
        because,
        label,
        "saved-tensor-modified",
        Severity.ERROR,
        HELP,
        count=count,
    )


def page(folder: Path, *findings: Finding, width: int = 110, **view: object) -> str:
    record = Record("run", findings)
    return plain(render(record, View(root=str(folder), width=width, **view)))  # type: ignore[arg-type]


@pytest.fixture
def train(tmp_path: Path) -> Path:
    lines = [
        "import torch",
        "",
        "out = act(x)",
        "out += identity",
        *["pass"] * 9,
        "loss.backward()",
        "print(out)",
    ]
    path = tmp_path / "train.py"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_whole_page(train: Path) -> None:
    shown = finding(
        site(train, "out += identity", "Block.forward"),
        Because(site(train, "loss.backward()"), "backward needs it here"),
        Because(site(train, "act(x)"), "saved here for ReluBackward0"),
        count=3,
    )
    assert (
        page(train.parent, shown)
        == """\
error[TS201] saved-tensor-modified: a tensor is changed
  --> train.py:4:1 in Block.forward
   |
 3 | out = act(x)
   |       ------ saved here for ReluBackward0
 4 | out += identity
   | ^^^^^^^^^^^^^^^ changed here
...
14 | loss.backward()
   | --------------- backward needs it here
   |
   = help: write the out-of-place form
   = explain: tensafe explain saved-tensor-modified   (seen 3 times)

tensafe: 1 error in train.py
"""
    )


def test_places_in_another_file_have_their_own_block(train: Path) -> None:
    other = train.parent / "net" / "act.py"
    other.parent.mkdir()
    other.write_text("def act(x):\n    return x.relu()\n")
    text = page(
        train.parent, finding(site(train, "out += identity"), Because(site(other, "x.relu()"), "saved here"))
    )
    assert text.index(" --> train.py:4:1\n") < text.index(" ::: net/act.py:2:12\n")
    assert underlines(text) == [
        Underlined("train.py", 4, "out += identity", "changed here", True, 0),
        Underlined("net/act.py", 2, "x.relu()", "saved here", False, 11),
    ]


def test_a_file_outside_is_shown_in_full(train: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    text = page(tmp_path_factory.mktemp("elsewhere"), finding(site(train, "out += identity")))
    assert f"--> {train}:4:1\n" in text


def test_two_places_on_one_line_are_both_underlined(train: Path) -> None:
    shown = finding(site(train, "out += identity"), Because(site(train, "identity"), "read here"))
    assert [(mark.covered, mark.label) for mark in underlines(page(train.parent, shown))] == [
        ("out += identity", "changed here"),
        ("identity", "read here"),
    ]


def test_one_line_between_two_places_is_shown_and_more_are_not(train: Path) -> None:
    text = page(
        train.parent, finding(site(train, "out += identity"), Because(site(train, "import torch"), "here"))
    )
    assert source_lines(text) == [1, 4]
    assert "\n...\n" in text
    text = page(
        train.parent, finding(site(train, "out = act(x)"), Because(site(train, "import torch"), "here"))
    )
    assert source_lines(text) == [1, 2, 3]
    assert "\n...\n" not in text


def test_a_span_of_lines_is_underlined_on_each_with_the_words_at_its_end(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("y = f(\n    a,\n\n    b)\n" + "z = g(\n" + "    c,\n" * 9 + ")\n")
    marks = underlines(page(tmp_path, finding(site(path, "f(\n    a,\n\n    b)"))))
    assert [(mark.covered, mark.label) for mark in marks] == [("f(", ""), ("a,", ""), ("b)", "changed here")]
    long = page(tmp_path, finding(site(path, "g(\n" + "    c,\n" * 9 + ")")))
    assert source_lines(long) == [5, 6, 7, 15]
    assert underlines(long)[-1].label == "changed here"


def test_tabs_wide_and_combining_characters_are_aligned(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("\tnote = '日本e\u0301'; \tout.add_(1)  # 日\n", encoding="utf-8")
    (mark,) = underlines(page(tmp_path, finding(site(path, "out.add_(1)"))))
    assert mark.covered == "out.add_(1)"
    assert mark.starts_at_cell == 4 + len("note = '") + 4 + 1 + len("'; ") + 4
    (mark,) = underlines(page(tmp_path, finding(site(path, "日本e\u0301"))))
    assert mark.covered == "日本e\u0301"


def test_without_columns_the_statement_is_underlined(train: Path) -> None:
    text = page(train.parent, finding(Site(str(train), 4)))
    assert "--> train.py:4\n" in text
    assert underlines(text)[0].covered == "out += identity"


def test_control_characters_do_not_reach_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "a\x1b[2J.py"
    path.write_bytes("x = '\x1b[31m\x07\u202e\x9b'; out.add_(1)\n".encode())
    shown = finding(site(path, "out.add_(1)"), label="here\x1b]0;title\x07", count=1)
    text = page(tmp_path, shown, Finding("TS1", "a\nb\x1b[0m", site(path, "x"), name="n", help="\x1b[1m"))
    assert not set(text) & {"\x1b", "\x07", "\u202e", "\x9b", "\r"}
    assert "\\x1b[31m\\x07\\u202e\\x9b" in text
    assert underlines(text)[0].covered == "out.add_(1)"


@pytest.mark.parametrize("position", [0, 40, 400, 900])
def test_a_long_line_is_cut_around_the_span(tmp_path: Path, position: int) -> None:
    path = tmp_path / "a.py"
    path.write_text("x" * position + " target() " + "y" * (1000 - position) + "\n")
    text = page(tmp_path, finding(site(path, "target()")), width=80)
    (mark,) = underlines(text)
    assert mark.covered == "target()"
    assert max(len(line) for line in text.splitlines() if line.startswith("1 |")) <= 80


def test_a_span_wider_than_the_page_is_cut_too(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("f(" + "a" * 1000 + ")\n")
    (mark,) = underlines(page(tmp_path, finding(site(path, "f(" + "a" * 1000 + ")")), width=80))
    assert mark.covered.startswith("f(aaa")


@pytest.mark.parametrize("change", ["gone", "shorter", "narrower", "newer", "binary"])
def test_a_missing_or_changed_file_leaves_the_location(train: Path, change: str) -> None:
    shown = finding(site(train, "out += identity"), Because(site(train, "act(x)"), "saved here"))
    sources = Sources()
    if change == "gone":
        train.unlink()
    elif change == "newer":
        sources = Sources(not_after=train.stat().st_mtime - 10)
    else:
        train.write_bytes({"shorter": b"x\n", "narrower": b"a\nb\nc\nd\n", "binary": b"\0\xff\n" * 9}[change])
    text = page(train.parent, shown, sources=sources)
    assert "--> train.py:4:1: changed here (the file " in text
    assert "::: train.py:3:7: saved here" in text
    assert not underlines(text)


def test_notices_are_counted_and_shown_on_request(train: Path) -> None:
    notice = Finding("TS302", "a copy", site(train, "act(x)"), name="hidden-copy", severity=Severity.NOTICE)
    record = Record("check", (notice,), summary={"files": 3})
    assert plain(render(record, View(root=str(train.parent)))) == (
        "tensafe: 1 notice (shown with --notices) in 1 of 3 files\n"
    )
    assert "notice[TS302] hidden-copy: a copy\n" in plain(
        render(record, View(str(train.parent), notices=True))
    )


def test_a_finding_told_before_is_not_told_in_full_again(train: Path) -> None:
    shown = finding(site(train, "out += identity"), count=4)
    text = page(train.parent, shown, told={one(shown)})
    assert "train.py:4:1 (told above) (seen 4 times)\n" in text
    assert not underlines(text)


def test_of_several_found_at_one_line_each_place_is_told_once(train: Path) -> None:
    at = site(train, "out += identity")
    backward = Because(site(train, "loss.backward()"), "backward needs it here")
    relu, tanh = (Because(site(train, words), f"saved for {words}") for words in ("act(x)", "import torch"))
    first, second = finding(at, relu, backward), replace(finding(at, tanh, backward, count=2), message="more")
    third, fourth = replace(second, because=(tanh, relu)), finding(at, relu, label="read here")
    whole = page(train.parent, first).split("\n\n")[0]
    again = "error[TS201] saved-tensor-modified: more\n"
    seen = " --> train.py:4:1 (line and help told above) (seen 2 times)\n"
    new = " ::: train.py:1:1\n  |\n1 | import torch\n  | ------------ saved for import torch\n"
    other = page(train.parent, fourth).split("\n\n")[0]
    text = page(train.parent, first, second, third, fourth)
    assert text.split("\n\n") == [
        whole,
        f"{again}{seen}{new}".rstrip("\n"),
        f"{again} {seen}".rstrip("\n"),
        other,
        "tensafe: 4 errors in train.py\n",
    ]


def test_what_was_not_checked_is_one_line_each() -> None:
    record = Record(
        "run", (), (NotChecked("torch.compile", "it is\nopaque"), NotChecked("worker 3", "it was killed"))
    )
    assert plain(render(record, View())) == (
        "not checked: torch.compile: it is\\nopaque\n"
        "not checked: worker 3: it was killed\n"
        "tensafe: nothing found; 2 things not checked\n"
    )


def test_a_clean_record_says_nothing() -> None:
    assert plain(render(Record("run"), View())) == ""


CHARACTERS = st.characters(exclude_characters="\r\n", exclude_categories=["Cs"])


@given(
    st.text(CHARACTERS, max_size=12),
    st.text(CHARACTERS, min_size=1, max_size=6),
    st.text(CHARACTERS, max_size=6),
)
def test_any_line_is_underlined_at_its_characters(before: str, span: str, after: str) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.py")
        path.write_bytes(f"# {before}\n'{before}{span}{after}'\n".encode())
        if "\0" in before + span + after:
            return
        at = Site(str(path), 2, len(before) + 2, 2, len(before) + len(span) + 2)
        text = page(Path(folder), finding(at), width=1000)
        mark = next(line for line in text.splitlines() if "^" in line and line.endswith(" changed here"))
    lead, _, _ = mark.partition("^")
    assert len(lead) - len("  | ") == cell_width("'" + printable(before))
    assert mark.count("^") == max(1, cell_width(printable(span)))


@given(st.text())
def test_printable_text_is_one_line_and_measured(text: str) -> None:
    shown = printable(text)
    assert len(shown.splitlines()) <= 1
    assert not any(ord(character) < 32 or 127 <= ord(character) < 160 for character in shown)
    assert cells(shown) == cell_width(shown)
