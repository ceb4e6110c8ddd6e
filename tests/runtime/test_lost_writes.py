"""Lost writes: found where the temporary dies with the statement, silent everywhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.watching import lines, loud, watch

SETUP = "import torch\nx = torch.rand(5, 3)\nmask = x[:, 0] > -1\nrows = torch.tensor([0, 2])\n"

LOST = (
    "x[mask].zero_()",
    "x[mask][:, 1] = 1",
    "x[[0, 2]][0] += 1",
    "x[rows][0].fill_(1)",
    "x[rows].mul_(2).add_(1)",
    "x.t().reshape(-1)[0] = 5",
    "x.index_select(0, rows).zero_()",
    "x[mask][mask] = 0",
    "x[rows].copy_(torch.zeros(2, 3))",
    "x.double().add_(1)",
    "x.t().to(torch.int64)[0] = 1",
)
KEPT = (
    "x[mask] = 0",
    "x[1:3][0] = 2",
    "x[..., 0][mask] = 1",
    "x[0].zero_()",
    "x[mask] *= 2",
    "x.view(-1)[0] = 1",
    "x.reshape(-1)[0] = 1",
    "y = x[mask].mul_(2)",
    "y = x[mask]; y.zero_(); y[0] = 1; y[0].fill_(3)",
    "print(end='', file=None) if x[mask].zero_().sum() else None",
    "g = torch.ones(3, requires_grad=True); (g * g).sum().backward(); g.grad[:2].zero_(); g.data[0] = 1",
    "[row.zero_() for row in x[mask]]",
    "held = [x[mask]]; held[0].zero_(); held[0][0] = 1",
    "x.numpy()[0] = 1",
    "x[0, 1].add_(1)",
    "x.unbind(0)[0].zero_()",
    "i = 2; torch.from_numpy(x.numpy())[i].zero_(); torch.from_numpy(x.numpy())[i][0] = 1",
    "raw = bytearray(16); torch.frombuffer(raw, dtype=torch.float32).view(2, 2)[torch.tensor(1)].fill_(1)",
    "i = 1; torch.from_dlpack(x.numpy())[i].add_(1)",
    "s = x.untyped_storage(); i = 1; torch.tensor([]).set_(s, 2, (2, 2))[i].fill_(1.0)",
    "s = torch.eye(3).to_sparse().coalesce(); k = 0; s.values()[k].fill_(9.0)",
    "i = 0; torch.view_as_real(x.to(torch.complex64))[i]; x.to(torch.complex64).real[i]",
    "w = torch.nn.Linear(2, 2); i = 0; list(w.parameters())[i].data.zero_()",
    "w = torch.nn.Linear(2, 2); w(torch.ones(1, 2)).sum().backward(); i = 0; w.weight.grad[i].zero_()",
    "d = {'a': x}; k = 'a'; d[k].add_(1)",
    "x.float().add_(1)",
    "x.to(torch.float32)[0] = 1",
    "x.double().clone().add_(1)",
)


@pytest.mark.parametrize("write", LOST)
@pytest.mark.parametrize("scope", ["module", "function"])
def test_lost(write: str, scope: str, tmp_path: Path) -> None:
    code = write if scope == "module" else f"def change(x):\n    {write}\nchange(x)"
    assert lines(watch(code, tmp_path, SETUP), "TS106") == [write]


@pytest.mark.parametrize("write", KEPT)
@pytest.mark.parametrize("scope", ["module", "function"])
def test_kept(write: str, scope: str, tmp_path: Path) -> None:
    code = write if scope == "module" else f"def change(x):\n    {write}\nchange(x)"
    record = watch(code, tmp_path, SETUP)
    assert "raised" not in record.summary
    assert loud(record) == []
