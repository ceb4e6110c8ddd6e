"""The command `tensafe inspect`, as people run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from tensafe.__main__ import main
from tensafe.report.memory_json import from_json

SOURCE = Path(__file__).parent.parent.parent / "src"


@pytest.fixture
def sliced(tmp_path: Path) -> Path:
    """The first case of kind serialization-bloat: a sample of a large table."""
    torch.save(torch.zeros(250_000)[:100], tmp_path / "sample.pt")
    return tmp_path / "sample.pt"


def test_a_saved_slice_is_told_in_one_look(sliced: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(sliced)]) == 1
    told = capsys.readouterr().out
    assert "1 tensor, 977 KiB stored, 400 B used, 976 KiB dead (>99%)" in told
    assert "kept by (the whole) float32 (100)" in told
    torch.save(torch.zeros(250_000)[:100].clone(), sliced)
    assert main(["inspect", str(sliced)]) == 0
    assert "nothing dead" in capsys.readouterr().out


def test_compacting_the_slice(sliced: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = sliced.parent / "small.pt"
    assert main(["inspect", str(sliced), "--compact", str(out)]) == 1
    assert "every tensor compared and equal" in capsys.readouterr().out
    assert out.stat().st_size < 10_000
    assert torch.equal(torch.load(out), torch.load(sliced))
    assert main(["inspect", str(out)]) == 0


def test_chunks_for_ranks(tmp_path: Path) -> None:
    """The second case: files of one rank each that all hold the whole weights."""
    weight = torch.randn(1024, 512)
    for rank, part in enumerate(weight.chunk(4, dim=0)):
        torch.save({"in.weight": part, "in.bias": torch.ones(3)}, tmp_path / f"rank{rank}.pt")
    assert main(["inspect", str(tmp_path)]) == 1
    for rank, part in enumerate(weight.chunk(4, dim=0)):
        out = tmp_path / f"small{rank}.pt"
        main(["inspect", str(tmp_path / f"rank{rank}.pt"), "--compact", str(out)])
        assert out.stat().st_size < part.numel() * 4 + 4000
        assert torch.equal(torch.load(out)["in.weight"], part)


def test_embeddings_of_a_batch(tmp_path: Path) -> None:
    """The third case: each prompt's file holds the embeddings of all."""
    embeddings = torch.nn.Embedding(100, 128)(torch.randint(0, 100, (20, 77)))
    path, out = tmp_path / "prompt.pt", tmp_path / "small.pt"
    with torch.no_grad():
        torch.save(embeddings.detach()[3], path)
    assert main(["inspect", str(path), "--compact", str(out)]) == 1
    assert torch.load(out).untyped_storage().nbytes() == 77 * 128 * 4
    assert main(["inspect", str(out)]) == 0


