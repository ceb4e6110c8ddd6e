"""What looking at memory costs: `overlap` a pair, `memory_map` of many tensors, with NumPy beside them."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median

import numpy as np
import torch

import tensafe
from tensafe.report.html import memory_page

MATRIX = torch.zeros(1000, 10)
PAIRS = {
    "columns apart": (MATRIX[:, :5], MATRIX[:, 5:]),
    "columns that meet": (MATRIX[:, :5], MATRIX[:, 4:]),
    "rows interleaved": (MATRIX[::2], MATRIX[1::2]),
    "slices that meet": (MATRIX[:600], MATRIX[500:]),
    "slices apart": (MATRIX[:500], MATRIX[500:]),
    "a transpose": (MATRIX, MATRIX.t()),
    "two storages": (MATRIX, torch.zeros(100)),
}


def microseconds(call: Callable[[], object], rounds: int, times: int = 5000) -> float:
    """The median of several rounds of many calls."""
    found = []
    for _ in range(rounds):
        begun = time.perf_counter()
        for _ in range(times):
            call()
        found.append((time.perf_counter() - begun) / times * 1e6)
    return median(found)


def pairs(rounds: int) -> None:
    print(f"{'overlap, microseconds a pair':32} tensafe  np.shares_memory of the arrays")
    for name, (a, b) in PAIRS.items():
        arrays = a.numpy(), b.numpy()
        ours = microseconds(lambda a=a, b=b: tensafe.overlap(a, b), rounds)  # type: ignore[misc]
        theirs = microseconds(lambda c=arrays: np.shares_memory(*c), rounds)  # type: ignore[misc]
        print(f"{name:32} {ours:7.2f}  {theirs:7.2f}")


def many(count: int, rounds: int) -> None:
    """A tree of tensors, two views in each storage, mapped; beside it, only asking each for its storage."""
    tree = {f"tensor{i}": torch.zeros(64) for i in range(count // 2)}
    tree |= {f"{name}.view": tensor[8:] for name, tensor in tree.items()}
    begun = time.perf_counter()
    for tensor in tree.values():
        tensor.untyped_storage().nbytes(), tensor.storage_offset(), tensor.shape, tensor.stride()
    asked = time.perf_counter() - begun
    mapped = []
    for _ in range(rounds):
        begun = time.perf_counter()
        tensafe.memory_map(tree)
        mapped.append(time.perf_counter() - begun)
    begun = time.perf_counter()
    size = len(memory_page(tensafe.memory_map(tree)))
    page = time.perf_counter() - begun
    print(f"memory_map of {count:,} tensors: {median(mapped):.3f} s (asking each: {asked:.3f} s)")
    print(f"its page: {page:.3f} s, {size / 1e6:.1f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--tensors", type=int, default=10_000)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    pairs(chosen.rounds)
    many(chosen.tensors, chosen.rounds)


if __name__ == "__main__":
    main()
