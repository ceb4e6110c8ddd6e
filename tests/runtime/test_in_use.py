"""The glance at memory in use: it must see every kind of large storage, or say that it cannot tell."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from tensafe.runtime.storages.in_use import InUse, in_use

NBYTES = 2 << 20


def mapped(folder: Path) -> torch.Tensor:
    np.zeros(NBYTES, dtype=np.uint8).tofile(folder / "file")
    return torch.from_file(str(folder / "file"), size=NBYTES, dtype=torch.uint8)


MAKERS: dict[str, Callable[[Path], object]] = {
    "a tensor": lambda _: torch.ones(NBYTES, dtype=torch.uint8),
    "many tensors": lambda _: [torch.ones(NBYTES // 64, dtype=torch.uint8) for _ in range(64)],
    "never touched": lambda _: torch.empty(64 << 20, dtype=torch.uint8),
    "an array": lambda _: torch.from_numpy(np.ones(NBYTES, dtype=np.uint8)),
    "shared memory": lambda _: torch.ones(NBYTES, dtype=torch.uint8).share_memory_(),
    "a file": mapped,
}


@pytest.mark.parametrize("maker", MAKERS)
def test_large_storages_are_seen(maker: str, tmp_path: Path) -> None:
    before = in_use()
    if before is None:
        pytest.skip("this platform does not tell")
    held = MAKERS[maker](tmp_path)
    after = in_use()
    assert after is not None
    assert after.exceeds(before, NBYTES), (before, after, held)


def test_what_lies_where_something_was_freed_is_seen() -> None:
    """The address space does not grow; what is handed out does."""
    old = [torch.ones(NBYTES, dtype=torch.uint8) for _ in range(8)]
    fence = torch.ones(NBYTES, dtype=torch.uint8)
    del old
    before = in_use()
    if before is None:
        pytest.skip("this platform does not tell")
    new = torch.ones(NBYTES, dtype=torch.uint8)
    after = in_use()
    assert after is not None
    assert after.exceeds(before, NBYTES), (before, after, new, fence)


def test_the_same_is_no_more() -> None:
    assert not InUse(5, 7).exceeds(InUse(5, 7), 1)


WITHOUT = """
import ctypes
class Library:
    def __init__(self, name): pass
import torch
ctypes.CDLL = Library
from tensafe.runtime.storages import in_use
print(in_use.in_use())
"""


def test_it_says_so_where_malloc_does_not_tell() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True)
    assert done.stdout == "None\n"
