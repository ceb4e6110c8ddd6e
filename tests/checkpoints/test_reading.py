"""What is read without loading, against what loading gives."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from tensafe.checkpoints.checkpoint import Checkpoint
from tensafe.checkpoints.duplicates import find_duplicates
from tensafe.checkpoints.folder import read
from tensafe.checkpoints.record import Record
from tensafe.checkpoints.rewriting.elements import element_bytes
from tensafe.memory.map import NamedTensor

from .seeds import trees as seed_trees
from .trees import leaves_of, raw, stored_nbytes, trees, viewed_nbytes

Place = tuple[Record, NamedTensor]


def by_name(checkpoint: Checkpoint) -> dict[str, Place]:
    """Every name with its tensor."""
    records = checkpoint.shelf.records.values()
    return {name: (record, t) for record in records for t in record.tensors for name in t.names}


def named(tree: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Names as Python writes them, made in the dullest way."""
    if isinstance(tree, (torch.Tensor, np.ndarray)):
        yield name or "(the whole)", tree
    elif isinstance(tree, dict):
        for key, value in tree.items():
            if not name:
                step = key
            else:
                step = f".{key}" if str(key).isidentifier() else f"[{key!r}]".replace("'", '"')
            yield from named(value, name + step)
    elif isinstance(tree, (list, tuple)):
        for index, value in enumerate(tree):
            yield from named(value, f"{name}[{index}]")


def content_of(place: Place) -> bytes:
    record, tensor = place
    assert record.content is not None
    return b"".join(element_bytes(record.content, tensor.extent))


def assert_described(found: Checkpoint, tree: Any) -> None:
    """Names, shapes, strides, offsets, dtypes, sharing as loaded."""
    places, loaded = by_name(found), dict(named(tree))
    assert set(places) == set(loaded)
    storages: dict[str, int] = {}
    for name, tensor in loaded.items():
        record, seen = places[name]
        assert (seen.shape, seen.strides) == (tuple(tensor.shape), tensor.stride())
        assert seen.dtype == str(tensor.dtype).removeprefix("torch.")
        assert seen.extent.offset == tensor.storage_offset() * tensor.element_size()
        assert record.nbytes == tensor.untyped_storage().nbytes()
        if record.nbytes:  # torch makes each empty storage anew
            storages.setdefault(record.label, tensor.untyped_storage()._cdata)
            assert storages[record.label] == tensor.untyped_storage()._cdata
    assert len(set(storages.values())) == len(storages)
    assert found.shelf.problems == []


@given(trees(), st.booleans(), st.sampled_from([1, 2, 3, 4, 5]))
def test_what_torch_saved_is_described(tree: Any, is_zip: bool, protocol: int) -> None:
    assume(is_zip or all(leaf.dtype != torch.uint16 for leaf in leaves_of(tree)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.pt"
        torch.save(tree, path, pickle_protocol=protocol, _use_new_zipfile_serialization=is_zip)
        loaded, found = torch.load(path, weights_only=protocol == 2), read(path)
        assert_described(found, loaded)
        memory = found.memory()
        assert memory.stored_nbytes == stored_nbytes(loaded)
        assert memory.stored_nbytes - memory.dead_nbytes == viewed_nbytes(loaded)
        for name, tensor in named(loaded):
            if 0 not in tensor.stride():
                assert content_of(by_name(found)[name]) == raw(tensor)
        found.close()


def test_one_tensor_under_two_names_is_one(tmp_path: Path) -> None:
    layer = torch.nn.Linear(3, 3)
    torch.save({"a": layer.weight, "b": layer.weight, "c": layer.weight.detach()}, tmp_path / "a.pt")
    (tie,) = read(tmp_path / "a.pt").memory().ties
    assert (tie.names, tie.kind) == (("a", "b", "c"), "parameter")


def test_names_and_kinds_of_a_training_state(tmp_path: Path) -> None:
    torch.save(seed_trees()["training"], tmp_path / "a.pt")
    found = {name: tensor.kind for name, (_, tensor) in by_name(read(tmp_path / "a.pt")).items()}
    assert found == {
        "model.weight": "tensor",
        "model.bias": "tensor",
        **{
            f"optimizer.state[{n}].{k}": "optimizer state"
            for n in (0, 1)
            for k in ("step", "exp_avg", "exp_avg_sq")
        },
    }


@pytest.mark.parametrize("is_zip", [True, False])
def test_a_module_pickled_whole_has_its_own_names(is_zip: bool, tmp_path: Path) -> None:
    module = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    torch.save(module, tmp_path / "a.pt", _use_new_zipfile_serialization=is_zip)
    found = {name: tensor.kind for name, (_, tensor) in by_name(read(tmp_path / "a.pt")).items()}
    assert found == {name: "parameter" for name, _ in module.named_parameters()} | {
        name: "buffer" for name, _ in module.named_buffers()
    }


def test_torchscript_is_said_and_listed(tmp_path: Path) -> None:
    script = torch.jit.script(torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 1)))
    script.save(str(tmp_path / "a.pt"))
    found = read(tmp_path / "a.pt")
    assert found.format == "TorchScript archive"
    assert {name: t.shape for name, (_, t) in by_name(found).items()} == {
        name: tuple(parameter.shape) for name, parameter in script.named_parameters()
    }


