"""What loading would import: judged as torch judges it, and nothing of it done."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._weights_only_unpickler import _get_allowed_globals

from tensafe.checkpoints.content import InMemory
from tensafe.checkpoints.error import CheckpointError
from tensafe.checkpoints.pickled.globals import judge
from tensafe.checkpoints.pickled.known_globals import WEIGHTS_ONLY
from tensafe.checkpoints.pickled.pickles import read_pickle
from tensafe.checkpoints.reader import read_file

NEWER = {"torch.float4_e2m1fn_x2", "torch.float8_e8m0fnu"} | {
    f"torch.{sign}int{bits}" for sign in ("", "u") for bits in range(1, 8)
}
"""Types that torch 2.6 does not have."""
LATE = {"torch.cuda.ComplexDoubleStorage", "torch.cuda.ComplexFloatStorage"}
"""Taken by torch only when its list is made after some other modules."""


def test_the_list_of_weights_only_is_torchs_own() -> None:
    own = set(_get_allowed_globals())
    assert own - WEIGHTS_ONLY == set()
    assert WEIGHTS_ONLY - own <= NEWER | LATE
    if "torch.uint7" in own:
        assert WEIGHTS_ONLY - own <= LATE


class Calls:
    """An object that is pickled as a call."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize("protocol", range(1, 6))  # torch cannot load what it saves by protocol 0
@pytest.mark.parametrize("is_zip", [True, False])
def test_a_command_is_flagged_and_not_run(protocol: int, is_zip: bool, tmp_path: Path) -> None:
    target = tmp_path / "touched"
    evil = {"weight": torch.ones(3), "evil": Calls(os.system, f"touch {target}")}
    path = tmp_path / "a.pt"
    torch.save(evil, path, pickle_protocol=protocol, _use_new_zipfile_serialization=is_zip)
    found = read_file(path)
    assert [item.name for item in found.globals if item.verdict == "dangerous"] == [
        f"{os.system.__module__}.system"
    ]
    assert not target.exists()
    assert list(found.refusals)
    torch.load(path, weights_only=False)  # it was a real one
    assert target.exists()


@pytest.mark.parametrize(
    "name",
    [
        "os.system posix.system nt.system subprocess.Popen sys.exit builtins.eval",
        "builtins.exec builtins.getattr builtins.__import__ builtins.compile builtins.open",
        "__builtin__.eval importlib.import_module runpy.run_path pickle.loads _pickle.loads",
        "shutil.rmtree socket.socket ctypes.CDLL webbrowser.open code.interact pty.spawn",
        "torch.hub.load torch.load numpy.load operator.attrgetter operator.methodcaller",
        "operator.itemgetter numpy.testing._private.utils.runstring",
        "torch.utils._config_module.load_config torch.fx.graph_module.reduce_graph_module",
        "torch.utils.cpp_extension.load torch.jit.load timeit.timeit",
        "numpy.f2py.crackfortran.getlincoef io.open codecs.open asyncio.run",
        "multiprocessing.Process marshal.loads types.FunctionType types.CodeType builtins.map",
        "builtins.print functools.reduce pip.main collections.OrderedDict.__class__",
        "some.Class.__init__.__globals__",
    ],
)
def test_names_that_run_code_are_dangerous(name: str) -> None:
    for full in name.split():
        module, _, _ = full.rpartition(".")
        for at in {module, full.split(".")[0]}:  # `a.b` and `c`, or `a` and `b.c` as protocol 4 allows
            found = judge(at, full[len(at) + 1 :], 1)
            assert (found.verdict, found.weights_only) == ("dangerous", False), (at, full)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("torch.serialization", "os.system"),
        ("torch.serialization", "os"),
        ("torch._utils", "sys.modules"),
        ("collections", "_sys.modules.__getitem__"),
        ("logging", "os.popen"),
    ],
)
def test_a_module_reached_through_another_is_dangerous(module: str, name: str) -> None:
    assert judge(module, name, 1).verdict == "dangerous"


