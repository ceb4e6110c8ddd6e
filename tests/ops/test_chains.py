"""Several operations in turn are run: memory, writes and graph are what the sentence about all says."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch

from tensafe.ops.chains import InAll, in_all
from tensafe.ops.names import UnknownOperationError, row_of, steps_of
from tensafe.ops.row import Graph, Result
from tensafe.ops.stored import stored

EXPRESSIONS = """
x.detach().clone()|x.clone().detach()|x.data.add_(1)|x[0, 0].item()|x[0].add_(1)|x.t().view(4, 3)[0]
x.t()[0].mul_(2)|x.t().detach()[1:].zero_()|x.clone().add_(1)|x[mask].zero_()|x[[0, 2]].t().zero_()
x.detach().split(1)[0].zero_()|x.data.unbind()[1].fill_(3.0)|x.data.t()[0]|x.exp().detach()|x.detach().exp()
x.view(-1)[3:].detach().add_(1)|x.max(0)[0].add_(1)|x.max(0).values.add_(1)|x.data.clone().add_(1)
x.to(torch.float32, copy=True).add_(1)|torch.clone(x.detach())|torch.relu(x[0]).detach()|(x + 1).detach()
-x.detach()|2 * x.detach()|x.detach().numpy()|x.detach().numpy().copy()|x.data.numpy()[0]
x[0].detach().numpy()|x[0].sum().item()|x.sum() + 1
x.argmax().item()|x.topk(2)[0].zero_()|x.diagonal().add_(1)|x.shape[0]|torch.sigmoid(x.t()).clone()
x.t().contiguous().detach()|torch.nn.functional.relu(x[0], inplace=True)|x[0].detach().requires_grad_()
x[1:][0]|x[None][0, 0].zero_()|x.t().T|x.detach().data.zero_()|x.unsqueeze(0).expand(2, 3, 4)
"""
STATEMENTS = """
x.T[0] = 1|x.data[0] = 1|x[0][1] = 5.0|x[mask][0] = 5.0|x.view(-1)[:2] = 0.0|x.clone()[0] = 5.0
x.detach()[mask] = 7.0|x.data.t()[0] = 3.0|x[[0, 2]][0] = 1.0|x.data.split(1)[0][0] = 9.0|x.data += 1
x[0].data[1] = 5.0
x.t()[0] += 1|x.data[mask] *= 3
"""


def _each(text: str) -> list[str]:
    return [one for line in text.strip().splitlines() for one in line.split("|")]


def told(text: str) -> InAll:
    reading = steps_of(text, stored())
    assert reading is not None
    return in_all(reading, [stored()[row_of(step, stored())] for step in reading.steps])


def ran(text: str) -> tuple[torch.Tensor, Any, bool, bool]:
    """x; what came out; whether bytes of x changed; whether its version moved."""
    x = torch.arange(-3.0, 9.0).reshape(3, 4).requires_grad_() * 1
    names: dict[str, Any] = {"torch": torch, "x": x, "mask": torch.tensor([True, False, True])}
    before, version = x.detach().clone(), x._version
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if text in _each(STATEMENTS):
            exec(text, names)
            result = None
        else:
            result = eval(text, names)
    return x, result, not torch.equal(before, x.detach()), version != x._version


def memory(x: torch.Tensor, result: Any) -> Result:
    if isinstance(result, torch.Tensor):
        if result is x:
            return Result.ITSELF
        shared = result.untyped_storage()._cdata == x.untyped_storage()._cdata
        return Result.VIEW if shared else Result.COPY
    if hasattr(result, "__array_interface__") and result.ndim:
        shared = result.__array_interface__["data"][0] == x.data_ptr()
        return Result.VIEW if shared else Result.COPY
    return Result.NOTHING if result is None else Result.VALUE


@pytest.mark.parametrize("text", _each(EXPRESSIONS) + _each(STATEMENTS))
def test_it_does_what_the_sentence_says(text: str) -> None:
    says, (x, result, changed, moved) = told(text), ran(text)
    gives = memory(x, result)
    if result is not None:
        assert says.gives is gives or (says.gives is Result.EITHER and gives in (Result.VIEW, Result.COPY))
    reached = [one for one in says.writes if one.startswith("writes x")]
    assert bool(reached) == changed
    if changed:
        assert ("uncounted" in reached[0]) == (not moved)
    if isinstance(result, torch.Tensor) and result.is_floating_point():
        assert (says.graph is Graph.CUT) == (result.grad_fn is None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "x.detach().clone()",
            "a copy: memory of its own; writes nothing; cut: the result requires no gradient of x",
        ),
        ("x[0].item()", "a value, no tensor; writes nothing"),
        ("w.data[0] = 1", "writes w, uncounted: autograd's check does not see it"),
        ("x[mask].zero_()", "a copy: memory of its own; writes the copy alone, x is unchanged"),
        ("x[y].zero_()", "a view of x, or a copy; writes x where it is a view of it, else the copy alone"),
        ("x[i][j]", "a view of x, or a copy; writes nothing"),
        ("F.relu(h.t(), inplace=True)", "a view of h; writes h"),
        ("torch.add(x.t(), 1, out=y)", "y itself; writes y"),
    ],
)
def test_the_sentence(text: str, words: str) -> None:
    assert told(text).words() == words


def test_an_unknown_step_is_told() -> None:
    with pytest.raises(UnknownOperationError, match="nonsense"):
        told("x.detach().nonsense()")
