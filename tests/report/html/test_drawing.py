"""Where the ink goes, against a count of every byte."""

from __future__ import annotations

from itertools import pairwise, product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from report.html import samples
from tensafe.memory.extent import Extent
from tensafe.memory.map import Storage
from tensafe.report.html.drawing import (
    MOST_MARKS,
    RESOLUTION,
    is_filled,
    marks_of,
    segments_of,
)


def bytes_of(extent: Extent) -> set[int]:
    """Byte by byte, the slow way."""
    places = product(*(range(size) for size in extent.shape))
    starts = [
        extent.offset + sum(i * s for i, s in zip(place, extent.strides, strict=True)) for place in places
    ]
    return {start + byte for start in starts for byte in range(extent.itemsize)}


def depths_of(storage: Storage) -> list[int]:
    """How many tensors reach each byte."""
    depths = [0] * storage.nbytes
    for tensor in storage.tensors:
        for byte in bytes_of(tensor.extent):
            if 0 <= byte < storage.nbytes:
                depths[byte] += 1
    return depths


@given(samples.storages())
def test_segments_say_of_each_byte_how_many_tensors_reach_it(storage: Storage) -> None:
    kinds = [piece.kind for piece in segments_of(storage) for _ in range(piece.start, piece.stop)]
    assert kinds == [("dead", "used", "shared")[min(depth, 2)] for depth in depths_of(storage)]


@given(samples.storages())
def test_neighbouring_segments_differ_and_touch(storage: Storage) -> None:
    pieces = segments_of(storage)
    for first, second in pairwise(pieces):
        assert first.stop == second.start
        assert first.kind != second.kind


@given(samples.tensors(), st.integers(0, 400))
@example(samples.tensor("expanded", shape=(2, 4, 2), strides=(0, 5, 0), itemsize=1), 20)
def test_marks_are_the_bytes_of_the_tensor_as_far_as_the_storage_goes(
    tensor: samples.NamedTensor, nbytes: int
) -> None:
    marks = marks_of(tensor.extent, nbytes)
    drawn = {byte for start, stop in marks.runs for byte in range(start, stop)}
    reached = {byte for byte in bytes_of(tensor.extent) if byte < nbytes}
    assert drawn >= reached if marks.fine else drawn == reached


def test_a_tensor_of_many_runs_is_one_fine_range() -> None:
    few = samples.tensor("few", shape=(MOST_MARKS,), strides=(2,)).extent
    many = samples.tensor("many", shape=(MOST_MARKS + 1,), strides=(2,)).extent
    assert len(marks_of(few, 10**6).runs) == MOST_MARKS
    assert marks_of(many, 10**6).runs == ((0, many.stop),)
    assert marks_of(many, 10**6).fine


def test_negative_strides_are_drawn_from_their_lowest_byte() -> None:
    backwards = samples.tensor("array[::-1]", shape=(4,), strides=(-1,), offset=3).extent
    assert marks_of(backwards, 16).runs == ((0, 16),)


@pytest.mark.parametrize("rows", [5_000, 50_000])
def test_a_storage_too_fine_to_draw_stays_small_and_whole(rows: int) -> None:
    fine = samples.tensor("fine", shape=(rows,), strides=(2,))
    pieces = segments_of(samples.storage("storage 1", rows * 8, fine))
    assert len(pieces) <= 2 * RESOLUTION
    assert (pieces[0].start, pieces[-1].stop) == (0, rows * 8)
    assert {piece.kind for piece in pieces} <= {"mixed", "dead", "used"}
    assert pieces[0].kind == "mixed"


def test_a_single_sliver_between_large_parts_is_kept() -> None:
    below = samples.tensor("below", shape=(100_000,))
    above = samples.tensor("above", shape=(100_000,), offset=100_001)
    pieces = segments_of(samples.storage("storage 1", 800_004, below, above))
    assert [(piece.kind, piece.stop - piece.start) for piece in pieces] == [
        ("used", 400_000),
        ("dead", 4),
        ("used", 400_000),
    ]


def test_only_a_tensor_that_takes_every_byte_stands_for_its_storage() -> None:
    whole = samples.tensor("whole", shape=(4,))
    assert is_filled(samples.storage("storage 1", 16, whole))
    assert not is_filled(samples.storage("storage 1", 20, whole))
    assert not is_filled(samples.storage("storage 1", 16, whole, whole))
    assert not is_filled(samples.storage("storage 1", 16))


def test_a_tensor_that_claims_more_than_its_storage_is_cut_off() -> None:
    claimed = samples.tensor("claimed", shape=(10,), offset=1)
    pieces = segments_of(samples.storage("data/0", 20, claimed))
    assert [(piece.start, piece.stop, piece.kind) for piece in pieces] == [(0, 4, "dead"), (4, 20, "used")]
    assert marks_of(claimed.extent, 20).runs == ((4, 20),)
    assert marks_of(claimed.extent, 4).runs == ()