def test_ties_written_twice_are_duplicates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The fourth case: a format without sharing stores tied weights twice."""
    weight = np.random.default_rng(0).normal(size=(100, 8))
    np.savez(tmp_path / "a.npz", **{"embed.weight": weight, "head.weight": weight})
    assert main(["inspect", str(tmp_path / "a.npz"), "--duplicates"]) == 0
    told = capsys.readouterr()
    assert "equal content in different bytes\n  embed.weight, head.weight" in told.out
    assert told.err == ""


def test_json_is_the_map_with_a_section(sliced: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(sliced), "--format", "json"]) == 1
    text = capsys.readouterr().out
    memory = from_json(text)
    assert (memory.stored_nbytes, memory.dead_nbytes, memory.tensor_count) == (1_000_000, 999_600, 1)
    section = json.loads(text)["checkpoint"]
    assert section["format"] == "zip file of torch.save"
    assert section["weights_only_refusals"] == []
    assert {found["name"] for found in section["globals"]} == {
        "torch._utils._rebuild_tensor_v2",
        "torch.FloatStorage",
        "collections.OrderedDict",
    }


def test_a_page_is_written_to_a_file(sliced: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = sliced.parent / "page.html"
    assert main(["inspect", str(sliced), "--format", "html", "--output", str(out)]) == 1
    assert capsys.readouterr().out == ""
    page = out.read_text()
    assert page.startswith("<!")
    assert "sample.pt" in page
    assert "_rebuild_tensor_v2" in page


def test_alike_layers_make_one_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(30)), torch.nn.Linear(4, 5))
    torch.save(model.state_dict(), tmp_path / "a.pt")
    assert main(["inspect", str(tmp_path / "a.pt")]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["*.weight", "float32", "(4", "×", "4)", "30", "×", "64", "B", "30", "records"] in lines
    assert sum(line[:1] == ["30.weight"] for line in lines) == 1
    assert main(["inspect", str(tmp_path / "a.pt"), "--all"]) == 0
    told = capsys.readouterr().out
    assert all(f"\n  {name} " in told for name in model.state_dict())


class Evil:
    def __reduce__(self) -> Any:
        return os.system, ("true",)


def test_dangerous_globals_are_findings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save({"w": torch.ones(2), "evil": Evil()}, tmp_path / "a.pt")
    assert main(["inspect", str(tmp_path / "a.pt")]) == 1
    told = capsys.readouterr().out
    assert told.index("dangerous: loading it as a pickle runs") < told.index("tensors")
    assert "runs a command or a program" in told
    assert "torch.load(weights_only=True) refuses it: it imports" in told
    assert main(["inspect", str(tmp_path), "--globals"]) == 1
    told = capsys.readouterr().out
    assert "in a.pt" in told
    assert "torch._utils._rebuild_tensor_v2" in told


@pytest.mark.parametrize("name", ["x\x1b[31m.weight", "line\nbreak", "<b>", "é" * 300, "‮flip"])
def test_names_from_a_file_cannot_steer_the_terminal(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.save({name: torch.zeros(100)[:2]}, tmp_path / "a.pt")
    main(["inspect", str(tmp_path / "a.pt"), "--all"])
    told = capsys.readouterr().out
    assert all(character.isprintable() or character == "\n" for character in told)
    assert main(["inspect", str(tmp_path / "a.pt"), "--format", "html"]) == 1
    assert "<b>" not in capsys.readouterr().out.replace("<b>", "", name.count("nothing"))


def test_dense_formats_are_not_rewritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_file({"a": torch.ones(3)}, tmp_path / "a.safetensors")
    np.savez(tmp_path / "a.npz", a=np.ones(3))
    for name in ("a.safetensors", "a.npz"):
        out = tmp_path / f"out.{name}"
        assert main(["inspect", str(tmp_path / name), "--compact", str(out)]) == 0
        assert "there are no dead bytes" in capsys.readouterr().out
        assert not out.exists()


@pytest.mark.parametrize("option", ["--compact", "--output"])
def test_the_checkpoint_itself_is_never_overwritten(
    option: str, sliced: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sliced.read_bytes()
    (sliced.parent / "link.pt").symlink_to(sliced)
    for name in ("sample.pt", "link.pt"):
        assert main(["inspect", str(sliced), option, str(sliced.parent / name)]) == 2
        assert "it is the checkpoint" in capsys.readouterr().err
    assert sliced.read_bytes() == before


@pytest.mark.parametrize("option", ["--compact", "--output"])
def test_neither_are_its_shards_and_their_index(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.save({"a": torch.zeros(100)[:2]}, tmp_path / "part.bin")
    index = tmp_path / "pytorch_model.bin.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "part.bin"}}))
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for shown in (tmp_path, index):
        for path in before:
            assert main(["inspect", str(shown), option, str(path)]) == 2
            assert "the checkpoint" in capsys.readouterr().err
    assert before == {path: path.read_bytes() for path in tmp_path.iterdir()}


def test_mistakes_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.pt").write_bytes(b"PK\x03\x04broken")
    for arguments in (
        [str(tmp_path / "absent.pt")],
        [str(tmp_path / "a.pt")],
        [],
        [str(tmp_path / "a.pt"), "--format", "xml"],
        [str(tmp_path)],
    ):
        status = main(["inspect", *arguments])
        told = capsys.readouterr()
        if arguments == [str(tmp_path)]:
            assert (status, told.err) == (0, "")  # the folder was read, and says which file was not
            assert "a.pt" in told.out
            continue
        assert (status, told.out) == (2, "")
        assert told.err.count("\n") == 1


ABSENT = """raise ModuleNotFoundError(f"No module named {__name__!r}", name=__name__)\n"""


def test_neither_torch_nor_numpy_is_needed(sliced: Path) -> None:
    absent = sliced.parent / "absent"
    absent.mkdir()
    for name in ("torch", "numpy", "safetensors"):
        (absent / f"{name}.py").write_text(ABSENT)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(absent), str(SOURCE)])}
    out = sliced.parent / "small.pt"
    for options in (["--compact", str(out), "--duplicates"], ["--format", "json"], ["--format", "html"]):
        command = [sys.executable, "-m", "tensafe", "inspect", str(sliced), *options]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (1, "")
    assert torch.load(out).shape == (100,)
