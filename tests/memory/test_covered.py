"""Unions of extents, counted byte by byte."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from memory.bytesets import byte_set, extents
from tensafe.memory import Extent, MemoryMap, NamedTensor, Storage, covered
from tensafe.memory.covered import distinct_nbytes


def shared(many: list[Extent]) -> int:
    return sum(count > 1 for count in Counter(byte for e in many for byte in byte_set(e)).values())


@settings(max_examples=600)
@given(st.lists(extents(), max_size=5))
def test_every_byte_is_counted_once(many: list[Extent]) -> None:
    found = covered(many)
    union = set().union(*map(byte_set, many)) if many else set()
    assert found.exact
    assert found.nbytes == len(union)
    assert found.shared_nbytes == shared(many)
    assert {byte for start, stop in found.runs for byte in range(start, stop)} == union
    assert all(a[1] < b[0] for a, b in zip(found.runs, found.runs[1:], strict=False)), "joined and ascending"


@settings(max_examples=600)
@given(st.lists(extents(), max_size=5))
def test_where_rows_are_too_many_the_answer_is_right_or_a_bound(many: list[Extent]) -> None:
    found = covered(many, most_runs=0)
    union = len(set().union(*map(byte_set, many))) if many else 0
    if found.exact:
        assert (found.nbytes, found.shared_nbytes) == (union, shared(many))
    assert found.nbytes >= union
    assert found.shared_nbytes >= shared(many)


def test_a_repeated_axis_does_not_fill_the_gaps() -> None:
    extent = Extent(0, (2, 4, 2), (0, 5, 0), 1)  # 16 elements in a range of 16 bytes, 4 of them reached
    assert not extent.is_dense
    assert covered([extent]).nbytes == 4


def test_very_many_rows_are_still_exact() -> None:
    columns = [Extent(4 * column, (10**7,), (40,), 4) for column in range(3)]
    found = covered(columns)
    assert (found.nbytes, found.shared_nbytes, found.exact) == (12 * 10**7, 0, True)
    whole = Extent(0, (10**7, 10), (40, 4), 4)
    found = covered([whole, *columns])
    assert (found.nbytes, found.shared_nbytes, found.exact) == (40 * 10**7, 12 * 10**7, True)


@settings(max_examples=300)
@given(extents())
def test_the_bytes_of_one_extent(extent: Extent) -> None:
    assert distinct_nbytes(extent) in (None, len(byte_set(extent)))


def named(name: str, extent: Extent) -> NamedTensor:
    return NamedTensor((name,), extent.shape, (), "float32", extent)


def test_totals_count_a_byte_once() -> None:
    first = Storage(
        "storage 1",
        400,
        "cpu",
        (named("a", Extent(0, (50,), (4,), 4)), named("b", Extent(100, (50,), (4,), 4))),
    )
    second = Storage("storage 2", 4000, "cpu", (named("c", Extent(0, (), (), 4)),))
    nowhere = Storage("storage 3", 800, "meta", (named("d", Extent(0, (200,), (4,), 4)),))
    whole = MemoryMap("x", (second, first, nowhere))
    assert (whole.stored_nbytes, whole.logical_nbytes) == (4400, 404)
    assert (whole.dead_nbytes, whole.shared_nbytes) == (100 + 3996, 100)
    assert whole.pinned == (second,)