def test_tensors_that_are_no_plain_strided_ones(tmp_path: Path) -> None:
    nested = torch.nested.nested_tensor([torch.ones(3), torch.ones(2)])
    tree = {
        "coo": torch.eye(3).to_sparse(),
        "csr": torch.eye(3).to_sparse_csr(),
        "nested": nested,
        "meta": torch.ones(2, 3, device="meta"),
        "quantised": torch.quantize_per_tensor(torch.ones(4), 0.1, 0, torch.qint8),
        "conj": torch.ones(3, dtype=torch.complex64).conj(),
        "neg": torch.ones(3, dtype=torch.complex64).conj().imag,
        "parameter": torch.nn.Parameter(torch.ones(2)),
    }
    torch.save(tree, tmp_path / "a.pt")
    found = by_name(read(tmp_path / "a.pt"))
    assert found["coo.indices"][1].shape == (2, 3)
    assert found["coo.values"][1].notes == ("sparse coo",)
    assert found["csr.crow_indices"][1].shape == (4,)
    assert found["nested.buffer"][1].shape == (5,)
    assert found["meta"][0].device == "meta"
    assert found["quantised"][1].dtype == "qint8"
    assert found["conj"][1].notes == ("conj bit",)
    assert (found["neg"][1].notes, found["neg"][1].strides) == (("neg bit",), (2,))
    assert found["parameter"][1].notes == ("requires grad",)


def test_a_subclass_shows_what_it_holds(tmp_path: Path) -> None:
    torch.save({"buffer": torch.nn.Buffer(torch.ones(2)), "own": WithState.make()}, tmp_path / "a.pt")
    found = by_name(read(tmp_path / "a.pt"))
    assert found["own"][1].notes == ("WithState",)
    assert found["own.extra"][1].shape == (7,)
    assert found["buffer"][1].shape == (2,)


class WithState(torch.Tensor):
    """A subclass with a tensor among its attributes."""

    @staticmethod
    def make() -> WithState:
        made = torch.ones(3).as_subclass(WithState)
        made.extra = torch.ones(7)  # type: ignore[attr-defined]
        return made


@pytest.mark.parametrize("protocol", range(6))
def test_tensors_and_arrays_within_a_pickle(protocol: int, tmp_path: Path) -> None:
    base = torch.arange(100.0)
    tree = {
        "tensor": base[3:5],
        "fortran": np.arange(600.0).reshape(20, 30).T,
        "small": np.arange(3, dtype=np.int16),
        "big": np.arange(4, dtype=">i4"),
        "scalar": np.float32(2),
        "objects": np.array([np.ones(2), None], dtype=object),
    }
    path = tmp_path / "a.pkl"
    path.write_bytes(pickle.dumps(tree, protocol))
    checkpoint = read(path)
    found = by_name(checkpoint)
    assert content_of(found["tensor"]) == base[3:5].numpy().tobytes()
    assert found["tensor"][0].nbytes == 400
    for name in ("fortran", "small", "big"):
        assert content_of(found[name]) == tree[name].tobytes()
    assert found["fortran"][1].strides == (1, 30)
    assert found["big"][1].dtype == "int32, big-endian"
    assert sum(tensor.shape == (2,) and tensor.dtype == "float64" for _, tensor in found.values()) == 1
    assert checkpoint.shelf.problems == []


def test_safetensors_are_described(tmp_path: Path) -> None:
    tree = {
        "a": torch.arange(12.0).reshape(3, 4),
        "b": torch.ones(5).bfloat16(),
        "c": torch.ones(3, dtype=torch.float8_e4m3fn),
        "empty": torch.empty(0, 3),
        "scalar": torch.tensor(7),
        "bool": torch.tensor([True, False]),
    }
    save_file(tree, tmp_path / "a.safetensors")
    found = by_name(read(tmp_path / "a.safetensors"))
    loaded = load_file(tmp_path / "a.safetensors")
    assert set(found) == set(loaded)
    for name, tensor in loaded.items():
        assert found[name][1].shape == tuple(tensor.shape)
        assert found[name][1].dtype == str(tensor.dtype).removeprefix("torch.")
        assert content_of(found[name]) == raw(tensor)


