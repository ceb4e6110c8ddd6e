"""Which comments silence a finding, and where they stand."""

from __future__ import annotations

import pytest

from tensafe.findings import Finding, Site
from tensafe.findings.allow import Allows, is_allowed
from tensafe.findings.source import split_lines


def allowed(text: str, line: int = 2, end_line: int = 0, name: str = "lost-write") -> bool:
    finding = Finding("TS106", "lost", Site("a.py", line, 1, end_line, 5), name=name)
    return is_allowed(finding, Allows(lambda path: split_lines(text) if path == "a.py" else []))


@pytest.mark.parametrize(
    "comment",
    [
        "# tensafe: allow",
        "# tensafe: allow lost-write",
        "# tensafe: allow TS106",
        "# tensafe: allow ts106",
        "# tensafe: allow graph-cut, lost-write",
        "# tensafe: allow graph-cut,TS106",
        "#tensafe:allow lost-write",
        "# TENSAFE: Allow Lost-Write",
        "# tensafe: allow lost-write -- the mask is empty",
        "# tensafe: allow lost-write: the mask is empty",
        "# noqa: E501  # tensafe: allow lost-write",
        "# tensafe: allow lost-write  # noqa",
    ],
)
def test_on_the_line(comment: str) -> None:
    assert allowed(f"a = 1\nx[m].zero_()  {comment}\n")
    assert allowed(f"{comment}\nx[m].zero_()\n")


@pytest.mark.parametrize(
    "comment",
    [
        "# tensafe: allow graph-cut",
        "# tensafe: allow lost-writes",
        "# tensafe: allow TS10",
        "# tensafe: allowed",
        "# tensafe allow lost-write",
        "tensafe: allow lost-write",
        "# tensafe: allow this lost-write",
        "",
    ],
)
def test_not_by_another_comment(comment: str) -> None:
    assert not allowed(f"a = 1\nx[m].zero_()  {comment}\n")


def test_only_alone_on_the_line_above() -> None:
    assert allowed("    # tensafe: allow lost-write\nx[m].zero_()\n")
    assert not allowed("y = 1  # tensafe: allow lost-write\nx[m].zero_()\n")
    assert not allowed("# tensafe: allow lost-write\n\nx[m].zero_()\n", line=3)
    assert not allowed("x[m].zero_()\ny = 1\n# tensafe: allow lost-write\n", line=1)


def test_on_any_line_of_the_span() -> None:
    text = "a\nx[m].fill_(\n    v,  # tensafe: allow lost-write\n)\nb  # tensafe: allow\n"
    assert allowed(text, line=2, end_line=4)
    assert not allowed(text, line=4, end_line=4)
    assert allowed(text, line=5)


@pytest.mark.parametrize(
    ("text", "line", "allowed_"),
    [
        ("# tensafe: allow-file lost-write\nx[m].zero_()\n", 2, True),
        ("# tensafe: allow-file graph-cut, TS106\n\n\nx[m].zero_()\n", 4, True),
        ("# tensafe: allow-file\nx[m].zero_()\n", 2, True),
        ("# tensafe: allow-file graph-cut\nx[m].zero_()\n", 2, False),
        ("x = 1\n# tensafe: allow-file lost-write\ny = 1\nx[m].zero_()\n", 4, True),
        ("x[m].zero_()\n\n    # tensafe: allow-file lost-write", 1, True),
        ("x[m].zero_()\r\n# tensafe: allow-file lost-write\r\n", 1, True),
        ("\ufeff# tensafe: allow-file lost-write\nx[m].zero_()\n", 2, True),
        ('"""A page."""\n# tensafe: allow-file lost-write\nx[m].zero_()\n', 3, True),
        ("'''\n# tensafe: allow-file lost-write\n'''\nx[m].zero_()\n", 4, False),
        ("x[m].zero_()\nf(\n    '''\n# tensafe: allow-file\n    ''')\n", 1, False),
        ("x = '''\n# '''  # tensafe: allow-file lost-write\nx[m].zero_()\n", 3, False),
        ("# tensafe: allow-files lost-write\nx[m].zero_()\n", 2, False),
        ("x[m].zero_()  # tensafe: allow-file lost-write\n", 1, False),
        ("x = (\n# tensafe: allow-file lost-write", 1, True),
    ],
)
def test_a_comment_for_the_whole_file_has_a_line_of_its_own(text: str, line: int, allowed_: bool) -> None:
    assert allowed(text, line=line) is allowed_


def test_a_file_is_searched_again_when_it_has_changed() -> None:
    lines = ["x[m].zero_()\n"]
    allows = Allows(lambda path: lines)
    finding = Finding("TS106", "lost", Site("a.py", 1), name="lost-write")
    assert not is_allowed(finding, allows)
    lines = [*lines, "# tensafe: allow-file\n"]
    assert is_allowed(finding, allows)
