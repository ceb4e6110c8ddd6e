"""Torch's own operations on torch's own samples: the engine changes no bit and finds nothing.

A sample of each operation by default; `TENSAFE_OPINFO=all` runs all samples and takes minutes.
"""

from __future__ import annotations

import os

import pytest
from torch.testing._internal.common_methods_invocations import op_db

from runtime.op_samples import Counts, compare

ALL = os.environ.get("TENSAFE_OPINFO") == "all"
TOGETHER = 1 if ALL else 20  # operations under one engine


def test_results_are_those_of_plain_torch_and_nothing_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    counts = Counts()
    for first in range(0, len(op_db), TOGETHER):
        compare(op_db[first : first + TOGETHER], None if ALL else 1, counts)
    with capsys.disabled():
        print(f"\n{counts}")
    assert not counts.wrong, "\n".join(counts.wrong[:40])
    assert len(counts.ops) > 600
