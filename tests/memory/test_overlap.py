"""`tensafe.overlap` on real tensors and arrays, against sets of bytes and `numpy.shares_memory`."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch

from memory.bytesets import byte_set, elements, is_self_overlapping, random_view
from tensafe.aliases.overlap import Overlap, overlap
from tensafe.errors import TensafeError

PAIRS = 100_000
NBYTES = 240
DTYPES = [
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
    torch.float32, torch.float64, torch.complex64, torch.complex128, torch.uint16, torch.uint32, torch.uint64,
    torch.float8_e4m3fn, torch.float8_e5m2,
]  # fmt: skip
NUMPY_DTYPES = ["?", "u1", "i2", "i4", "i8", "f2", "f4", "f8", "c8", "c16", "u8", "S3", "M8[s]", "i4,f8"]


def random_tensor(rng: random.Random, buffer: torch.Tensor) -> torch.Tensor:
    """A view of the buffer in any dtype, with any strides that torch has: none is negative."""
    typed = buffer.view(rng.choice(DTYPES))
    offset, shape, strides = random_view(rng, typed.numel())
    return typed.as_strided(shape, strides, offset)


def random_array(rng: random.Random, buffer: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A view of the buffer in any dtype, at any byte, some axes backwards."""
    dtype = np.dtype(rng.choice(NUMPY_DTYPES))
    skipped = rng.randrange(dtype.itemsize)
    typed = buffer[skipped : skipped + (len(buffer) - skipped) // dtype.itemsize * dtype.itemsize].view(dtype)
    offset, shape, strides = random_view(rng, len(typed))
    in_bytes = [stride * dtype.itemsize for stride in strides]
    array = np.lib.stride_tricks.as_strided(typed[offset:], shape, in_bytes)
    return array[(..., *(slice(None, None, rng.choice((1, -1))) for _ in shape))]


def bytes_of(memory: Any) -> dict[tuple[int, ...], range]:
    """The addresses of every element, from the interface that NumPy and torch publish."""
    if isinstance(memory, torch.Tensor):
        size = memory.element_size()
        strides = [stride * size for stride in memory.stride()]
        return _addresses(memory.data_ptr(), tuple(memory.shape), strides, size)
    address = memory.__array_interface__["data"][0]
    return _addresses(address, memory.shape, memory.strides, memory.itemsize)


def _addresses(first: int, shape: tuple[int, ...], strides: Any, size: int) -> dict[tuple[int, ...], range]:
    from tensafe.memory import Extent

    return elements(Extent(first, shape, tuple(strides), size))


def reached(elements: dict[tuple[int, ...], range]) -> set[int]:
    return {byte for element in elements.values() for byte in element}


def assert_answered(a: Any, b: Any) -> bool:
    """`overlap` says what the bytes say, and its reason is true; gives whether there is one."""
    found = overlap(a, b)
    ours, theirs = bytes_of(a), bytes_of(b)
    common = {byte for one in ours.values() for byte in one} & {
        byte for one in theirs.values() for byte in one
    }
    assert (found is not None) == bool(common), (a.shape, b.shape)
    if found is not None:
        assert isinstance(found, Overlap)
        mine, other = ours[found.a.element], theirs[found.b.element]
        assert set(mine) & set(other), found
        base = min(reached(ours)) - found.a.extent.start
        assert base + found.byte in mine
        assert base + found.byte in other
    return found is not None


def test_a_hundred_thousand_pairs() -> None:
    """Tensors of all dtypes, arrays with negative strides, and one of each, over one buffer or over two."""
    rng = random.Random(20)
    buffers = [torch.zeros(NBYTES, dtype=torch.uint8) for _ in range(2)]
    arrays = [buffer.numpy() for buffer in buffers]
    hits = numpy_hits = 0
    for turn in range(PAIRS):
        other = int(rng.random() < 0.05)
        a: Any = random_tensor(rng, buffers[0]) if turn % 3 else random_array(rng, arrays[0])
        b: Any = random_tensor(rng, buffers[other]) if turn % 2 else random_array(rng, arrays[other])
        shared = assert_answered(a, b)
        hits += shared
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
            numpy_hits += shared
            assert shared == np.shares_memory(a, b)
    assert PAIRS / 10 < hits < PAIRS * 9 / 10, "the pairs are of both kinds"
    assert numpy_hits > PAIRS / 100


def test_self_overlap_of_ten_thousand_views() -> None:
    rng = random.Random(21)
    buffer = torch.zeros(NBYTES, dtype=torch.uint8)
    hits = 0
    for _ in range(10_000):
        view = random_tensor(rng, buffer)
        found = overlap(view)
        places = bytes_of(view)
        assert (found is not None) == (len(reached(places)) < view.nbytes)
        if found is not None:
            assert isinstance(found, Overlap)
            hits += 1
            assert found.a.element != found.b.element
            assert set(places[found.a.element]) & set(places[found.b.element])
    assert 500 < hits < 9_500


def test_the_nested_case_that_a_sweep_forgets() -> None:
    whole = torch.arange(100)
    three = {"whole": whole, "first": whole[10:20], "second": whole[50:60]}
    shared = {(a, b) for a in three for b in three if a < b and overlap(three[a], three[b])}
    assert shared == {("first", "whole"), ("second", "whole")}
    found = overlap(whole, three["second"])
    assert isinstance(found, Overlap)
    assert found.relation == "b inside a"


def test_a_transposed_tensor() -> None:
    square = torch.arange(16.0).reshape(4, 4)
    found = overlap(square, square.t())
    assert isinstance(found, Overlap)
    assert found.relation == "the same bytes"
    assert square[found.a.element] == square.t()[found.b.element]
    assert overlap(square[:2], square.t()[:2]) is not None
    assert overlap(square[:1, 1:], square.t()[:1, 1:]) is None, "a row and a column without the corner"


def test_what_only_looks_shared() -> None:
    x = torch.arange(12.0)
    assert overlap(x[::2], x[1::2]) is None
    assert overlap(x[:6], x[6:]) is None
    assert overlap(x[3:3], x) is None, "no element, no byte"
    assert overlap(x, x.clone()) is None
    found = overlap(x[0:3], x[1:4])
    assert isinstance(found, Overlap)
    assert (found.byte, found.storage_nbytes, found.device) == (4, 48, "cpu")
    assert str(found) == (
        "share memory (a part of each): byte 4 of a storage of 48 bytes on cpu is in a[1] and in b[0]; "
        "a covers bytes 0 to 12, b covers bytes 4 to 16"
    )


def test_views_that_change_the_type() -> None:
    z = torch.zeros(4, dtype=torch.complex64)
    assert overlap(z.real, z.imag) is None
    assert overlap(z.real, torch.view_as_real(z)[2:]) is not None
    assert overlap(z.conj(), z[3:]) is not None
    assert overlap(z.conj().imag, z) is not None, "a view with the negative bit"
    floats = torch.zeros(4)
    assert overlap(floats.view(torch.uint8)[15:], floats[3:]) is not None
    assert overlap(floats.view(torch.uint8)[:12], floats[3:]) is None


def test_the_same_memory_under_two_storages() -> None:
    array = np.zeros(10, dtype="f4")
    first, second = torch.from_numpy(array), torch.from_numpy(array[4:])
    assert first.untyped_storage() is not second.untyped_storage()
    assert overlap(first, second) is not None
    assert overlap(first[:4], second) is None
    assert overlap(array[::-1][:1], first[9:]) is not None
    assert overlap(torch.from_dlpack(first)[2:3], array[2:]) is not None
    raw = bytearray(40)
    assert (
        overlap(torch.frombuffer(raw, dtype=torch.float32), np.frombuffer(raw, dtype="u1", offset=39))
        is not None
    )


@pytest.mark.filterwarnings("ignore")
def test_sparse_and_nested_tensors_by_their_components() -> None:
    values = torch.ones(3)
    indices = torch.tensor([[0, 1, 2]])
    coo = torch.sparse_coo_tensor(indices, values, (5,))
    found = overlap(coo, values)
    assert isinstance(found, Overlap)
    assert (found.a.part, found.b.part) == ("values", "")
    assert overlap(coo, indices) is not None
    assert overlap(coo, coo.clone()) is None
    compressed = torch.sparse_csr_tensor(torch.tensor([0, 1, 3]), torch.tensor([0, 0, 1]), values, (2, 2))
    assert overlap(compressed, values[2:]) is not None
    assert overlap(compressed, values.clone()) is None
    assert overlap(compressed.requires_grad_(), values) is not None
    for layout in (torch.jagged, torch.strided):
        nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=layout)
        assert overlap(nested, nested.values()[4:]) is not None
        assert overlap(nested, values) is None


