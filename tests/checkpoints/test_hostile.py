"""Damaged and hostile files: one clear line, nothing executed, little memory, bounded time."""

from __future__ import annotations

import json
import os
import pickle
import random
import struct
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save

from tensafe.checkpoints.error import CheckpointError
from tensafe.checkpoints.folder import read

from .mutations import MUTATIONS
from .seeds import seeds, write_folders

SOURCE = Path(__file__).parent.parent.parent / "src"
FILES = 300
MOST_MEMORY = 300 << 20
MOST_SECONDS = 30.0  # far above what any takes; a loop without an end is what it is for


def guarded(folder: Path, *options: str) -> dict[str, Any]:
    """What a process of little memory said of `folder/damaged`; it is watched for what it must not do."""
    places = [folder / name for name in ("sound", "damaged", "out", "report.json")]
    command = [sys.executable, Path(__file__).parent / "guarded.py", SOURCE, *places, *options]
    done = subprocess.run(list(map(str, command)), cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    report: dict[str, Any] = json.loads((folder / "report.json").read_text())
    return report


def assert_calm(report: dict[str, Any]) -> None:
    results = report["results"]
    assert [item for item in results if item["status"] not in (0, 1, 2)] == []
    assert [item for item in results if item["events"]] == []
    for item in results:
        lines = item["errors"].splitlines()
        assert (item["status"] == 2) == (len(lines) == 1), item
        assert all(line.startswith("tensafe: ") for line in lines), item
        assert item["seconds"] < MOST_SECONDS, item
    assert max(item["peak"] for item in results) - report["baseline"] < MOST_MEMORY


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("sound", "damaged", "out"):
        (tmp_path / name).mkdir()
    return tmp_path


def test_damaged_files_give_one_line_and_run_nothing(folder: Path) -> None:
    sound = seeds()
    for name, data in sound.items():
        (folder / "sound" / name).write_bytes(data)
    write_folders(folder / "sound")
    chance = random.Random(20_240_501)
    for index in range(FILES):
        name = chance.choice(sorted(sound))
        data = chance.choice(MUTATIONS)(sound[name], chance)
        (folder / "damaged" / f"{index:04}-{name}").write_bytes(data)
    report = guarded(folder)
    assert len(report["results"]) == 2 * FILES
    assert_calm(report)
    assert not (folder / "PWNED").exists()
    statuses = {item["status"] for item in report["results"]}
    assert statuses == {0, 1, 2}  # not everything was too damaged to be read


def entries(count: int) -> bytes:
    """A zip directory of so many entries, all alike."""
    entry = struct.pack("<4s6H3I5H2I", b"PK\x01\x02", *[0] * 9, 1, *[0] * 6) + b"a"
    size = count * len(entry)
    end = struct.pack("<4sQ2H2I4Q", b"PK\x06\x06", 44, 0, 0, 0, 0, count, count, size, 30)
    end += struct.pack("<4sIQI", b"PK\x06\x07", 0, 30 + size, 1)
    end += struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    return b"PK\x03\x04" + bytes(26) + entry * count + end


def one_record(path: Path, piece: bytes, times: int) -> None:
    """An archive whose `data.pkl` is the piece so many times over, deflated."""
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("a/data.pkl", "w", force_zip64=True) as file,
    ):
        for _ in range(times):
            file.write(piece)


def laughs(levels: int) -> bytes:
    """A list of twice a list of twice a list ..."""
    return b"\x80\x04]\x94" + b"".join(b"(h%ch%cl\x94" % (n, n) for n in range(levels)) + b"."


def header(text: bytes, length: int | None = None) -> bytes:
    return struct.pack("<Q", len(text) if length is None else length) + text


