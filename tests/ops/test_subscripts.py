"""Every key is given to a tensor: what is said to be a view is one, what is said to be a copy is one."""

from __future__ import annotations

import ast
import warnings
from typing import Any

import numpy as np
import pytest
import torch

from tensafe.ops.names import rows_named
from tensafe.ops.row import Result
from tensafe.ops.stored import stored
from tensafe.ops.subscripts import Key, NoKeyError, key_of

VIEWS = """
0|-1|1, 2|~0|1 + 1|:|1:3|::2|..., 0|None|...|..., None|:, None|0, 2:|slice(0, 2)|()|int(n)|len(rows) - 1
rows.max().item()|torch.tensor(1)|0, torch.tensor(1)|:, torch.tensor(1)|torch.tensor(0):|rows.argmax()
torch.argmin(rows)|np.array(1)|1 if n else 2|~True|-True
"""
COPIES = """
[0, 2]|[0]|[]|:, [0, 1]|0, [1]|..., [0]|None, [0]|[True, False, True]|[[0, 1], [1, 2]]|range(2)|list(range(2))
torch.tensor([0, 2])|:, torch.tensor([0])|torch.arange(3)|torch.randperm(n)|torch.LongTensor([0])
np.array([0, 1])|np.arange(2)|torch.as_tensor([0, 1])|range(n), a|a, range(n)|True|False|0, True|True, 0
torch.tensor(True)|x > 3|~(x > 3)|(x > 3) & (x < 5)|x.isnan()|x.gt(3)|torch.isnan(x)
rows == 1|n > 1|not n|mask
~mask|mask, 0|my_mask|0, mask[:1].nonzero()
torch.where(x > 3)|(rows > 5).nonzero()|mask.nonzero(as_tuple=True)
x.bool()|rows[0] == 0|bool(n)
"""
UNSURE = (
    "n|a|a, 0|rows[0]|rows.argmax(-1)|logits.argmax(-1)|[n, 0]|[torch.tensor(0)]|[slice(0, 2)]|rows.long()"
)
REFUSED = "1.5|'a'|0, 'a'|{0}|1:2.5|b'a'|{}"


def _each(text: str) -> list[str]:
    return [one for line in text.strip().splitlines() for one in line.split("|") if one]


def setting() -> dict[str, Any]:
    mask = torch.tensor([True, False, True])
    return {
        "torch": torch,
        "np": np,
        "x": torch.arange(12.0).reshape(3, 4),
        "n": 2,
        "a": torch.tensor([0, 1]),
        "rows": torch.tensor([0, 2, 1]),
        "logits": torch.rand(3, 4)[:, :3],
        "mask": mask,
        "my_mask": mask,
    }


def known(key: str) -> Key:
    node = ast.parse(f"x[{key}]", mode="eval").body
    assert isinstance(node, ast.Subscript)
    return key_of(node.slice)


def is_view(key: str) -> bool:
    names = setting()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = eval(f"x[{key}]", names)
    return bool(result.untyped_storage()._cdata == names["x"].untyped_storage()._cdata)


@pytest.mark.parametrize("key", _each(VIEWS))
def test_a_view_is_known_as_one(key: str) -> None:
    assert is_view(key)
    assert known(key).is_view
    assert stored()[rows_named(f"x[{key}]", stored())[0]].gives is Result.VIEW


@pytest.mark.parametrize("key", _each(COPIES))
def test_a_copy_is_known_as_one(key: str) -> None:
    assert not is_view(key)
    assert known(key).is_copy
    assert stored()[rows_named(f"q[{key}]", stored())[0]].gives is Result.COPY


@pytest.mark.parametrize("key", _each(UNSURE))
def test_what_depends_on_values_is_told_to_depend(key: str) -> None:
    assert known(key) is Key.UNSURE
    assert rows_named(f"x[{key}]", stored()) == ["x[key]"]
    assert stored()["x[key]"].gives is Result.EITHER


def test_what_depends_goes_either_way() -> None:
    assert is_view("n")
    assert not is_view("a")
    assert is_view("rows.argmax(-1)")
    assert not is_view("logits.argmax(-1)")
    assert not is_view("[n, 0]")
    assert is_view("[torch.tensor(0)]")


@pytest.mark.parametrize("key", _each(REFUSED))
def test_what_torch_refuses_is_refused(key: str) -> None:
    with pytest.raises((IndexError, TypeError)):
        is_view(key)
    with pytest.raises(NoKeyError):
        known(key)


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("x[range(2)] = 0", "x[index] = v"),
        ("x[[0, 1]] = 0", "x[index] = v"),
        ("x[x > 0] = 0", "x[mask] = v"),
        ("x[y] = 0", "x[key] = v"),
        ("x[0, 1:] = 0", "x[i] = v"),
        ("x[0] += 1", "x[0] += v"),
        ("x[0] *= 2", "x[0] += v"),
        ("x[mask] -= 1", "x[mask] += v"),
        ("x[y] += 1", "x[key] += v"),
        ("x[mask][0] = 1", "x[mask][0] = v"),
        ("x[[0, 2]][0] = 1", "x[mask][0] = v"),
        ("x[1:][mask] = 1", "x[0][1] = v"),
    ],
)
def test_a_written_key_finds_its_row(text: str, row: str) -> None:
    assert rows_named(text, stored())[0] == row