def test_memory_that_is_not_there() -> None:
    x = torch.empty(10, device="meta")
    found = overlap(x, x[2:])
    assert isinstance(found, Overlap)
    assert found.note == "meta: no memory behind it"
    assert overlap(x, torch.empty(10, device="meta")) is None
    assert overlap(x[:2], x[2:]) is None
    assert overlap(x, torch.zeros(10)) is None


def test_quantised_tensors() -> None:
    x = torch.quantize_per_tensor(torch.rand(8), 0.1, 0, torch.quint8)
    found = overlap(x[:5], x[4:])
    assert isinstance(found, Overlap)
    assert (found.byte, found.note) == (4, "quantised")
    assert overlap(x[:4], x[4:]) is None
    assert overlap(x, x.int_repr()) is None


def test_opaque_tensors_and_other_things_are_refused_in_one_line() -> None:
    x = torch.zeros(3)
    for wrong in ([1.0], None, "x", torch.nn.Linear(1, 1)):
        with pytest.raises(TensafeError, match="a tensor or a NumPy array is needed, not"):
            overlap(x, wrong)  # type: ignore[arg-type]
    if torch.backends.mkldnn.is_available():
        with pytest.raises(TensafeError, match="layout _mkldnn keeps its memory to itself"):
            overlap(torch.zeros(3).to_mkldnn(), x)


