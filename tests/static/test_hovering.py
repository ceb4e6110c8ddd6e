"""What is known of the name under a cursor: `|` marks the place."""

from __future__ import annotations

import pytest

from static.checking import HEAD
from tensafe.static.hovering import Known, known_at


def known(marked: str, head: str = HEAD) -> Known | None:
    text = head + marked
    before = text[: text.index("|")]
    return known_at(
        "snippet.py", text.replace("|", "", 1), before.count("\n") + 1, len(before.rpartition("\n")[2]) + 1
    )


@pytest.mark.parametrize(
    ("text", "kind", "facts"),
    [
        ("x = torch.ones(3)\nprint(|x)\n", "tensor", ["memory: its own, no view", "graph: in none"]),
        ("|x = torch.ones(3)\n", "tensor", ["memory: its own, no view", "graph: in none"]),
        ("x = torch.ones(3)\ny = x[1:]\nprint(|y)\n", "tensor", ["memory: a view, shared with `x`"]),
        ("x = torch.ones(3)\ny = x.numpy()\nprint(y|)\n", "array", ["memory: shared with `x`"]),
        ("x = torch.ones(3)\nx.add_(1)\nprint(|x)\n", "tensor", ["last written by `Tensor.add_` at line 7"]),
        (
            "w = torch.ones(3, requires_grad=True)\ny = torch.sigmoid(w)\nprint(|y)\n",
            "tensor",
            [
                "graph: in a graph, backward goes through it",
                "saved for the backward of `SigmoidBackward0` at line 7",
            ],
        ),
        (
            "w = torch.ones(3, requires_grad=True)\nd = (w * 2).detach()\nprint(|d)\n",
            "tensor",
            ["graph: in none", "left its graph by `Tensor.detach` at line 7"],
        ),
        (
            "m = nn.Linear(2, 1)\nbest = m.state_dict()\nprint(|best)\n",
            "live state_dict",
            ["memory: that of the"],
        ),
        ("def f(n):\n    x = torch.zeros(n)\n    return |x\n", "tensor", ["memory: its own, no view"]),
        (
            "class A(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.register_buffer('seen', torch.zeros(3))\n"
            "    def forward(self, x):\n        old = self.se|en\n        return old\n",
            "tensor",
            ["graph: in none"],
        ),
        ("def f(x: torch.Tensor):\n    return |x\n", "tensor", ["memory: the caller's"]),
        ("def f(x: torch.Tensor):\n    x = x + 1\n    return |x\n", "tensor", ["memory: its own, no view"]),
        ("w = torch.ones(3)\ndef f():\n    return |w\n", "tensor", ["memory: its own, no view"]),
        (
            "def f(x):\n    return |x\nf(torch.ones(3))\n",
            "tensor",
            ["memory: the caller's", "graph: in none"],
        ),
        ("def f(|x):\n    y = x.view(-1)\n    y.zero_()\n", "", []),
        ("x = torch.ones(3)\nx = |x + 1\n", "tensor", ["memory: its own, no view"]),
        ("é = torch.ones(3); y = é.view(-1); print(|y)\n", "tensor", ["memory: a view, shared with `é`"]),
    ],
)
def test_what_is_known(text: str, kind: str, facts: list[str]) -> None:
    found = known(text)
    assert (found.kind if found else "") == kind
    for fact in facts:
        assert found is not None
        assert any(one.startswith(fact) for one in found.facts), found.facts


@pytest.mark.parametrize(
    "text",
    ["n = 3\nprint(|n)\n", "|import os\n", "print('|x')\n", "x = (|\n", "def f(n):\n    return |n\n", "|\n"],
)
def test_nothing_is_known(text: str) -> None:
    assert known(text) is None


def test_the_place_is_told() -> None:
    found = known("x = torch.ones(3)\nprint(x.da|ta)\n")
    assert found is not None
    assert (found.name, found.site.line, found.site.column, found.site.end_column) == ("x.data", 7, 7, 13)
    assert "a write through it passes autograd's version counter" in found.facts
