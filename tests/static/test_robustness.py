"""Any Python must go through: the standard library, installed torch, generated code, nonsense."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensafe.check import check_file, check_text
from tensafe.rules._loader import select

RULES = [rule.code for rule in select()]
FOLDERS = [sysconfig.get_paths()["stdlib"], sysconfig.get_paths()["purelib"]]


def sample(folder: str, every: int) -> list[Path]:
    files = sorted(path for path in Path(folder).rglob("*.py") if "bad" not in path.name)
    return files[::every]


@pytest.mark.parametrize(
    ("folder", "every"), [(FOLDERS[0], 40), (FOLDERS[1], 150)], ids=["stdlib", "installed"]
)
def test_no_file_makes_it_fail(folder: str, every: int) -> None:
    for path in sample(folder, every):
        not_checked = check_file(path, RULES).not_checked
        assert not [one for one in not_checked if "tensafe failed" in one.why], not_checked


@pytest.mark.parametrize(
    "text",
    [
        "import torch\nx = " + "+".join(["torch.ones(1)"] * 3000),
        "import torch\nx = " + "(" * 80 + "torch" + ")" * 80,
        "import torch\n" + "".join(" " * depth + "if torch:\n" for depth in range(90)) + " " * 90 + "pass",
        "import torch\nx = torch" + ".a" * 900,
        "import torch\ndef f(x):\n    return f(f(x))\nf(torch.ones(1))",
        "import torch\nclass A(A): pass\nA()",
        "import torch\nclass A(torch.nn.Module):\n    def forward(self, x):\n        return self(x)\nA()(1)",
        "import torch\nx = []\nx.append(x)\nx[0][0].zero_()\ntorch.stack(x)",
        "import torch\nd = {}\nd['d'] = d\ntorch.tensor(d, requires_grad=True).backward()",
        "import torch\n[x := 1, *x][x:x:0]\ndel x\nlambda *a, **k: (a, k)\n",
        "import torch\nasync def f(x):\n    async with x as y:\n        async for z in y: await z\n",
        "import torch\nmatch torch:\n    case {'a': x, **rest}: x.zero_()\n    case [1, *y]: y[0] += 1\n",
        "import torch\ndef make():\n    a = 1\n    return object\nclass A(make()): pass\n",
    ],
    ids=range(13),
)
def test_strange_programs(text: str) -> None:
    check_text(text, "strange.py", select())


WORDS = [
    "x",
    "y",
    "x.data",
    "x[0]",
    "x[x > 0]",
    "torch.exp(x)",
    "model(x)",
    "model.state_dict()",
    "x.detach()",
    "[x, y]",
]
STATEMENTS = [
    "{a} = {b}",
    "x += {b}",
    "x.mul_({b})",
    "loss = ({b}).sum()",
    "x[{a}] = {b}",
    "{b}.backward()",
    "opt.step()",
]


@given(
    st.lists(
        st.tuples(st.sampled_from(STATEMENTS), st.sampled_from(WORDS), st.sampled_from(WORDS)), max_size=12
    )
)
def test_random_programs(rows: list[tuple[str, str, str]]) -> None:
    head = "import torch\nmodel = torch.nn.Linear(2, 2)\nx = y = model(1)\n"
    head += "opt = torch.optim.SGD(model.parameters(), lr=1)\n"
    targets = {"x", "y", "x.data", "x[0]"}
    lines = [form.format(a=a if a in targets else "x", b=b) for form, a, b in rows]
    text = head + "\n".join(lines)
    first = check_text(text, "random.py", select())
    assert first == check_text(text, "random.py", select())
