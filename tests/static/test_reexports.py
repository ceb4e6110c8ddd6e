"""A helper is found where it is defined, by whatever way its name comes into the file that calls it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensafe.check import check_paths
from tensafe.rules._loader import select

HELPER = """\
def head(x):
    return x[:1]

def _hidden(x):
    return x[:1]

def apart(x):
    return x[:1].clone()
"""
PROGRAM = """\
import torch
{import_}
w = torch.ones(3, requires_grad=True)
y = torch.sigmoid(w)
{call}(y).zero_()
y.sum().backward()
"""
INIT = "helper/__init__.py"
IMPL = "helper/impl.py"
ONE, STAR = "from .impl import head\n", "from .impl import *\n"
TRIED = "try:\n    from .impl import head\nexcept ImportError:\n    head = None\n"
COPYING = "def head(x):\n    return x[:1].clone()\n"


def found(tmp_path: Path, files: dict[str, str], import_: str, call: str) -> list[str]:
    """The codes of the findings in a program that calls a helper."""
    for name, text in {"helper/impl.py": HELPER, **files}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "train.py").write_text(PROGRAM.format(import_=import_, call=call))
    record = check_paths([tmp_path / "train.py"], select(["TS201"]), jobs=1)
    return [f"{finding.code} {finding.at.line}" for finding in record.findings]


SEEN = ["TS201 5"]


@pytest.mark.parametrize(
    ("files", "import_", "call"),
    [
        ({INIT: ONE}, "from helper import head", "head"),
        ({INIT: "from .impl import head as first\n"}, "from helper import first as f", "f"),
        ({INIT: ONE}, "import helper", "helper.head"),
        ({INIT: ONE}, "import helper as h", "h.head"),
        ({INIT: "from helper.impl import head\n"}, "from helper import head", "head"),
        ({INIT: "from . import impl as x\n"}, "from helper import x", "x.head"),
        ({INIT: "from . import impl as x\n"}, "import helper", "helper.x.head"),
        ({INIT: "from . import impl\n"}, "from helper import impl", "impl.head"),
        ({INIT: "import helper.impl\n"}, "import helper.impl", "helper.impl.head"),
        ({INIT: STAR}, "from helper import head", "head"),
        ({INIT: STAR}, "from helper import *", "head"),
        ({}, "from helper.impl import *", "head"),
        ({INIT: STAR, IMPL: f"__all__ = ['_hidden']\n{HELPER}"}, "from helper import _hidden", "_hidden"),
        ({INIT: TRIED}, "from helper import head", "head"),
        (
            {INIT: "from .deep import head\n", "helper/deep/__init__.py": "from ..impl import head\n"},
            *("from helper import head", "head"),
        ),
        ({INIT: "from .math import head\n", "helper/math.py": HELPER}, "from helper import head", "head"),
        ({INIT: "", "compat.py": "from helper.impl import head\n"}, "from compat import head", "head"),
    ],
)
def test_a_helper_is_followed(tmp_path: Path, files: dict[str, str], import_: str, call: str) -> None:
    assert found(tmp_path, files, import_, call)[-1:] == SEEN


@pytest.mark.parametrize("call", ["helper.squash", "helper.t.relu_", "helper.t.nn.functional.relu_"])
def test_a_name_of_torch_passed_on_is_that_of_torch(tmp_path: Path, call: str) -> None:
    init = {INIT: "import torch as t\nfrom torch.nn.functional import relu_ as squash\n"}
    assert found(tmp_path, init, "import helper", f"{call}(y); len") == SEEN


@pytest.mark.parametrize(
    ("files", "import_", "call"),
    [
        ({INIT: "from .impl import apart\n"}, "from helper import apart", "apart"),
        ({INIT: "from .impl import apart as head\n"}, "from helper import head", "head"),
        ({INIT: ONE}, "from helper import apart as head", "head"),
        ({INIT: STAR}, "from helper import _hidden", "_hidden"),
        ({INIT: STAR, IMPL: f"__all__ = ('apart',)\n{HELPER}"}, "from helper import head", "head"),
        (
            {INIT: STAR + "from .other import *\n", "helper/other.py": COPYING},
            *("from helper import head", "head"),
        ),
        (
            {INIT: "from .loop import head\n", "helper/loop.py": "from . import head\n"},
            *("from helper import head", "head"),
        ),
        (
            {INIT: "from .loop import *\n", "helper/loop.py": "from . import *\n"},
            *("from helper import *", "head"),
        ),
        ({INIT: "from nowhere import head\n"}, "from helper import head", "head"),
        ({INIT: "import helper\nfrom helper import head\n"}, "from helper import head", "head"),
    ],
)
def test_another_function_is_not_taken_for_it(
    tmp_path: Path, files: dict[str, str], import_: str, call: str
) -> None:
    assert found(tmp_path, files, import_, call) == []


def test_what_passes_a_name_on_is_part_of_the_answer(tmp_path: Path) -> None:
    from tensafe.check import look

    assert found(tmp_path, {INIT: "from .impl import head\n"}, "from helper import head", "head") == SEEN
    path = tmp_path / "train.py"
    consulted = look(path.read_text(), str(path), select(["TS201"])).consulted
    assert {str(tmp_path / "helper/impl.py"), str(tmp_path / INIT)} <= set(consulted)