ARRAYS = {
    "plain": np.arange(6.0).reshape(2, 3),
    "fortran": np.asfortranarray(np.arange(6).reshape(2, 3)),
    "big": np.arange(4, dtype=">u2"),
    "text": np.array(["ab", "cde"]),
    "bytes": np.array([b"ab", b"cde"]),
    "time": np.zeros(2, dtype="M8[s]"),
    "record": np.zeros(3, dtype=[("a", "<f4"), ("b", ">i2", (2,)), ("c", [("d", "i1")])]),
    "complex": np.ones(2, dtype=np.complex128),
    "bool": np.array([True]),
    "scalar": np.array(3.5),
    "empty": np.empty((0, 4)),
}


def assert_arrays(found: dict[str, Place]) -> None:
    for name, value in ARRAYS.items():
        assert found[name][1].shape == value.shape
        assert found[name][1].nbytes == value.nbytes
        assert content_of(found[name]) == value.tobytes()


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_archives_of_arrays(save: Any, tmp_path: Path) -> None:
    save(tmp_path / "a.npz", **ARRAYS)
    assert_arrays(by_name(read(tmp_path / "a.npz")))


def test_single_arrays(tmp_path: Path) -> None:
    found = {}
    for name, value in ARRAYS.items():
        np.save(tmp_path / f"{name}.npy", value)
        found[name] = by_name(read(tmp_path / f"{name}.npy"))["array"]
    assert_arrays(found)


def test_an_object_array_is_said_to_be_a_pickle(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([{1: 2}, ValueError], dtype=object))
    found = read(tmp_path / "a.npy")
    assert "allow_pickle" in found.shelf.problems[0]
    assert "builtins.ValueError" in [item.name for item in found.globals]


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    from .seeds import write_folders

    shards, distributed = write_folders(tmp_path)
    assert read(shards).shelf.problems == ["model-2.safetensors: the shard is missing, with 1 tensors"]
    assert set(by_name(read(shards))) == {"x"}
    found = by_name(read(distributed))
    assert {name: t.shape for name, (_, t) in found.items()} == {"model.w": (4, 3), "step": ()}
    for path in distributed.glob("*.distcp"):
        path.unlink()
    assert "the file is missing, with 3 pieces" in read(distributed).shelf.problems[0]


def test_a_folder_is_read_file_by_file(tmp_path: Path) -> None:
    torch.save({"w": torch.ones(3)}, tmp_path / "a.pt")
    torch.save({"w": torch.ones(4)}, tmp_path / "b.pt")
    (tmp_path / "broken.pt").write_bytes(b"PK\x03\x04")
    (tmp_path / "notes.txt").write_text("no checkpoint")
    found = read(tmp_path)
    assert set(by_name(found)) == {"a.pt: w", "b.pt: w"}
    assert "broken.pt" in found.shelf.problems[0]


def test_equal_content_is_found(tmp_path: Path) -> None:
    base = torch.arange(1000.0)
    tree = {
        "a": base[:100],
        "b": base[:100].clone(),
        "c": base[:100],
        "d": torch.zeros(100),
        "e": base[1:101],
    }
    tree["t"] = base[:100].clone().reshape(10, 10).t().contiguous().t()[:, :].reshape(100)
    torch.save(tree, tmp_path / "a.pt")
    assert find_duplicates(read(tmp_path / "a.pt")) == (("a", "b", "t"),)


def test_bytes_read_do_not_grow_with_the_data(tmp_path: Path) -> None:
    """Of a file of 5 GB without blocks on the disk, under 5 MB."""
    from torch.serialization import skip_data

    base = torch.empty(5 * 2**30 // 4)
    with skip_data():
        torch.save({"x": base[: 2**28], "y": base[2**29 :].view(-1, 1024)[:, :10]}, tmp_path / "a.pt")
    found = read(tmp_path / "a.pt")
    assert (tmp_path / "a.pt").stat().st_size > 5 * 2**30
    assert found.bytes_read < 5 * 2**20
    memory = found.memory()
    assert memory.stored_nbytes == 5 * 2**30
    assert memory.stored_nbytes - memory.dead_nbytes == 2**30 + 10 * 4 * (5 * 2**30 // 4 - 2**29) // 1024


def test_many_tensors(tmp_path: Path) -> None:
    base = torch.arange(20_000.0)
    torch.save({f"layer.{index}": base[index : index + 1] for index in range(20_000)}, tmp_path / "a.pt")
    memory = read(tmp_path / "a.pt").memory()
    assert (memory.tensor_count, memory.dead_nbytes) == (20_000, 0)


def test_long_keys_that_begin_alike_are_two_names(tmp_path: Path) -> None:
    """Beyond what is kept of a key, also beyond what is read of a text, and in a name that is a word."""
    keys = [start + end for start in ("a" * 250, "a b" * 100, "z" * 5000) for end in ("c", "d")]
    tree = {key: torch.zeros(2) for key in keys} | {"inner": {key: torch.ones(2) for key in keys}}
    torch.save(tree, tmp_path / "long.pt")
    assert len(by_name(read(tmp_path / "long.pt"))) == 2 * len(keys)
