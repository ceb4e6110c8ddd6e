"""Huge pages are asked for inside fresh memory, and given up where they are dear."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import tensafe
from tensafe.copies import huge_pages

NBYTES = 64 << 20
pytestmark = pytest.mark.skipif(
    not Path("/sys/kernel/mm/transparent_hugepage").exists(),
    reason="this system has no transparent huge pages",
)


def flags_of(address: int) -> set[str]:
    """Those of the mapping that holds an address: `hg` asks for huge pages, `nh` for none."""
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        first = line.split(maxsplit=1)[0]
        if "-" in first and not first.endswith(":"):
            start, stop = (int(end, 16) for end in first.split("-"))
            inside = start <= address < stop
        elif inside and first == "VmFlags:":
            return set(line.split()[1:])
    raise AssertionError("no such mapping")


@pytest.mark.parametrize(("dear", "flag"), [(float("inf"), "hg"), (0.0, "nh")], ids=["cheap", "dear"])
def test_a_large_copy(dear: float, flag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huge_pages, "_DEAR", dear)
    x = torch.arange(NBYTES // 8)
    y = tensafe.deepcopy(x)
    assert flag in flags_of(y.data_ptr() + NBYTES // 2)
    assert torch.equal(x, y)


@pytest.mark.parametrize("dear", [float("inf"), 0.0], ids=["cheap", "dear"])
def test_what_is_dumped_is_whole(dear: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huge_pages, "_DEAR", dear)
    tree = {"large": torch.arange(NBYTES // 8), "zeros": torch.zeros(NBYTES // 4)}
    back = tensafe.loads(tensafe.dumps(tree))
    assert all(torch.equal(back[name], tree[name]) for name in tree)


def test_small_memory_is_left_alone() -> None:
    x = torch.zeros(16 << 20, dtype=torch.uint8)
    before = flags_of(x.data_ptr() + 4096)
    huge_pages.ask_for_huge_pages(x.data_ptr() + 4096, 1 << 20)
    assert flags_of(x.data_ptr() + 4096) == before