def test_masked_and_mapped_arrays(tmp_path: Any) -> None:
    data = np.zeros(5)
    masked = np.ma.masked_array(data, mask=np.zeros(5, dtype=bool), copy=False)
    found = overlap(masked, data)
    assert isinstance(found, Overlap)
    assert found.a.part == "data"
    mapped = np.memmap(tmp_path / "file", dtype="f4", mode="w+", shape=(10,))
    assert overlap(mapped[5:], mapped[:6]) is not None
    assert overlap(mapped[5:], mapped[:5]) is None
    matrix = np.matrix([[1, 2], [3, 4]])
    assert overlap(matrix, np.asarray(matrix)[1]) is not None


def test_the_oracle_itself() -> None:
    from tensafe.memory import Extent

    assert byte_set(Extent(3, (2,), (-2,), 1)) == {3, 1}
    assert is_self_overlapping(Extent(0, (2,), (0,), 1))


class Asked(np.ndarray):  # type: ignore[type-arg]
    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(f"{name} was asked")


def test_array_subclasses_and_strided_tricks() -> None:
    x = np.zeros(8)
    quiet = x.view(Asked)
    assert overlap(quiet, x[7:]) is not None
    windows = np.lib.stride_tricks.sliding_window_view(np.zeros(1000, dtype="f4"), 500)
    found = overlap(windows, windows[0])
    assert isinstance(found, Overlap)
    assert found.storage_nbytes == 4000
    repeated = np.lib.stride_tricks.as_strided(np.zeros(4), (10**6,), (0,))
    found = overlap(repeated)
    assert isinstance(found, Overlap)
    assert found.storage_nbytes == 32