def test_huge_claims_take_little_memory(folder: Path) -> None:
    (folder / "sound" / "a.pt").write_bytes(seeds()["views.pt"])
    (folder / "sound" / "a.safetensors").write_bytes(seeds()["plain.safetensors"])
    damaged = folder / "damaged"
    (damaged / "entries.pt").write_bytes(entries(1_000_000))
    one_record(damaged / "bomb.pt", b"N0" * 500_000, 100)
    (damaged / "length.safetensors").write_bytes(header(b"{}" + bytes(100), 2**63))
    (damaged / "deep.safetensors").write_bytes(header(b'{"a":' + b"[" * 1_000_000))
    (damaged / "wide.safetensors").write_bytes(header(b'{"a":[' + b"[[]]," * 2_000_000 + b"0]}"))
    (damaged / "laughs.pkl").write_bytes(laughs(100))
    for name, opcode in {
        "dicts": b"}",
        "tuples": b")",
        "marks": b"(",
        "numbers": b"J\x01\x02\x03\x04",
        "texts": b"\x8c\x01a",
        "memo": b"\x94",
        "calls": b"N)R",
        "states": b"}b",
        "fetches": b"h\x00",
        "nested": b"\x85",
        "frames": b"\x95" + bytes(8),
        "ids": b"NQ",
        "names": b"cos\nsystem\n",
    }.items():
        (damaged / f"{name}.pkl").write_bytes(b"\x80\x04N\x94" + opcode * (2_500_000 // len(opcode)) + b".")
    (damaged / "waiting.pkl").write_bytes(b"N" * 15_000_000 + b".")
    (damaged / "names.pkl").write_bytes(b"".join(b"cm%d\nn\n0" % n for n in range(180_000)) + b"N.")
    report = guarded(folder, "--read-only")
    assert_calm(report)
    told = {Path(item["arguments"][0]).stem: item for item in report["results"]}
    assert told["laughs"]["status"] == 0
    assert "tensafe reads up to 250,000 records" in told["entries"]["errors"]
    assert "data.pkl inflates to 100,000,000 bytes; tensafe reads up to" in told["bomb"]["errors"]
    assert "values wait on the stack" in told["waiting"]["errors"]


def refused(path: Path) -> str:
    with pytest.raises(CheckpointError) as caught:
        read(path)
    words = str(caught.value)
    assert str(path) in words
    assert "\n" not in words
    return words


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.pt")
    (tmp_path / "empty.pt").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "dangling.pt").symlink_to(tmp_path / "absent.pt")
    assert "it is a pipe" in refused(tmp_path / "pipe.pt")
    assert "the file is empty" in refused(tmp_path / "empty.pt")
    assert "no checkpoint is in this folder" in refused(tmp_path / "folder")
    assert "No such file" in refused(tmp_path / "dangling.pt")
    assert "No such file" in refused(tmp_path / "absent.pt")
    assert "it is a device" in refused(Path(os.devnull))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read(tmp_path: Path) -> None:
    torch.save(torch.ones(2), tmp_path / "a.pt")
    (tmp_path / "a.pt").chmod(0)
    assert "Permission denied" in refused(tmp_path / "a.pt")


def test_a_link_to_a_file_is_followed(tmp_path: Path) -> None:
    torch.save({"a": torch.ones(2)}, tmp_path / "blob")
    (tmp_path / "a.pt").symlink_to(tmp_path / "blob")
    assert read(tmp_path / "a.pt").memory().tensor_count == 1


@pytest.mark.parametrize(
    ("start", "words"),
    [
        (b"\x1f\x8b\x08", "gzip"),
        (b"x\x9c\x03", "joblib"),
        (b"\x89HDF\r\n", "HDF5"),
        (b"GGUF\x03", "GGUF"),
        (b"version https://git-lfs.github.com/spec/v1", "Git LFS pointer"),
        (b"<!doctype html>", "HTML"),
        (b"\x00\x01\x02\x03", "no format of checkpoints begins with"),
    ],
)
def test_other_formats_are_named(start: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "a.dat").write_bytes(start + bytes(100))
    assert words in refused(tmp_path / "a.dat")


def test_a_tar_file_is_named_even_in_disguise(tmp_path: Path) -> None:
    import tarfile

    (tmp_path / "member").write_bytes(b"x")
    with tarfile.open(tmp_path / "a.pt", "w") as archive:
        archive.add(tmp_path / "member", "pickle")
    assert "tar format" in refused(tmp_path / "a.pt")
    data = bytearray((tmp_path / "a.pt").read_bytes())
    data[257:265] = bytes(8)  # without its magic, the checksum made right again
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(data[:512])
    (tmp_path / "a.pt").write_bytes(data)
    assert tarfile.is_tarfile(tmp_path / "a.pt")
    assert "tar format" in refused(tmp_path / "a.pt")


def edited_header(data: bytes, change: Any) -> bytes:
    length = int.from_bytes(data[:8], "little")
    found = json.loads(data[8 : 8 + length])
    change(found)
    text = json.dumps(found).encode()
    return header(text) + data[8 + length :]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda h: h["b"].update(data_offsets=[8, 20]), "it overlaps the one before"),
        (lambda h: h["b"].update(data_offsets=[16, 28]), "its data ends at byte"),
        (lambda h: h.pop("a"), "a hole before"),
        (lambda h: h.pop("b"), "12 bytes belong to none"),
        (lambda h: h["a"].update(shape=[4]), "takes 16 bytes, its data_offsets span 12"),
        (lambda h: h["a"].update(shape=[-3]), "no natural number"),
        (lambda h: h["a"].update(shape=[2**63, 2**63]), "an absurd shape"),
        (lambda h: h["a"].update(dtype="F31"), "its dtype 'F31' is not known"),
        (lambda h: h.update(a=3), "dtype, shape and two data_offsets were expected"),
        (lambda h: h.update(__metadata__={"x": 3}), "no object of strings"),
    ],
)
def test_wrong_headers_of_safetensors(change: Any, words: str, tmp_path: Path) -> None:
    from safetensors import safe_open

    path = tmp_path / "a.safetensors"
    path.write_bytes(edited_header(save({"a": torch.ones(3), "b": torch.ones(3)}), change))
    assert words in refused(path)
    with pytest.raises(Exception), safe_open(path, "pt"):  # noqa: B017 - its own errors
        pass


