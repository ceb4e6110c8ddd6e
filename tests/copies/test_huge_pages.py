"""Huge pages are asked for inside fresh memory, and given up where they are dear."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator
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


@pytest.fixture
def fresh() -> Iterator[int]:
    """The address of memory that nobody has touched."""
    memory = mmap.mmap(-1, NBYTES)
    view = ctypes.c_char.from_buffer(memory)
    yield ctypes.addressof(view)
    del view
    memory.close()


@pytest.fixture(params=[float("inf"), 0.0], ids=["cheap", "dear"])
def price(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> float:
    """The seconds up to which a page is cheap; nothing was tried before."""
    monkeypatch.setattr(huge_pages, "_DEAR", request.param)
    monkeypatch.setattr(huge_pages._Price, "until", 0.0)
    return request.param  # type: ignore[no-any-return]


def test_fresh_memory(fresh: int, price: float) -> None:
    huge_pages.ask_for_huge_pages(fresh, NBYTES)
    assert ("hg" if price else "nh") in flags_of(fresh + NBYTES // 2)
    assert ctypes.string_at(fresh, NBYTES) == bytes(NBYTES)


def test_an_answer_holds_for_a_while(fresh: int, price: float, monkeypatch: pytest.MonkeyPatch) -> None:
    half = NBYTES // 2
    huge_pages.ask_for_huge_pages(fresh, half)
    monkeypatch.setattr(huge_pages, "_are_dear", lambda pages: pytest.fail("it was tried a moment ago"))
    monkeypatch.setattr(huge_pages._Price, "until", float("inf"))
    huge_pages.ask_for_huge_pages(fresh + half, half)
    assert ("hg" in flags_of(fresh + half + half // 2)) == bool(price)


def test_memory_in_use_is_left_alone(fresh: int, price: float) -> None:
    ctypes.memset(fresh, 7, NBYTES)
    huge_pages.ask_for_huge_pages(fresh, NBYTES)
    assert flags_of(fresh + NBYTES // 2).isdisjoint({"hg", "nh"})
    assert ctypes.string_at(fresh, NBYTES) == bytes([7]) * NBYTES


def test_what_is_copied_is_whole(price: float) -> None:
    tree = {"large": torch.arange(NBYTES // 8), "zeros": torch.zeros(NBYTES // 4)}
    for back in (tensafe.deepcopy(tree), tensafe.loads(tensafe.dumps(tree))):
        assert all(torch.equal(back[name], tree[name]) for name in tree)
