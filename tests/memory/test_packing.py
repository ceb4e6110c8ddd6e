"""A packed storage holds the same elements in fewer bytes, checked by carrying the plan out."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from memory.bytesets import byte_set, elements, extents
from tensafe.memory import Extent, Packing, pack


def carried_out(plan: Packing, old: list[int]) -> list[int | None]:
    """The new storage: every byte of the old one is a number of its own."""
    new: list[int | None] = [None] * plan.nbytes
    for start, length, count, stride, place in plan.rows:
        for row in range(count):
            new[place + row * length : place + (row + 1) * length] = old[start + row * stride :][:length]
    return new


@settings(max_examples=1200)
@given(st.lists(extents(signed=False), min_size=1, max_size=4), st.booleans())
def test_every_element_is_found_again(many: list[Extent], listed: bool) -> None:
    plan = pack(many) if listed else pack(many, most_runs=0)
    old = list(range(max(extent.stop for extent in many) + 1))
    new = carried_out(plan, old)
    for before, after in zip(many, plan.extents, strict=True):
        assert (after.shape, after.itemsize) == (before.shape, before.itemsize)
        there = elements(after)
        for index, place in elements(before).items():
            assert [new[byte] for byte in there[index]] == list(place)
    padding = plan.nbytes - plan.kept_nbytes
    assert padding < sum(extent.itemsize for extent in many)
    assert plan.kept_nbytes <= max(extent.stop for extent in many) - min(extent.start for extent in many)


@settings(max_examples=800)
@given(extents(signed=False))
def test_one_nested_extent_keeps_no_dead_byte(extent: Extent) -> None:
    if extent.is_nested:
        plan = pack([extent])
        assert plan.nbytes == plan.kept_nbytes == len(byte_set(extent))


def test_slices_of_one_storage() -> None:
    whole = [Extent(4000, (10,), (4,), 4), Extent(4020, (5,), (4,), 4), Extent(800, (3, 2), (400, 8), 4)]
    plan = pack(whole)
    assert plan.nbytes == 40 + 24
    assert plan.extents == (
        Extent(24, (10,), (4,), 4),
        Extent(44, (5,), (4,), 4),
        Extent(0, (3, 2), (8, 4), 4),
    )


def test_interleaved_columns_are_packed_each_alone() -> None:
    plan = pack([Extent(0, (10**6,), (400,), 4), Extent(8, (10**6,), (400,), 4)])
    assert plan.nbytes == 8 * 10**6
    assert len(plan.rows) == 2


def test_a_group_that_cannot_be_squeezed_is_moved() -> None:
    column, row = Extent(100, (3,), (40,), 4), Extent(100, (3,), (4,), 4)
    plan = pack([column, row])
    assert plan.extents == (Extent(0, (3,), (40,), 4), Extent(0, (3,), (4,), 4))
    assert plan.nbytes == 84


def test_million_rows_are_packed_by_one_stride() -> None:
    plan = pack([Extent(0, (10**6, 2), (400, 4), 4)])
    assert plan.nbytes == 8 * 10**6
