"""Every corner of PyTorch under the engine: the same bits, the same output, and nothing found."""

from __future__ import annotations

import linecache
import random
import shutil
import warnings
from typing import Any

import numpy as np
import pytest
import torch

import tensafe
from runtime import everywhere
from runtime.outcomes import held, told
from tensafe.findings import Severity


def _program(family: str, name: str) -> Any:
    text = everywhere.text(family, name)
    path = f"<string {family}, {name}>"
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    namespace: dict[str, Any] = {"__name__": "program"}
    exec(compile(text, path, "exec", dont_inherit=True), namespace)
    return namespace["run"]


def _outcome(run: Any) -> Any:
    """All that comes out, its graph cut by a call that nobody wraps, and the state of every generator."""
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = held(run())
    drawn = torch.get_rng_state(), random.random(), np.random.rand()
    told_of = sorted({f"{item.category.__name__} {str(item.message).splitlines()[0]}" for item in caught})
    return result, drawn, told_of, torch.is_grad_enabled()


@pytest.mark.parametrize(("family", "name"), everywhere.names())
def test_the_same_bits_and_nothing_found(family: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    if name == "inductor" and shutil.which("g++") is None:
        pytest.skip("inductor needs a C++ compiler")
    run = _program(family, name)
    _outcome(run)  # what torch does once, such as a first warning, it does here
    capsys.readouterr()
    plain = told(_outcome(run)), capsys.readouterr()
    with tensafe.watching() as seen:
        outcome = _outcome(run)
    watched = told(outcome), capsys.readouterr()
    assert watched == plain
    assert [item for item in seen.not_checked if "failed" in item.why or "could not" in item.why] == []
    assert [finding for finding in seen.findings if finding.severity is not Severity.NOTICE] == []
    assert torch._C._autograd._saved_tensors_hooks_get_disabled_error_message() is None
