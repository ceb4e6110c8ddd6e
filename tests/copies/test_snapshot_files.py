"""`Snapshot.save` and `load`: an older file stays whole whatever happens, bad files are one line."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import tensafe
from tensafe.copies.snapshots import safetensors
from tensafe.errors import TensafeError


def tree() -> dict[str, Any]:
    return {
        "half": torch.randn(3, 2).half(),
        "pair": (torch.arange(3), 1.5, float("inf"), None),
        "text": 'a "quoted" ü',
        "view": torch.arange(8.0)[::2],
        "empty": torch.empty(0, 3),
        "complex": torch.randn(2, dtype=torch.complex128),
        "array": np.arange(4, dtype=np.int16).reshape(2, 2),
        "bytes": b"\x00\xff",
        3: torch.tensor(True),
        "dtype": torch.bfloat16,
        "wide": torch.ones(1).expand(4),
        "numbers": {"z": 2 - 1j, "set": {1, 2}},
    }


def test_everything_comes_back(tmp_path: Path) -> None:
    torch.manual_seed(0)
    one = tree()
    one["alias"] = one["half"][1:]
    one["list"] = one["pair"][0], [one["numbers"]]
    tensafe.snapshot(one).save(tmp_path / "s")
    loaded = tensafe.Snapshot.load(tmp_path / "s")
    fresh = tree()
    fresh["alias"] = fresh["half"][1:]
    fresh["list"] = fresh["pair"][0], [fresh["numbers"]]
    fresh["array"][:] = 0
    fresh["text"] = fresh["bytes"] = None
    del fresh["numbers"]["set"]
    for value in fresh.values():
        if isinstance(value, torch.Tensor) and value.numel() and value.stride() != (0,):
            value.zero_()
    loaded.restore(fresh)
    assert not tensafe.snapshot(one).diff(fresh)
    assert not loaded.diff(one)
    assert torch.equal(fresh["alias"], one["half"][1:])
    assert loaded.nbytes == tensafe.snapshot(one).nbytes


def test_other_readers_read_it(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    tensafe.snapshot(model).save(tmp_path / "s.safetensors")
    found = pytest.importorskip("safetensors.torch").load_file(tmp_path / "s.safetensors")
    expected = {f"model[{name[0]}]{name[1:]}": value for name, value in model.state_dict().items()}
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in expected)


@pytest.mark.parametrize(
    ("value", "place"),
    [(object(), r'tree\["a"\]\[1\]'), (lambda: 0, r'tree\["a"\]\[1\]'), (torch.eye(2).to_sparse(), r"\[1\]")],
)
def test_what_does_not_fit_is_named_and_nothing_is_written(value: Any, place: str, tmp_path: Path) -> None:
    path = tmp_path / "s"
    path.write_bytes(b"old")
    tree = {"a": [torch.ones(1), value]}
    with pytest.raises(TensafeError, match=place):
        tensafe.snapshot(tree).save(path)
    assert [p.name for p in tmp_path.iterdir()] == ["s"]
    assert path.read_bytes() == b"old"


def test_settings_and_code_of_a_module_are_left_alone(tmp_path: Path) -> None:
    class Net(nn.Module):
        def __init__(self, act: Any) -> None:
            super().__init__()
            self.layer, self.act, self.acts = nn.Linear(1, 1), act, [act]
            self.by_code = {act: 1}

    net, fresh = Net(torch.relu), Net(torch.tanh)
    tensafe.snapshot(net).save(tmp_path / "s")
    tensafe.Snapshot.load(tmp_path / "s").restore(fresh)
    assert torch.equal(net.layer.weight, fresh.layer.weight)
    assert (fresh.act, fresh.acts) == (torch.tanh, [torch.tanh])


class Interrupted(BaseException):
    pass


@pytest.mark.parametrize("error", [Interrupted, OSError])
@pytest.mark.parametrize("call", ["write", "fsync", "rename"])
def test_interrupted_at_any_write_the_old_file_stays(
    call: str, error: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s"
    one = {"a": torch.zeros(3), "b": torch.ones(2), "c": torch.ones(1)}
    snap = tensafe.snapshot(one)
    snap.save(path)
    old = path.read_bytes()
    one["a"].add_(1)
    snap.update()
    for place in range(4 if call == "write" else 1):
        calls = iter(range(100))

        def fail(*_: Any, calls: Any = calls, place: int = place, **__: Any) -> None:
            if next(calls) == place:
                raise error("now")

        with monkeypatch.context() as patched:
            patched.setattr(
                *{
                    "write": (safetensors, "_write", fail),
                    "fsync": (os, "fsync", fail),
                    "rename": (Path, "replace", fail),
                }[call]
            )
            with pytest.raises((Interrupted, TensafeError)):
                snap.save(path)
        assert path.read_bytes() == old
        assert [p.name for p in tmp_path.iterdir()] == ["s"]
    snap.save(path)
    assert tensafe.Snapshot.load(path).state_dict()["a"].tolist() == [1, 1, 1]


ENDLESS = """
import sys, torch, tensafe
tree = {"a": torch.zeros(2_000_000), "n": 0}
snap = tensafe.snapshot(tree)
snap.save(sys.argv[1])
print("saved", flush=True)
while True:
    tree["a"].add_(1); tree["n"] += 1
    snap.update(); snap.save(sys.argv[1])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_killed_the_file_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "s"
    environment = {**os.environ, "PYTHONPATH": str(Path(tensafe.__file__).parents[1])}
    for pause in (0.03, 0.11):
        done = subprocess.Popen(
            [sys.executable, "-c", ENDLESS, str(path)], env=environment, stdout=subprocess.PIPE, text=True
        )
        assert done.stdout is not None
        assert done.stdout.readline() == "saved\n"
        time.sleep(pause)
        done.send_signal(signal.SIGKILL)
        done.communicate()
        state = tensafe.Snapshot.load(path).state_dict()
        assert bool((state["a"] == state["n"]).all())


