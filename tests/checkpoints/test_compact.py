"""`--compact`: what torch loads from the new file is what it loads from the old one, in fewer bytes."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from tensafe.checkpoints.error import CheckpointError
from tensafe.checkpoints.reader import read_file
from tensafe.checkpoints.rewriting.compact import compact

from .trees import leaves_of, raw, sharing, stored_nbytes, trees, viewed_nbytes


def rewritten(tree: Any, folder: Path, is_zip: bool = True, **saving: Any) -> tuple[Any, Any, str]:
    """What torch loads before and after, and what was said; the same twice when nothing was written."""
    path, out = folder / "a.pt", folder / "b.pt"
    torch.save(tree, path, _use_new_zipfile_serialization=is_zip, **saving)
    told = compact(read_file(path), out)
    before = torch.load(path)
    return before, torch.load(out) if out.exists() else before, told


def assert_equivalent(before: Any, after: Any) -> None:
    old, new = list(leaves_of(before)), list(leaves_of(after))
    assert [leaf.shape for leaf in old] == [leaf.shape for leaf in new]
    assert [(leaf.dtype, type(leaf), leaf.requires_grad) for leaf in old] == [
        (leaf.dtype, type(leaf), leaf.requires_grad) for leaf in new
    ]
    assert [raw(leaf) for leaf in old] == [raw(leaf) for leaf in new]
    assert sharing(before) == sharing(after)


@given(trees(), st.booleans(), st.sampled_from([2, 2, 1, 4, 5]))
def test_what_is_loaded_stays_the_same(tree: Any, is_zip: bool, protocol: int) -> None:
    assume(is_zip or all(leaf.dtype != torch.uint16 for leaf in leaves_of(tree)))  # torch cannot load it
    with tempfile.TemporaryDirectory() as name:
        path, out = Path(name) / "a.pt", Path(name) / "b.pt"
        torch.save(tree, path, _use_new_zipfile_serialization=is_zip, pickle_protocol=protocol)
        told = compact(read_file(path), out)
        before = torch.load(path, weights_only=protocol == 2)
        if not out.exists():
            assert "was not written" in told
            return
        after = torch.load(out, weights_only=protocol == 2)
        assert_equivalent(before, after)
        assert viewed_nbytes(after) <= stored_nbytes(after) <= stored_nbytes(before)


@pytest.mark.parametrize("is_zip", [True, False])
@pytest.mark.parametrize(
    "view",
    [
        lambda t: t[5:9],
        lambda t: t[:, 3:5],
        lambda t: t[::7, ::2],
        lambda t: t.t()[2],
        lambda t: t[3:4].expand(5, 40),
        lambda t: t[:, 0],
    ],
)
def test_a_slice_is_stored_in_its_own_bytes(view: Any, is_zip: bool, tmp_path: Path) -> None:
    slice_of = view(torch.arange(4000.0).reshape(100, 40))
    before, after, told = rewritten({"x": slice_of}, tmp_path, is_zip)
    assert_equivalent(before, after)
    assert stored_nbytes(after) == viewed_nbytes(before) < stored_nbytes(before), told
    assert (tmp_path / "b.pt").stat().st_size < (tmp_path / "a.pt").stat().st_size


def test_many_rows_of_few_bytes_and_few_of_many(tmp_path: Path) -> None:
    wide, tall = torch.arange(2_000_000, dtype=torch.int32).reshape(4, -1), torch.zeros(300_000, 5)
    tree = {"a": wide[:, 100_000:350_000], "b": tall[:, 1:3], "c": tall[10:, 4]}
    before, after, _ = rewritten(tree, tmp_path)
    assert_equivalent_quickly(before, after)
    assert stored_nbytes(after) == sum(leaf.numel() * 4 for leaf in tree.values())


def assert_equivalent_quickly(before: dict[str, torch.Tensor], after: dict[str, torch.Tensor]) -> None:
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_a_module_pickled_whole_keeps_its_ties(tmp_path: Path) -> None:
    big = torch.randn(50, 8)
    model = torch.nn.Sequential(torch.nn.Linear(8, 3), torch.nn.Linear(8, 3))
    model[0].weight = torch.nn.Parameter(big[10:13])
    model[1].weight = model[0].weight
    torch.save(model, tmp_path / "a.pt")
    compact(read_file(tmp_path / "a.pt"), tmp_path / "b.pt")
    after = torch.load(tmp_path / "b.pt", weights_only=False)
    assert after[0].weight is after[1].weight
    assert torch.equal(after[0].weight, big[10:13])
    assert after[0].weight.untyped_storage().nbytes() == 3 * 8 * 4


def test_a_storage_saved_itself_stays_whole(tmp_path: Path) -> None:
    base = torch.arange(100, dtype=torch.uint8)
    torch.save(
        {"view": base[:3], "storage": base.untyped_storage(), "other": torch.zeros(50)[:2]}, tmp_path / "a.pt"
    )
    compact(read_file(tmp_path / "a.pt"), tmp_path / "b.pt")
    after = torch.load(tmp_path / "b.pt")
    assert after["storage"].nbytes() == 100
    assert after["other"].untyped_storage().nbytes() == 8
    assert torch.equal(after["view"], base[:3])


def test_offsets_that_torch_works_out_are_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_SERIALIZATION_DEBUG", "1")
    sizes = [2, 3, *[1] * 9, 17, 100, 1000]  # those of 1 are stored in no byte
    tree = {f"t{index}": torch.arange(float(size))[1:] for index, size in enumerate(sizes)}
    before, after, _ = rewritten(tree, tmp_path)
    assert_equivalent(before, after)
    assert_equivalent(before, torch.load(tmp_path / "b.pt", mmap=True))


def test_every_record_but_storages_is_kept(tmp_path: Path) -> None:
    import zipfile

    rewritten({"x": torch.zeros(1000)[:3]}, tmp_path)
    old, new = (zipfile.ZipFile(tmp_path / name) for name in ("a.pt", "b.pt"))
    assert old.namelist() == new.namelist()
    assert new.testzip() is None
    for name in old.namelist():
        if name not in ("a/data.pkl", "a/data/0"):
            assert old.read(name) == new.read(name)


def test_a_number_in_two_places_of_the_pickle_is_left_alone(tmp_path: Path) -> None:
    """A pickle in which the strides of two tensors are one tuple, fetched from the memo."""
    import zipfile

    torch.save({"x": torch.zeros(10, 10)[:, :3], "y": torch.zeros(10, 10)[:, :5]}, tmp_path / "a.pt")
    with zipfile.ZipFile(tmp_path / "a.pt") as archive:
        records = {name: archive.read(name) for name in archive.namelist()}
    data = records["a/data.pkl"]
    strides = b"K\x0aK\x01\x86q"
    first = data.index(strides)
    memo = data[first + len(strides)]
    second = data.index(strides, first + 1)
    records["a/data.pkl"] = data[:second] + b"h" + bytes([memo]) + data[second + len(strides) + 1 :]
    with zipfile.ZipFile(tmp_path / "a.pt", "w") as archive:
        for name, content in records.items():
            archive.writestr(name, content)
    before = torch.load(tmp_path / "a.pt")
    told = compact(read_file(tmp_path / "a.pt"), tmp_path / "b.pt")
    assert "two places of the pickle" in told
    assert not (tmp_path / "b.pt").exists()
    assert before["x"].stride() == before["y"].stride() == (10, 1)


def test_a_number_that_went_into_the_memo_is_left_alone(tmp_path: Path) -> None:
    """A pickle of a tensor and of the very number that counts the elements of its storage."""
    import zipfile

    torch.save((torch.zeros(99)[:3], 77), tmp_path / "a.pt")
    with zipfile.ZipFile(tmp_path / "a.pt") as archive:
        records = {name: archive.read(name) for name in archive.namelist()}
    data = (
        records["a/data.pkl"]
        .replace(b"K\x63", b"K\x63r\xff\x00\x00\x01")
        .replace(b"K\x4d", b"j\xff\x00\x00\x01")
    )
    with zipfile.ZipFile(tmp_path / "a.pt", "w") as archive:
        for name, content in (records | {"a/data.pkl": data}).items():
            archive.writestr(name, content)
    assert torch.load(tmp_path / "a.pt")[1] == 99
    told = compact(read_file(tmp_path / "a.pt"), tmp_path / "b.pt")
    assert "two places of the pickle" in told


def test_elements_of_two_sizes_over_one_storage(tmp_path: Path) -> None:
    base = torch.arange(500).to(torch.uint16)
    tree = {
        "bytes": base.view(torch.uint8)[1:4],
        "pairs": base[50:57],
        "more": base.view(torch.uint8)[301:302],
    }
    before, after, _ = rewritten(tree, tmp_path)
    assert_equivalent(before, after)
    assert stored_nbytes(after) <= viewed_nbytes(before) + 4


def test_a_device_is_not_replaced(tmp_path: Path) -> None:
    import os

    torch.save(torch.zeros(99)[:3], tmp_path / "a.pt")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CheckpointError, match="no regular file"):
        compact(read_file(tmp_path / "a.pt"), tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()


def test_a_record_that_nothing_names_is_dead_and_goes(tmp_path: Path) -> None:
    import zipfile

    torch.save({"x": torch.ones(3)}, tmp_path / "a.pt")
    with zipfile.ZipFile(tmp_path / "a.pt", "a") as archive:
        archive.writestr("a/data/7", bytes(5000))
    found = read_file(tmp_path / "a.pt")
    assert found.memory().dead_nbytes == 5000
    compact(found, tmp_path / "b.pt")
    assert "b.pt" in [path.name for path in tmp_path.iterdir()]
    assert zipfile.ZipFile(tmp_path / "b.pt").namelist() == zipfile.ZipFile(tmp_path / "a.pt").namelist()[:-1]
    assert torch.equal(torch.load(tmp_path / "b.pt")["x"], torch.ones(3))


def test_a_file_that_is_not_sound_is_not_rewritten(tmp_path: Path) -> None:
    torch.save({"x": torch.zeros(1000)[:3], "y": torch.zeros(7)}, tmp_path / "a.pt")
    data = (tmp_path / "a.pt").read_bytes()
    (tmp_path / "a.pt").write_bytes(data.replace(b"X\x01\x00\x00\x001q", b"X\x01\x00\x00\x009q"))
    told = compact(read_file(tmp_path / "a.pt"), tmp_path / "b.pt")
    assert "the record data/9 is missing" in told
    assert not (tmp_path / "b.pt").exists()


def test_nothing_is_left_when_the_comparison_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tensafe.checkpoints.rewriting import compact as module

    torch.save({"x": torch.arange(1000.0)[5:8]}, tmp_path / "a.pt")
    (tmp_path / "b.pt").write_bytes(b"precious")
    real = module.gathered
    monkeypatch.setattr(module, "gathered", lambda *given: (bytes(len(part)) for part in real(*given)))
    with pytest.raises(CheckpointError, match="x would have other content"):
        compact(read_file(tmp_path / "a.pt"), tmp_path / "b.pt")
    assert (tmp_path / "b.pt").read_bytes() == b"precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.pt", "b.pt"]
