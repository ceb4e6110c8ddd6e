"""The walk in C: it holds on to nothing, survives a tree that changes under it, and is built if it can be."""

from __future__ import annotations

import copy
import gc
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import tensafe
from copies.twins import assert_twins
from tensafe.copies.walking import compiled
from tensafe.copies.walking.compiled import all_give

ROOT = Path(__file__).parent.parent.parent
needs_plain = pytest.mark.skipif(compiled.plain is None, reason="the walk was not compiled here")


def checkpoint(marker: object) -> dict[str, Any]:
    model = OrderedDict((f"layer{i}.weight", torch.rand(3)) for i in range(8))
    state = {i: {"step": torch.tensor(1.0), "pair": (torch.rand(2), marker, [1, marker])} for i in range(4)}
    return {"model": model, "state": state, "groups": [{"lr": 0.1, "betas": (0.9, marker), "params": [0, 1]}]}


@needs_plain
@pytest.mark.parametrize(
    "end",
    [
        lambda x: None,
        lambda x: {"odd": {1, 2}},
        lambda x: [x],
        lambda x: torch.rand(4)[:2],
        lambda x: {(1,): 2},
    ],
    ids=["plain", "no tree", "cycle", "a view", "a key that is no atom"],
)
def test_nothing_is_held_back_or_let_go(end: Any) -> None:
    """Objects counted before and after: what is given up half way gives back all that it took."""
    marker = float("1.25")
    tree = checkpoint(marker)
    tree["end"] = end(tree)
    tensor, sparse = tree["model"]["layer0.weight"], torch.eye(2).to_sparse()
    counted = (marker, tensor, tensor.untyped_storage(), tree["groups"])

    def counts() -> tuple[list[int], int]:
        gc.collect()
        return list(map(sys.getrefcount, counted)), len(gc.get_objects())

    def open_and_fill() -> None:
        found = compiled.plain.open(tree)
        if found is not None:
            opened, tensors, _ = found
            compiled.plain.fill(opened, [one.clone() for one in tensors])
        assert len(compiled.plain.own_storages([tensor, tensor])) == 2
        assert compiled.plain.own_storages([tensor, sparse]) is None

    open_and_fill()
    before = counts()
    for _ in range(50):
        open_and_fill()
    after = counts()
    assert after[0] == before[0]
    assert after[1] - before[1] < 50


@needs_plain
def test_a_tree_that_changes_while_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The collector runs at almost every step, and each time something is taken out of the source."""
    for seed in range(40):
        tree = checkpoint("marker")
        victims = iter(_removals(tree, seed))

        def change(phase: str, info: dict[str, int], victims: Iterator[Any] = victims) -> None:
            if phase == "start":
                next(victims, lambda: None)()

        thresholds = gc.get_threshold()
        gc.callbacks.append(change)
        gc.set_threshold(1)
        try:
            copied = tensafe.deepcopy(tree)
        except (RuntimeError, KeyError):  # as `copy.deepcopy` for a dictionary that changes under it
            continue
        finally:
            gc.set_threshold(*thresholds)
            gc.callbacks.remove(change)
        assert copied.keys() <= {"model", "state", "groups"}
        copy.deepcopy(copied)


def _removals(tree: dict[str, Any], seed: int) -> list[Any]:
    model, state, groups = tree["model"], tree["state"], tree["groups"]
    removals = [lambda i=i: model.pop(f"layer{i}.weight", None) for i in range(8)]
    removals += [lambda i=i: state.pop(i, None) for i in range(4)]
    removals += [groups[0]["params"].clear, groups.clear, tree.clear]
    return removals[seed % 7 :] + removals[: seed % 7]


SWEEP = """
import gc
import torch
from tensafe.copies.walking.compiled import plain

