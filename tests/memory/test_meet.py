"""`meet` and `meet_itself` against sets of bytes, on extents of every kind."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.bytesets import byte_set, elements, extents, is_self_overlapping
from tensafe.memory import Extent, Shared, Undecided, meet, meet_itself
from tensafe.memory.solver import OutOfStepsError, solve


@settings(max_examples=1500)
@given(extents(), extents())
def test_two_extents_meet_where_their_bytes_do(a: Extent, b: Extent) -> None:
    found = meet(a, b)
    common = byte_set(a) & byte_set(b)
    assert (found is not None) == bool(common)
    if found is not None:
        assert isinstance(found, Shared)
        assert found.byte in common
        assert found.byte in elements(a)[found.first]
        assert found.byte in elements(b)[found.second]


@settings(max_examples=1500)
@given(extents())
def test_an_extent_meets_itself_where_elements_share_bytes(extent: Extent) -> None:
    found = meet_itself(extent)
    assert (found is not None) == is_self_overlapping(extent)
    if found is not None:
        assert isinstance(found, Shared)
        assert found.first != found.second
        assert found.byte in elements(extent)[found.first]
        assert found.byte in elements(extent)[found.second]


@settings(max_examples=500)
@given(extents())
def test_start_stop_and_density_are_those_of_the_bytes(extent: Extent) -> None:
    reached = byte_set(extent)
    assert (extent.start, extent.stop) == (
        (min(reached), max(reached) + 1) if reached else (extent.offset, extent.offset)
    )
    once = len(reached) == extent.nbytes
    assert extent.is_dense == (not reached or (once and len(reached) == extent.stop - extent.start))


terms = st.lists(st.tuples(st.integers(1, 30), st.integers(0, 5)), max_size=5)


@settings(max_examples=1000)
@given(terms, st.integers(-10, 250))
def test_the_solver_finds_what_trying_everything_finds(terms: list[tuple[int, int]], target: int) -> None:
    sums = {0}
    for coefficient, most in terms:
        sums = {so_far + coefficient * value for so_far in sums for value in range(most + 1)}
    found = solve(terms, target, 10**6)
    assert (found is not None) == (target in sums)
    if found is not None:
        assert all(0 <= value <= most for value, (_, most) in zip(found, terms, strict=True))
        assert sum(c * value for value, (c, _) in zip(found, terms, strict=True)) == target


HARD = [(coefficient, 1) for coefficient in (10**9 + n * n for n in range(1, 60, 2))]
"""A subset sum: nothing but trying helps."""


def test_work_is_bounded() -> None:
    with pytest.raises(OutOfStepsError):
        solve(HARD, 15 * 10**9 + 7, 1000)


def test_too_much_work_is_an_answer_of_its_own() -> None:
    strides = tuple(coefficient for coefficient, _ in HARD)
    a = Extent(0, (2,) * len(strides), strides, 1)
    found = meet(a, Extent(15 * 10**9 + 7, (), (), 1), steps=1000)
    assert isinstance(found, Undecided)
    assert found, "taken for a possible yes"
    assert str(found) == "cannot tell: not within 1000 steps"


LARGE = 10**12


@pytest.mark.parametrize(
    ("a", "b", "byte"),
    [
        # columns of a matrix that no byte set could hold
        (Extent(0, (LARGE, 5), (40, 4), 4), Extent(20, (LARGE, 5), (40, 4), 4), None),
        (Extent(0, (LARGE, 5), (40, 4), 4), Extent(16, (LARGE, 5), (40, 4), 4), 16),
        (Extent(0, (LARGE,), (8,), 4), Extent(4, (LARGE,), (8,), 4), None),
        (Extent(0, (LARGE,), (12,), 4), Extent(8 * LARGE, (LARGE,), (12,), 4), None),
        (Extent(0, (LARGE,), (14,), 2), Extent(2, (LARGE,), (22,), 2), 24),
    ],
)
def test_large_extents_take_few_steps(a: Extent, b: Extent, byte: int | None) -> None:
    found = meet(a, b, steps=100)
    assert not isinstance(found, Undecided)
    assert (found is None) == (byte is None)
    if found is not None and byte is not None:
        for extent, index in ((a, found.first), (b, found.second)):
            first = extent.offset + sum(i * s for i, s in zip(index, extent.strides, strict=True))
            assert first <= found.byte < first + extent.itemsize
            assert all(0 <= i < size for i, size in zip(index, extent.shape, strict=True))
