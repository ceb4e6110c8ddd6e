"""Snapshots of generated views, against `copy.deepcopy` of the same tree; nobody else's byte is written."""

from __future__ import annotations

import copy
from typing import Any

import torch
from hypothesis import given, reject
from hypothesis import strategies as st

import tensafe
from tensafe.errors import TensafeError

DTYPES = (torch.float32, torch.uint8, torch.int16, torch.float64)


@st.composite
def views(draw: st.DrawFn) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """One to three storages of 64 bytes, and tensors anywhere in them: overlapping, strided, repeating."""
    bases = [torch.arange(64, dtype=torch.uint8) + 64 * place for place in range(draw(st.integers(1, 3)))]
    found = []
    for _ in range(draw(st.integers(1, 5))):
        flat = draw(st.sampled_from(bases)).view(draw(st.sampled_from(DTYPES)))
        shape = draw(st.lists(st.integers(0, 3), max_size=2))
        strides = [draw(st.integers(0, 3)) for _ in shape]
        reach = sum(max(size - 1, 0) * stride for size, stride in zip(shape, strides, strict=True))
        room = flat.numel() - 1 - reach
        if room >= 0:
            found.append(flat.as_strided(shape, strides, draw(st.integers(0, room))))
    return bases, found


def reached(bases: list[torch.Tensor], tensors: list[torch.Tensor]) -> list[set[int]]:
    """The bytes of each storage that some tensor has an element in."""
    found: list[set[int]] = [set() for _ in bases]
    for one in tensors:
        place = next(k for k, base in enumerate(bases) if base.data_ptr() == one.untyped_storage().data_ptr())
        size = one.itemsize
        starts = torch.arange(64 // size).as_strided(one.shape, one.stride(), one.storage_offset()).flatten()
        found[place] |= {start * size + byte for start in starts.tolist() for byte in range(size)}
    return found


def raw(one: torch.Tensor) -> bytes:
    return one.contiguous().numpy().tobytes()


@given(views(), st.booleans(), st.booleans())
def test_restored_as_a_deep_copy_and_nothing_else(
    made: tuple[list[torch.Tensor], list[torch.Tensor]], lazy: bool, again: bool
) -> None:
    bases, tensors = made
    tree: dict[str, Any] = {"tensors": tensors, "count": len(tensors)}
    try:
        snap = tensafe.snapshot(tree, lazy=lazy)
    except TensafeError:  # it overlaps itself and leaves gaps
        reject()
    if again:
        for base in bases:
            base.mul_(3)
        snap.update()
    expected = copy.deepcopy(tree)
    before = [base.tolist() for base in bases]
    for _ in range(2):
        for base in bases:
            base.fill_(255)
        tree["count"] = -1
        snap.restore()
        for one, was in zip(tree["tensors"], expected["tensors"], strict=True):
            assert raw(one) == raw(was)
        assert tree["count"] == expected["count"]
        inside = reached(bases, tensors)
        for base, bytes_before, mine in zip(bases, before, inside, strict=True):
            now = base.tolist()
            assert all(now[k] == (bytes_before[k] if k in mine else 255) for k in range(64))
    found = snap.state_dict()["tensors"]
    assert list(map(raw, found)) == list(map(raw, expected["tensors"]))