def archive(path: Path, records: list[tuple[str, bytes]]) -> Path:
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w") as file:
        warnings.simplefilter("ignore")  # zipfile warns of equal names
        for name, data in records:
            file.writestr(name, data)
    return path


PICKLE = pickle.dumps({}, 2)


def test_archives_that_readers_would_read_differently(tmp_path: Path) -> None:
    twice = archive(tmp_path / "a.pt", [("a/data.pkl", PICKLE), ("a/data.pkl", PICKLE)])
    assert "two records are called a/data.pkl" in refused(twice)
    cases = archive(tmp_path / "b.pt", [("a/data.pkl", PICKLE), ("a/DATA.pkl", PICKLE)])
    assert "one name to torch" in refused(cases)
    more = archive(tmp_path / "c.pt", [("a/data.pkl", PICKLE), ("b/data.pkl", PICKLE)])
    assert "b/data.pkl: a pickle that torch.load does not read" in read(more).shelf.problems[0]


def test_a_second_directory_is_not_followed(tmp_path: Path) -> None:
    """Readers of 64-bit zip files take the wide fields, others the small ones."""
    torch.save({"x": torch.ones(3)}, tmp_path / "a.pt")
    data = bytearray((tmp_path / "a.pt").read_bytes())
    data[-10:-6] = (int.from_bytes(data[-10:-6], "little") - 46).to_bytes(4, "little")
    (tmp_path / "a.pt").write_bytes(data)
    assert "two zip directories" in refused(tmp_path / "a.pt")


def test_records_over_one_another_are_refused(tmp_path: Path) -> None:
    """Many entries that all point at the same bytes."""
    path = archive(tmp_path / "a.pt", [("a/data.pkl", PICKLE), ("a/data/0", bytes(4000)), ("a/data/1", b"")])
    data = path.read_bytes()
    first, second = (data.rindex(name) - 46 for name in (b"a/data/0", b"a/data/1"))
    sized = data[second : second + 16] + data[first + 16 : first + 28] + data[second + 28 : second + 42]
    path.write_bytes(data[:second] + sized + data[first + 42 : first + 46] + data[second + 46 :])
    assert "its records overlap" in refused(path)


def test_a_name_twice_in_a_header(tmp_path: Path) -> None:
    entry = b'"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}'
    (tmp_path / "a.safetensors").write_bytes(header(b"{" + entry + b"," + entry + b"}") + b"x")
    assert "a name stands there twice" in refused(tmp_path / "a.safetensors")


def test_a_storage_of_another_size_than_the_pickle_says(tmp_path: Path) -> None:
    torch.save(torch.ones(300), tmp_path / "a.pt", _use_new_zipfile_serialization=False)
    data = (tmp_path / "a.pt").read_bytes()
    size, ones = (300).to_bytes(8, "little"), torch.ones(300).numpy().tobytes()
    assert data.endswith(size + ones)
    for other, words in ((299, "has 299 elements, the pickle says 300"), (2**62, "the pickle says 300")):
        (tmp_path / "b.pt").write_bytes(data.removesuffix(size + ones) + other.to_bytes(8, "little") + ones)
        assert words in refused(tmp_path / "b.pt")
    (tmp_path / "b.pt").write_bytes(data[:-4])
    assert "1,200 bytes of storage" in refused(tmp_path / "b.pt")


