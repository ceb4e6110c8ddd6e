"""The comment that an editor writes: it stands where a comment can stand, and allows the finding."""

from __future__ import annotations

import ast

import pytest

from tensafe.check import check_text
from tensafe.checking.allowing import allow_here
from tensafe.rules._loader import select

HEAD = "import torch\nx = torch.rand(3)\n"
RULES = select(["TS106"])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x[x > 0].zero_()\n", "x[x > 0].zero_()  # tensafe: allow lost-write\n"),
        ("x[x > 0].zero_()", "x[x > 0].zero_()  # tensafe: allow lost-write"),
        ("x[x > 0].zero_()   \r\n", "x[x > 0].zero_()  # tensafe: allow lost-write   \r\n"),
        ("x[x > 0].zero_()  # why\n", "x[x > 0].zero_()  # why  # tensafe: allow lost-write\n"),
        (
            "x[x > 0].zero_()  # tensafe: allow graph-cut -- why\n",
            "x[x > 0].zero_()  # tensafe: allow graph-cut, lost-write -- why\n",
        ),
        ("x[x > 0].fill_(\n    1\n)\n", "x[x > 0].fill_(  # tensafe: allow lost-write\n    1\n)\n"),
        (
            "x[x > 0].fill_(len('''\n'''))\n",
            "x[x > 0].fill_(len('''\n'''))  # tensafe: allow lost-write\n",
        ),
        (
            "if 1:\n    x[x > 0].fill_ \\\n    (1)\n",
            "if 1:\n    x[x > 0].fill_ \\\n    (1)  # tensafe: allow lost-write\n",
        ),
        (
            "if 1:\n    y = '''\n'''; x[x > 0].zero_(); y = '''\n'''\n",
            "if 1:\n    y = '''\n'''; x[x > 0].zero_(); y = '''\n'''\n",
        ),
    ],
)
def test_where_it_stands(before: str, after: str) -> None:
    text = HEAD + before
    (finding,) = check_text(text, "a.py", RULES)
    offset, words = allow_here(text, finding)
    allowed = text[:offset] + words + text[offset:]
    if before == after:  # no line of it can hold a comment, and the one above is inside a string
        return
    assert allowed == HEAD + after
    ast.parse(allowed)
    assert check_text(allowed, "a.py", RULES) == []
