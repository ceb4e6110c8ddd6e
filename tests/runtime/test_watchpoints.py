"""Watchpoints: every write that reaches the watched elements is told at its line, and no other."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
import threading
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tensafe

Tensor = torch.Tensor


@pytest.fixture
def x() -> Tensor:
    return torch.arange(10.0)


INSIDE: dict[str, tuple[str, Callable[[Tensor], object]]] = {
    "method": ("Tensor.add_", lambda x: x.add_(1)),
    "operator": ("Tensor.mul_", lambda x: x.__imul__(2)),
    "item": ("Tensor.__setitem__", lambda x: x.__setitem__(3, 9)),
    "slice": ("Tensor.__setitem__", lambda x: x.__setitem__(slice(0, 3), 9)),
    "mask": ("Tensor.__setitem__", lambda x: x.__setitem__(x > 1, 9)),
    "view": ("Tensor.zero_", lambda x: x[3:].zero_()),
    "strided view": ("Tensor.zero_", lambda x: x[::2].zero_()),
    "data": ("Tensor.zero_", lambda x: x.data.zero_()),
    "detach": ("Tensor.zero_", lambda x: x.detach()[1:].zero_()),
    "reshaped": ("Tensor.zero_", lambda x: x.view(5, 2).t().zero_()),
    "index_fill_": ("Tensor.index_fill_", lambda x: x.index_fill_(0, torch.tensor([3]), 7)),
    "scatter_": ("Tensor.scatter_", lambda x: x.scatter_(0, torch.tensor([2]), 7.0)),
    "masked_fill_": ("Tensor.masked_fill_", lambda x: x.masked_fill_(x > 1, 7.0)),
    "relu": ("torch.relu_", lambda x: F.relu(x, inplace=True)),
    "dropout": ("torch.dropout_", lambda x: F.dropout(x, 0.5, inplace=True)),
    "out": ("torch.add", lambda x: torch.add(x, 1, out=x)),
    "foreach": ("torch._foreach_add_", lambda x: torch._foreach_add_([torch.ones(2), x], 1)),
    "storage": ("UntypedStorage.fill_", lambda x: x.untyped_storage().fill_(0)),
    "init": ("Tensor.fill_", lambda x: nn.init.ones_(x)),
    "array": ("Tensor.neg_", lambda x: torch.from_numpy(x.numpy()).neg_()),
}


@pytest.mark.parametrize(("op", "write"), INSIDE.values(), ids=INSIDE.keys())
def test_a_write_that_reaches_it_is_seen(x: Tensor, op: str, write: Callable[[Tensor], object]) -> None:
    with tensafe.watch(x[2:4], callback=lambda write: None) as watched:
        write(x)
    assert [seen.op for seen in watched.seen] == [op]
    site = watched.seen[0].site
    assert site is not None
    assert site.path == __file__


OUTSIDE: dict[str, Callable[[Tensor], object]] = {
    "item": lambda x: x.__setitem__(4, 9),
    "slice": lambda x: x.__setitem__(slice(4, None), 9),
    "mask": lambda x: x.__setitem__(x > 4, 9),
    "mask of nothing": lambda x: x.__setitem__(x > 99, 9),
    "view": lambda x: x[4:].zero_(),
    "between": lambda x: x[1::4].zero_(),
    "index_fill_": lambda x: x.index_fill_(0, torch.tensor([5]), 7),
    "reading": lambda x: (x + 1, x.sum(), x.clone().add_(1), x.t_(), x[2:4].tolist()),
    "another": lambda x: torch.ones(10).add_(x),
    "foreach": lambda x: torch._foreach_add_([torch.ones(2)], [x[:2]]),
    "out": lambda x: torch.add(x, 1, out=torch.ones(10)),
    "array": lambda x: torch.from_numpy(x.numpy())[5:].neg_(),
}


@pytest.mark.parametrize("write", OUTSIDE.values(), ids=OUTSIDE.keys())
def test_other_parts_of_the_storage_do_not_count(x: Tensor, write: Callable[[Tensor], object]) -> None:
    with tensafe.watch(x[2:4], callback=lambda write: None) as points:
        write(x)
    assert list(points.seen) == []


def test_what_is_printed(x: Tensor, capsys: pytest.CaptureFixture[str]) -> None:
    half = x[5:]
    with tensafe.watch(x):
        half += 1
        x.data.zero_()
        x[0] = 1
    lines = capsys.readouterr().err.replace(__file__, "here").splitlines()
    first = test_what_is_printed.__code__.co_firstlineno
    assert [line.split(": ", 2)[2] for line in lines] == [
        f"Tensor.add_ writes x through `half`, a view of shape [5] that starts 5 elements after it, "
        f"made at line {first + 1}",
        "Tensor.zero_ writes x through `x.data`, an alias that is no view (`.data`, `detach()`) of shape "
        "[10]",
        "Tensor.__setitem__ writes x",
    ]
    assert [int(line.split(": ")[1].rpartition(":")[2]) - first for line in lines] == [3, 4, 5]


def test_a_line_that_repeats_is_printed_at_1_10_100(x: Tensor, capsys: pytest.CaptureFixture[str]) -> None:
    with tensafe.watch(x) as watched:
        for _ in range(120):
            x.add_(1)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert "(10 times)" in lines[1]
    assert "(100 times)" in lines[2]
    assert watched.count == 120


def test_a_module_and_its_optimizer() -> None:
    net = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    optimizer = torch.optim.AdamW(net.parameters(), fused=True)
    net(torch.randn(4, 3)).sum().backward()
    optimizer.step()
    seen: list[Any] = []
    with tensafe.watch(net, callback=seen.append), tensafe.watch(optimizer, callback=seen.append):
        net(torch.randn(4, 3)).sum().backward()
        optimizer.step()
    ops = {(write.name, write.op) for write in seen}
    assert ("net.1.running_mean", "torch.batch_norm") in ops
    assert ("net.0.weight", "torch._fused_adamw_") in ops
    assert ("optimizer's exp_avg 0", "torch._fused_adamw_") in ops
    assert ("optimizer's parameter 3", "torch._fused_adamw_") in ops
    assert all(write.site.path == __file__ for write in seen)


def test_a_gradient_is_written_by_backward() -> None:
    w = torch.ones(3, requires_grad=True)
    w.sum().backward()
    with tensafe.watch(w.grad, callback=lambda write: None) as watched:
        w.sum().backward()
    assert [(seen.op, seen.note) for seen in watched.seen] == [("", "backward wrote it")]


def test_memory_that_is_replaced_is_followed() -> None:
    layer = nn.Linear(2, 2)
    with tensafe.watch(layer.weight, callback=lambda write: None) as watched:
        layer.double()
        with torch.no_grad():
            layer.weight.zero_()
        layer.weight.data = torch.ones(2, 2)
        layer.weight.detach().add_(1)
    assert [seen.op for seen in watched.seen] == ["Tensor.data", "Tensor.zero_", "Tensor.data", "Tensor.add_"]
    assert watched.seen[0].note == "it has other memory now"


def test_numpys_own_writes_are_noticed_later(x: Tensor) -> None:
    array = x.numpy()
    with tensafe.watch(x, callback=lambda write: None) as watched:
        array[3] = 100
        x.add_(1)
        array[3] = 200
    assert [seen.op for seen in watched.seen] == ["", "Tensor.add_", ""]
    assert "no torch call" in watched.seen[0].note


def test_an_array(x: Tensor) -> None:
    array = np.zeros(4)
    tensor = torch.from_numpy(array)
    with tensafe.watch(array, callback=lambda write: None) as watched:
        torch.from_numpy(array[2:]).add_(1)
        tensor.mul_(2)
        array[0] = 1
    assert [seen.op for seen in watched.seen] == ["Tensor.add_", "Tensor.mul_", ""]


def test_a_callback_stops_the_program_at_the_line(x: Tensor) -> None:
    def stop(write: Any) -> None:
        raise AssertionError(write.op)

    with tensafe.watch(x, callback=stop), pytest.raises(AssertionError, match=r"Tensor\.add_"):
        x.add_(1)


def test_a_callback_may_write(x: Tensor) -> None:
    with tensafe.watch(x, callback=lambda write: x.zero_()) as watched:
        x.add_(1)
    assert watched.count == 1


def test_everything_comes_back(x: Tensor) -> None:
    torch.ones(1).add_(1)
    before = {owner: dict(vars(owner)) for owner in (torch, Tensor, torch.UntypedStorage, torch.autograd)}
    first, second = tensafe.watch(x), tensafe.watch(x[2:], callback=print)
    assert torch.Tensor.add_ is not torch._C.TensorBase.add_
    first.remove()
    first.remove()
    second.remove()
    for owner, old in before.items():
        changed = {name for name in {*old, *vars(owner)} if old.get(name) is not vars(owner).get(name)}
        assert changed == set(), owner
    assert "_tensafe_watched" not in x.untyped_storage().__dict__


def test_a_watchpoint_ends_with_its_memory() -> None:
    x = torch.ones(3)
    dead = weakref.ref(x), weakref.ref(x.untyped_storage())
    tensafe.watch(x)
    del x
    gc.collect()
    assert [ref() for ref in dead] == [None, None]
    assert "add_" not in vars(Tensor)


def test_with_an_engine_in_any_order(x: Tensor) -> None:
    with tensafe.watching() as seen:
        watched = tensafe.watch(x, callback=lambda write: None)
        x.add_(1)
        x[x > 0].zero_()
    x.add_(1)
    with tensafe.watching() as again:
        x.add_(1)
        x[x > 0].zero_()
        watched.remove()
        x.add_(1)
        x[x > 0].zero_()
    assert watched.count == 3
    assert [finding.code for finding in seen.findings] == ["TS106"]
    assert [finding.count for finding in again.findings] == [1, 1]
    assert "add_" not in vars(Tensor)


def test_what_cannot_be_watched() -> None:
    for wrong in (3, "x", [], {}, nn.ReLU()):
        with pytest.raises(tensafe.TensafeError, match="nothing to watch"):
            tensafe.watch(wrong)
    with pytest.raises(tensafe.TensafeError, match="only"):
        tensafe.watch(torch.ones(1), on="read")


def test_sparse_and_subclasses() -> None:
    class Named(torch.Tensor):
        pass

    sparse, named = torch.eye(3).to_sparse(), torch.ones(3).as_subclass(Named)
    with tensafe.watch([sparse, named], callback=lambda write: None) as watched:
        sparse._values().add_(1)
        named.add_(1)
    assert [seen.name for seen in watched.seen] == ["[sparse, named][0].values", "[sparse, named][1]"]


def test_other_threads_are_seen(x: Tensor) -> None:
    with tensafe.watch(x, callback=lambda write: None) as watched:
        thread = threading.Thread(target=lambda: x.add_(1))
        thread.start()
        thread.join()
    assert watched.count == 1


def test_compiled_code_runs_as_before(x: Tensor) -> None:
    @torch.compile(backend="aot_eager", fullgraph=True)
    def change(x: Tensor) -> Tensor:
        return torch.add(x, 1).mul_(2).relu_() + F.relu(x)

    plain = change(x)
    torch._dynamo.reset()
    with tensafe.watch(torch.ones(1)):
        assert torch.equal(change(x), plain)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scripted = torch.jit.script(add_one)
    assert torch.equal(scripted(x), x + 1)


def add_one(x: Tensor) -> Tensor:
    return torch.add(x, 1)


PROGRAM = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(2, 1)

    def forward(self, x):
        return self.fc(x)

def main():
    model = Net()
    torch.nn.init.zeros_(model.fc.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
    print("done")

main()
"""


def test_named_on_the_command_line(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(PROGRAM))
    command = ["-m", "tensafe", "run", "--watch", "model.fc.weight", "--watch", "net.nothing", str(script)]
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert done.stdout == "done\n"
    lines = done.stderr.splitlines()
    assert lines[0] == "tensafe: train.py:14: Tensor.zero_ writes model.fc.weight"
    assert lines[1] == "tensafe: train.py:18: Tensor.add_ writes model.fc.weight"
    assert lines[2] == "tensafe: model.fc.weight: 4 writes seen"
    assert lines[3].startswith("not checked: --watch net.nothing: no such name was found")