def test_what_no_name_reaches_is_seen(tmp_path: Path) -> None:
    """A tensor that is made and dropped, and a list that holds itself."""
    call = tensor_call(b"K\x00", b"K\x02\x85", b"K\x01\x85")[2:-1]
    data = b"\x80\x02" + call + b"0]q\x00(h\x00" + call + b"e."
    path = archive(tmp_path / "a.pt", [("a/data.pkl", data), ("a/data/0", bytes(16))])
    (storage,) = read(path).memory().storages
    assert [tensor.names for tensor in storage.tensors] == [("[1]", "(reached by no name)")]


def test_very_many_rows_are_counted_whole(tmp_path: Path) -> None:
    """Strided tensors with millions of rows together: exact still, as none meets another."""
    base = torch.zeros(4_000_000)
    torch.save(
        [base[start : start + 390_000 : 2] for start in range(0, 4_000_000, 400_000)], tmp_path / "a.pt"
    )
    (storage,) = read(tmp_path / "a.pt").memory().storages
    assert (storage.used_nbytes, len(storage.covered.runs)) == (10 * 195_000 * 4, 10)


def tensor_call(offset: bytes, shape: bytes, strides: bytes, numel: bytes = b"K\x04") -> bytes:
    """A pickle of one call of `_rebuild_tensor_v2`."""
    name = b"ctorch._utils\n_rebuild_tensor_v2\n"
    storage = (
        b"((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpu"
        + numel
        + b"tQ"
    )
    return b"\x80\x02" + name + storage + offset + shape + strides + b"\x89}tR."


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (tensor_call(b"K\x00", b"K\x05\x85", b"K\x01\x85"), "reaches to byte 20 of data/0, which has 16"),
        (tensor_call(b"K\x04", b"K\x01\x85", b"K\x01\x85"), "reaches to byte 20"),
        (tensor_call(b"J\xff\xff\xff\xff", b"K\x01\x85", b"K\x01\x85"), "its offset is -1"),
        (tensor_call(b"K\x00", b"J\xff\xff\xff\xff\x85", b"K\x01\x85"), "its shape is -1"),
        (tensor_call(b"K\x00", b"K\x01\x85", b"J\xff\xff\xff\xff\x85"), "its stride is -1"),
        (tensor_call(b"K\x00", b"K\x01K\x01\x86", b"K\x01\x85"), "has 2 dimensions, its stride 1"),
        (
            tensor_call(b"K\x00", b"J\xff\xff\xff\x7f" * 3 + b"\x87", b"K\x00" * 3 + b"\x87"),
            "more elements than",
        ),
        (tensor_call(b"K\x00", b"X\x01\x00\x00\x00a", b"K\x01\x85"), "its shape is no tuple"),
        (tensor_call(b"K\x00", b"K\x01\x85", b"K\x01\x85", b"K\x05"), "it has 16 bytes, the pickle says 20"),
    ],
)
def test_impossible_tensors_are_noted(data: bytes, words: str, tmp_path: Path) -> None:
    path = archive(tmp_path / "a.pt", [("a/data.pkl", data), ("a/data/0", bytes(16))])
    assert words in "; ".join(read(path).shelf.problems)


def test_pieces_outside_of_the_folder_are_not_opened(tmp_path: Path) -> None:
    shards = tmp_path / "shards"
    shards.mkdir()
    (tmp_path / "secret.safetensors").write_bytes(save({"x": torch.ones(2)}))
    index = {"weight_map": {"x": "../secret.safetensors", "y": str(tmp_path / "secret.safetensors")}}
    (shards / "model.safetensors.index.json").write_text(json.dumps(index))
    found = read(shards)
    assert found.memory().tensor_count == 0
    assert all("outside of the folder" in words for words in found.shelf.problems)
    assert len(found.shelf.problems) == 2


def test_pieces_of_a_distributed_checkpoint_stay_in_its_folder(tmp_path: Path) -> None:
    _, distributed = write_folders(tmp_path)
    (distributed / "__0_0.distcp").rename(tmp_path / "_0.distcp")
    metadata = (distributed / ".metadata").read_bytes()
    (distributed / ".metadata").write_bytes(metadata.replace(b"__0_0.distcp", b"../_0.distcp"))
    found = read(distributed)
    assert found.memory().tensor_count == 0
    assert all("outside of the folder" in words for words in found.shelf.problems)


def test_joblib_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.pkl").write_bytes(b"\x80\x04cjoblib.numpy_pickle\nNumpyArrayWrapper\n)\x81.")
    assert "written by joblib" in refused(tmp_path / "a.pkl")
