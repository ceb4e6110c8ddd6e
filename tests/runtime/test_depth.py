"""`--depth exact`: writes that no Python spelling makes get their line, and the program is left as it is."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
import torch

from runtime.children import both, same
from runtime.test_guest import PROGRAMS, SETUP
from tensafe.runtime.calls import exact
from tensafe.runtime.calls.exact import Exact
from tensafe.runtime.patches import Patches
from tensafe.runtime.storages.ledger import ledger_of

HIDDEN = """
import threading
import torch

@torch.jit.script
def scripted(a: torch.Tensor):
    return a.add_(1)

@torch.jit.script
def forked(a: torch.Tensor):
    return torch.jit.wait(torch.jit.fork(scripted, a))  # in a thread of C++

def through_storage():
    w = torch.ones(3, requires_grad=True)
    y = w.tanh()
    y.untyped_storage().fill_(1)  # storage
    y.sum().backward()

def in_torchscript():
    w = torch.ones(3, requires_grad=True)
    y = w.tanh()
    scripted(y)  # TorchScript
    y.sum().backward()

def in_backward():
    layer = torch.nn.Linear(2, 2)
    layer(torch.ones(1, 2)).sum().backward()
    z = (torch.ones(2, 2, requires_grad=True) * layer.weight.grad).sum()
    layer(torch.ones(1, 2)).sum().backward()  # engine
    z.backward()

def work():
    print(forked(torch.ones(2)))
    for f in (through_storage, in_torchscript, in_backward):
        try:
            f()
            print("fine")
        except RuntimeError as error:
            print(str(error)[:60])

{start}
"""
LINES = {
    "y.untyped_storage().fill_(1)": "aten.fill_",
    "scripted(y)": "aten.add_",
    "layer(torch.ones(1, 2)).sum().backward()": "aten.add_ of AccumulateGrad",
}


@pytest.mark.parametrize(
    "start", ["work()", "thread = threading.Thread(target=work); thread.start(); thread.join()"]
)
def test_hidden_writes_are_named(start: str, tmp_path: Path) -> None:
    runs = both("", tmp_path, ["--depth", "exact"], setup=HIDDEN.format(start=start))
    assert same(runs)
    text = (tmp_path / "program.py").read_text().splitlines()
    named = {}
    for finding in runs.loud:
        line = text[finding.at.line - 1].partition("  #")[0].strip()
        named[line] = finding.message.split("`")[1]
    assert named == LINES
    assert not runs.unknown


@pytest.mark.parametrize("name", ["compile", "modes and subclasses", "torch.func"])
def test_programs_run_as_ever(name: str, tmp_path: Path) -> None:
    runs = both("", tmp_path, ["--depth", "exact"], setup=SETUP + textwrap.dedent(PROGRAMS[name]))
    assert same(runs)
    assert not runs.loud
    assert not [line for line in runs.unknown if "failed" in line]


def test_everything_is_taken_back() -> None:
    told: list[object] = []
    watching, patches = Exact(lambda *what: told.append(what), lambda *what: told.append(what)), Patches()
    watching.install(patches)
    x = torch.ones(3)
    x.untyped_storage().fill_(1)
    seen = ledger_of(x).raw
    watching.stop()
    patches.undo()
    with torch._C._IncludeDispatchKeyGuard(torch._C._dispatch_key_parse(exact.KEY)):
        x.untyped_storage().fill_(2)
    assert seen is not None
    assert seen[0] == "aten.fill_"
    assert ledger_of(x).raw == seen
    assert not told


def test_a_torch_without_the_key_is_said_and_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, str]] = []
    monkeypatch.setattr(exact, "KEY", "NoSuchKey")
    watching, patches = Exact(lambda *what: told.append(what), lambda *what: None), Patches()
    watching.install(patches)
    assert [what for what, _ in told] == ["writes by C++ (--depth exact)"]
    assert torch.ones(3).add_(1).sum() == 6
    watching.stop()
    patches.undo()
