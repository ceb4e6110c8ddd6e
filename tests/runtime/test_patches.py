"""Every patch is undone: torch after a watched program is torch before it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import torch

from runtime.watching import watch

OWNERS = (
    torch,
    torch.Tensor,
    torch.nn.Module,
    torch.nn.Parameter,
    torch.optim.Optimizer,
    torch.autograd,
    torch.autograd.graph,
    torch.autograd.graph.saved_tensors_hooks,
    torch.autograd.Function,
    torch._C._nn,
    torch._VF,
    torch.jit._builtins,
    torch.utils._python_dispatch.TorchDispatchMode,
    threading.Thread,
)


def _hooks_are_gone() -> bool:
    """PyTorch refuses to disable hooks while any are active."""
    with torch.autograd.graph.disable_saved_tensors_hooks("none are active"):
        return True


def _attributes() -> list[dict[str, object]]:
    return [dict(vars(owner)) for owner in OWNERS]


def test_everything_comes_back(tmp_path: Path) -> None:
    watch("torch.ones(1)", tmp_path)  # what torch itself loads lazily is loaded now
    before = _attributes()
    record = watch(
        "assert torch.Tensor.add_ is not torch._C.TensorBase.add_\nx = torch.ones(2).add_(1)", tmp_path
    )
    assert "raised" not in record.summary
    for owner, old, new in zip(OWNERS, before, _attributes(), strict=True):
        changed = {name for name in {*old, *new} if old.get(name) is not new.get(name)}
        assert changed == set(), owner
    assert _hooks_are_gone()


def test_everything_comes_back_after_an_error(tmp_path: Path) -> None:
    record = watch("raise ValueError('the program stops')", tmp_path)
    assert record.summary["raised"] == "ValueError: the program stops"
    assert "add_" not in vars(torch.Tensor)
    assert _hooks_are_gone()


def test_storages_forget_when_they_die(tmp_path: Path) -> None:
    record = watch(
        """
        import gc, weakref
        kept = []
        for _ in range(3):
            x = torch.rand(4, requires_grad=True)
            y = x.exp()
            z = y.detach().clone()
            z.add_(1)
            sd = nn.Linear(2, 2).state_dict()
            y.sum().backward()
            kept += [weakref.ref(x), weakref.ref(y), weakref.ref(z), weakref.ref(z.untyped_storage())]
            kept += [weakref.ref(value) for value in sd.values()]
        del x, y, z, sd
        gc.collect()
        alive = [ref for ref in kept if ref() is not None]
        assert not alive, alive
        """,
        tmp_path,
    )
    assert "raised" not in record.summary


def test_an_engine_that_cannot_start_leaves_nothing_behind_and_the_program_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tensafe.rules._loader import catalogue
    from tensafe.run import watch_text
    from tensafe.runtime.calls.functions import Functions

    def refuse(self: Functions, patches: object) -> None:
        raise RuntimeError("no such thing in this torch")

    monkeypatch.setattr(Functions, "install", refuse)
    record = watch_text("import torch\nx = torch.ones(2).add_(1)\n", str(tmp_path / "p.py"), catalogue())
    assert "raised" not in record.summary
    assert record.not_checked[0].what == "the whole program"
    assert "no such thing in this torch" in record.not_checked[0].why
    assert "add_" not in vars(torch.Tensor)


def test_a_watcher_that_fails_is_told_and_the_program_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tensafe.rules._loader import catalogue
    from tensafe.run import watch_text
    from tensafe.runtime.references.ownership import Ownership

    def fail(self: Ownership, *args: object) -> None:
        raise KeyError("ours")

    monkeypatch.setattr(Ownership, "keep", fail)
    text = "import torch\nstate = torch.nn.Linear(2, 1).state_dict()\nassert len(state) == 2\n"
    record = watch_text(text, str(tmp_path / "p.py"), catalogue())
    assert "raised" not in record.summary
    assert [item.what for item in record.not_checked] == ["Module.state_dict"]