def test_a_link_and_the_mode_stay(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_bytes(b"")
    real.chmod(0o640)
    link.symlink_to(real)
    tensafe.snapshot([torch.ones(1)]).save(link)
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert len(list(tmp_path.iterdir())) == 2


def edited(data: bytes, old: str, new: str) -> bytes:
    (length,) = struct.unpack("<Q", data[:8])
    header = data[8 : 8 + length].decode().replace(old, new).encode()
    return struct.pack("<Q", len(header)) + header + data[8 + length :]


def test_bad_files_are_one_line(tmp_path: Path) -> None:
    path = tmp_path / "s"
    tensafe.snapshot({"a": torch.arange(4.0), "n": 1}).save(path)
    data = path.read_bytes()
    bad = [data[:cut] for cut in range(0, len(data), 7)]
    bad += [b"", b"\xff" * 64, struct.pack("<Q", 1 << 60) + b"{}", struct.pack("<Q", 2) + b"[]"]
    bad += [struct.pack("<Q", 2) + b"{}", edited(data, "F32", "F99"), edited(data, "F32", "F64")]
    bad += [edited(data, '"shape":[4]', '"shape":[-4]'), edited(data, "[0,16]", "[8,24]")]
    bad += [edited(data, '\\"seats\\": [0]', '\\"seats\\": [7]'), edited(data, "held", "hold")]
    bad += [
        edited(data, '\\"version\\": 1', '\\"version\\": 9'),
        edited(data, '\\"tensor\\", 0', '\\"tensor\\", 4'),
    ]
    for text in bad:
        path.write_bytes(text)
        with pytest.raises(TensafeError) as caught:
            tensafe.Snapshot.load(path)
        assert "\n" not in str(caught.value)
        assert str(path) in str(caught.value)
    with pytest.raises(TensafeError, match="cannot be read"):
        tensafe.Snapshot.load(tmp_path / "absent")
    with pytest.raises(TensafeError, match="cannot be written"):
        tensafe.snapshot([torch.ones(1)]).save(tmp_path / "absent" / "s")


def test_a_loaded_snapshot_needs_objects(tmp_path: Path) -> None:
    model = nn.Linear(1, 1)
    tensafe.snapshot(model).save(tmp_path / "s")
    loaded = tensafe.Snapshot.load(tmp_path / "s")
    with pytest.raises(TensafeError, match=r"restore\(model\)"):
        loaded.restore()
    with pytest.raises(TensafeError, match="came from a file"):
        loaded.update()
    with pytest.raises(TensafeError, match="of 1 objects"):
        loaded.restore(model, model)
    assert json.dumps(list(loaded.state_dict())) == '["weight", "bias"]'


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="POSIX only")
def test_what_is_no_regular_file_is_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(TensafeError, match="no regular file"):
        tensafe.snapshot([torch.ones(1)]).save(pipe)
    assert pipe.is_fifo()
    assert os.listdir(tmp_path) == ["pipe"]


def test_a_name_may_be_as_long_as_the_system_lets_it(tmp_path: Path) -> None:
    path = tmp_path / ("n" * os.pathconf(tmp_path, "PC_NAME_MAX"))
    tree = [torch.ones(1)]
    tensafe.snapshot(tree).save(os.fsencode(path))
    assert not tensafe.Snapshot.load(path).diff(tree)


@pytest.mark.parametrize("path", [None, 3, "", "a\0b"])
def test_what_is_no_path_is_one_line(path: Any) -> None:
    for call in (tensafe.snapshot([torch.ones(1)]).save, tensafe.Snapshot.load):
        with pytest.raises(TensafeError, match="path") as refusal:
            call(path)
        assert "\n" not in str(refusal.value)