tree = [(torch.rand(1), [torch.rand(1)], {"a": torch.rand(1)}, []) for _ in range(50)]
gc.collect()
gc.freeze()
gc.callbacks.append(lambda phase, info: [list(one) for one in gc.get_objects() if type(one) is tuple])
gc.set_threshold(2)
found = plain.open(tree)
gc.callbacks.clear()
print(len(found[1]), all(map(gc.is_tracked, found[0])))
"""


@needs_plain
def test_whoever_looks_over_all_objects_meets_no_half_made_tuple() -> None:
    answer = subprocess.run([sys.executable, "-c", SWEEP], capture_output=True, text=True, check=True)
    assert answer.stdout == "150 True\n"


def test_a_module_of_another_state_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_INTERFACE", -1)
    assert compiled._prepared() is None


KINDS = [torch.rand(2), torch.rand(2, 2).t(), torch.nn.Parameter(torch.rand(1)), torch.ones(1, device="meta")]
SPARSE = torch.eye(2).to_sparse()


@pytest.mark.parametrize("way", ["compiled", "python"])
@pytest.mark.parametrize("kinds", [KINDS, KINDS[:1], KINDS[2:3], [SPARSE], []], ids=len)
def test_what_all_of_them_give(kinds: list[Any], way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "python":
        monkeypatch.setattr(compiled, "plain", None)
    Tensor = torch.Tensor
    are_meta, need = all(x.is_meta for x in kinds), all(x.requires_grad for x in kinds)
    assert all_give(kinds, Tensor.is_meta, True) == are_meta
    assert all_give(kinds, Tensor.requires_grad, True, Tensor.is_meta, False) == (
        need and not any(x.is_meta for x in kinds)
    )
    assert all_give(kinds, Tensor.is_contiguous, True) == all(
        x is not SPARSE and x.is_contiguous() for x in kinds
    )
    assert all_give(kinds, Tensor.untyped_storage, None) == (not kinds)


@needs_plain
def test_fewer_copies_than_tensors_are_refused() -> None:
    tree, tensors, _ = compiled.plain.open({"a": torch.rand(1), "b": [torch.rand(1)]})
    with pytest.raises(ValueError, match="fewer copies"):
        compiled.plain.fill(tree, [tensors[0]])


@pytest.mark.parametrize("depth", [99, 100, 101, 300])
def test_however_deep(depth: int) -> None:
    tree: Any = [torch.rand(2)]
    for _ in range(depth):
        tree = [tree]
    assert_twins(copy.deepcopy(tree), tensafe.deepcopy(tree))


def test_too_deep_for_the_interpreter() -> None:
    tree: Any = [torch.rand(2)]
    for _ in range(200_000):
        tree = [tree]
    with pytest.raises(RecursionError):
        tensafe.deepcopy(tree)
    while tree:  # which would go as deep
        tree = tree.pop() if isinstance(tree[0], list) else None


def test_what_is_shared_at_every_level_is_read_once() -> None:
    """2 ** 60 paths lead down."""
    tree: Any = [torch.rand(2)]
    for _ in range(60):
        tree = [tree, tree]
    copied = tensafe.deepcopy(tree)
    for _ in range(60):
        assert copied[0] is copied[1]
        copied = copied[0]
    assert torch.equal(copied[0], _leaf(tree))


def _leaf(tree: Any) -> Any:
    while isinstance(tree, list):
        tree = tree[0]
    return tree


@pytest.mark.skipif(
    sys.implementation.name != "cpython" or bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    reason="it is for CPython with its lock",
)
@pytest.mark.parametrize("compiler", [None, "no-such-compiler"], ids=["a compiler", "none"])
def test_a_wheel_has_it_where_there_is_a_compiler(compiler: str | None, tmp_path: Path) -> None:
    if compiler is None and not _can_compile():
        pytest.skip("no compiler or no headers of Python")
    environment = {**os.environ, **({"CC": compiler} if compiler else {})}
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        tmp_path,
        ROOT,
    ]
    subprocess.run(command, check=True, env=environment, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    built = [name for name in zipfile.ZipFile(wheel).namelist() if Path(name).suffix in (".so", ".pyd")]
    assert [Path(name).parent.as_posix() for name in built] == ["tensafe/copies/walking"] * (compiler is None)
    assert wheel.name.endswith("-none-any.whl") == (compiler is not None)


def _can_compile() -> bool:
    compiler = (sysconfig.get_config_var("CC") or "").split(" ")[0]
    return bool(shutil.which(compiler)) and Path(sysconfig.get_paths()["include"], "Python.h").exists()
