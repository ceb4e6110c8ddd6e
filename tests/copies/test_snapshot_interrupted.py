"""Ctrl-C in the middle of `restore` or `update`: all of it is done, and the interrupt goes on."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch

import tensafe


class Settings(dict[str, Any]):
    """The next item that is set brings an interrupt."""

    armed = False

    def __setitem__(self, key: str, value: Any) -> None:
        if self.armed:
            self.armed = False
            raise KeyboardInterrupt
        super().__setitem__(key, value)


class Dice(random.Random):
    """The next look at the state brings an interrupt."""

    armed = False

    def getstate(self) -> Any:
        if self.armed:
            self.armed = False
            raise KeyboardInterrupt
        return super().getstate()


class Counter:
    """Says itself what its state is, and is interrupted while it takes one."""

    def __init__(self, armed: bool = False) -> None:
        self.count = 0
        self.armed = armed

    def state_dict(self) -> dict[str, int]:
        return {"count": self.count}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.count = state["count"]
        if self.armed:
            self.armed = False
            raise KeyboardInterrupt


def test_an_interrupted_restore_is_carried_to_its_end() -> None:
    tree: dict[str, Any] = {"settings": Settings(rate=1), "x": torch.zeros(2), "list": [1], "n": 1}
    snap = tensafe.snapshot(tree)
    tree["settings"]["rate"] = 2
    tree["x"].add_(1)
    tree["list"].append(2)
    tree.update(n=2, born=3)
    tree["settings"].armed = True
    with pytest.raises(KeyboardInterrupt):
        snap.restore()
    assert not snap.diff()
    assert "born" not in tree


def test_a_restore_interrupted_in_code_of_others_has_restored_nothing() -> None:
    first, second, x = Counter(), Counter(), torch.zeros(2)
    snap = tensafe.snapshot(first, second, x)
    first.count = second.count = 5
    x.add_(1)
    second.armed = True
    with pytest.raises(KeyboardInterrupt):
        snap.restore()
    assert (first.count, second.count, x.tolist()) == (5, 5, [1.0, 1.0])


@pytest.mark.parametrize("grown", [False, True])
def test_an_interrupted_update_is_of_one_moment(grown: bool) -> None:
    tree: dict[str, Any] = {"x": torch.zeros(2), "dice": Dice(1), "array": np.zeros(2)}
    snap = tensafe.snapshot(tree)
    tree["x"].add_(1)
    tree["array"] += 1
    if grown:
        tree["more"] = [np.ones(1)]
    tree["dice"].armed = True
    with pytest.raises(KeyboardInterrupt):
        snap.update()
    assert not snap.diff()
    tree["x"].add_(1)
    tree["array"] += 1
    snap.restore()
    assert (tree["x"].tolist(), tree["array"].tolist()) == ([1.0, 1.0], [1.0, 1.0])
