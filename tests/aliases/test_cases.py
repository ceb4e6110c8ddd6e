"""Real bugs of memory: the question that each raises is answered by one call, its twin's otherwise."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tensafe

CASES = Path(__file__).parent.parent / "cases" / "memory"
Patch = pytest.MonkeyPatch


def run(name: str) -> dict[str, Any]:
    """The names that a case's program leaves, also where it raises."""
    path = CASES / f"{name}.py"
    names: dict[str, Any] = {"__name__": "case"}
    with contextlib.suppress(RuntimeError):
        exec(compile(path.read_text(), str(path), "exec"), names)
    return names


def asked_at(patch: Patch, owner: Any, name: str, ask: Callable[..., object]) -> list[Any]:
    """Ask at every call of a function, before it runs; the answers."""
    answers: list[Any] = []
    original = getattr(owner, name)

    def asking(*args: Any, **kwargs: Any) -> Any:
        answers.append(ask(*args, **kwargs))
        return original(*args, **kwargs)

    patch.setattr(owner, name, asking)
    return answers


TWINS = pytest.mark.parametrize(("twin", "is_bug"), [("", True), (".fixed", False)])


@TWINS
def test_what_does_this_slice_keep_alive(twin: str, is_bug: bool) -> None:
    kept = run(f"one-element-slice-keeps-large-tensor{twin}")["kept"]
    assert tensafe.explain(kept[0]).storage_nbytes == (500 * 1000 * 4 if is_bug else 4)


@TWINS
def test_what_does_the_state_of_this_optimizer_keep_alive(twin: str, is_bug: bool) -> None:
    optimizer = run(f"optimizer-sliced-statistics-pin-gradients{twin}")["opt"]
    assert bool(tensafe.memory_map(optimizer).pinned) == is_bug


@TWINS
@pytest.mark.parametrize(
    "name",
    ["saved-slice-writes-whole-tensor", "shards-from-chunk-are-full-size", "prompt-embedding-cache-files"],
)
def test_how_many_bytes_will_be_saved(name: str, twin: str, is_bug: bool, monkeypatch: Patch) -> None:
    def needlessly(saved: object, _path: object) -> int:
        return tensafe.memory_map(saved).dead_nbytes

    answers = asked_at(monkeypatch, torch, "save", needlessly)
    run(f"{name}{twin}")
    assert answers
    assert any(answers) == is_bug


@TWINS
def test_how_many_bytes_will_be_saved_of_tied_weights(twin: str, is_bug: bool, monkeypatch: Patch) -> None:
    def more_than_once(_out: object, **arrays: Any) -> int:
        return tensafe.memory_map(arrays).shared_nbytes

    answers = asked_at(monkeypatch, np, "savez", more_than_once)
    run(f"tied-weights-exported-twice{twin}")
    assert answers == [8000 * 64 * 4 if is_bug else 0]


@TWINS
def test_may_i_write_into_these_windows(twin: str, is_bug: bool) -> None:
    windows = run(f"sliding-windows-centred-in-place{twin}")["windows"]
    assert tensafe.explain(windows).may_write != is_bug


@TWINS
def test_may_a_checkpoint_be_copied_into_this_buffer(twin: str, is_bug: bool) -> None:
    module = run(f"expanded-buffer-rejects-load-state-dict{twin}")["restored"]
    assert tensafe.explain(module.grid).may_write != is_bug


@TWINS
def test_may_an_optimizer_write_this_parameter(twin: str, is_bug: bool) -> None:
    module = run(f"per-head-parameter-from-expanded-view{twin}")["memory"]
    module.zero_grad()
    with torch.no_grad():
        assert tensafe.explain(module.slots).may_write != is_bug


@TWINS
@pytest.mark.parametrize("name", ["observation-history-shift-overlaps", "returns-in-place-ratio-raises"])
def test_do_source_and_target_overlap(name: str, twin: str, is_bug: bool, monkeypatch: Patch) -> None:
    read = torch.Tensor.__getitem__

    def of_assignment(target: torch.Tensor, index: Any, source: object) -> object:
        return tensafe.overlap(read(target, index), source) if isinstance(source, torch.Tensor) else None

    answers = asked_at(monkeypatch, torch.Tensor, "__setitem__", of_assignment)
    divisions = asked_at(monkeypatch, torch.Tensor, "__itruediv__", tensafe.overlap)
    run(f"{name}{twin}")
    assert answers or divisions
    assert any(answer is not None for answer in [*answers, *divisions]) == is_bug


@TWINS
@pytest.mark.parametrize(
    "name", ["trajectory-collate-permute-then-view", "channels-last-batch-flattened-with-view"]
)
def test_can_i_view_this(name: str, twin: str, is_bug: bool, monkeypatch: Patch) -> None:
    def whether(x: torch.Tensor, *shape: int) -> bool:
        return bool(tensafe.explain(x).view_as(*shape))

    answers = asked_at(monkeypatch, torch.Tensor, "view", whether)
    run(f"{name}{twin}")
    assert all(answers) != is_bug