@pytest.mark.parametrize(
    ("module", "name", "verdict"),
    [
        ("torch._utils", "_rebuild_tensor_v2", "safe"),
        ("collections", "OrderedDict", "safe"),
        ("numpy._core.multiarray", "_reconstruct", "safe"),
        ("torch", "FloatStorage", "safe"),
        ("torch.nn.modules.linear", "Linear", "code"),
        ("transformers.training_args", "TrainingArguments", "code"),
        ("__main__", "Net", "code"),
    ],
)
def test_other_names_are_not(module: str, name: str, verdict: str) -> None:
    assert judge(module, name, 1).verdict == verdict


def test_a_computed_name_is_dangerous() -> None:
    data = b"\x80\x04\x8c\x03foo\x8c\x03bar\x93)R\x8c\x06system\x93."
    found = read_pickle(InMemory(data, "a.pkl")).globals
    assert [item.verdict for item in found] == ["code", "dangerous"]
    assert "computed" in found[1].meaning


def test_what_runs_before_the_damage_is_named() -> None:
    data = pickle.dumps(Calls(os.system, "true"), 2)[:-1] + b"\xff"
    with pytest.raises(
        CheckpointError, match=r"0xff; before that it imports \w+\.system, which runs a command"
    ):
        read_pickle(InMemory(data, "a.pkl"))


def test_a_pickle_within_the_pickle_is_looked_into(tmp_path: Path) -> None:
    import io

    inner = io.BytesIO()
    torch.save(Calls(os.system, "true"), inner, _use_new_zipfile_serialization=False)
    path = tmp_path / "a.pkl"
    for data in (inner.getvalue(), b"damaged"):
        path.write_bytes(pickle.dumps(Calls(torch.storage._load_from_bytes, data)))
        assert "dangerous" in [item.verdict for item in read_file(path).globals]


TREES: dict[str, Any] = {
    "tensors": {"a": torch.ones(3), "b": [torch.ones(2).half(), 1, None, 2.5, "x", True]},
    "module": torch.nn.Linear(2, 2),
    "parameter": torch.nn.Parameter(torch.ones(2)),
    "set": {1, 2},
    "bytes": b"abc",
    "complex": 1 + 2j,
    "eval": Calls(eval, "1"),
    "exception": ValueError("x"),
    "path": Path("x"),
    "function": os.getcwd,
    "size": torch.Size([1, 2]),
    "device": torch.device("cpu"),
    "sparse": torch.eye(2).to_sparse(),
    "frozenset": frozenset([1]),
    "large": 2**200,
    "slice": slice(1, 2),
    "counter": __import__("collections").Counter("aab"),
    "defaultdict": __import__("collections").defaultdict(list),
    "array": __import__("numpy").ones(2),
}


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("is_zip", [True, False])
def test_weights_only_is_foretold(name: str, protocol: int, is_zip: bool, tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    torch.save(TREES[name], path, pickle_protocol=protocol, _use_new_zipfile_serialization=is_zip)
    try:
        torch.load(path, weights_only=True)
        refused = False
    except pickle.UnpicklingError:
        refused = True
    assert bool(read_file(path).refusals) == refused


@pytest.mark.parametrize(
    ("data", "is_refused"),
    [
        (b"\x80\x02ccollections\nOrderedDict\n)R.", False),
        (b"\x80\x02ccollections\nOrderedDict\n)R)R.", True),  # calls what a call gave
        (b"\x80\x02K\x01K\x02a.", True),  # puts a number into a number
        (b"\x80\x02]K\x02a.", False),
    ],
)
def test_weights_only_is_foretold_for_odd_instructions(data: bytes, is_refused: bool, tmp_path: Path) -> None:
    import zipfile

    with zipfile.ZipFile(tmp_path / "a.pt", "w") as archive:
        archive.writestr("a/data.pkl", data)
        archive.writestr("a/version", "3")
    assert bool(read_file(tmp_path / "a.pt").refusals) == is_refused
    if is_refused:
        with pytest.raises(pickle.UnpicklingError):
            torch.load(tmp_path / "a.pt", weights_only=True)
    else:
        torch.load(tmp_path / "a.pt", weights_only=True)
