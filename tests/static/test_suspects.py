"""Which NumPy or ctypes line may have written memory that the runtime engine saw change."""

from __future__ import annotations

from tensafe.static.suspects import unseen_writes

FEEDER = """import numpy as np
import torch

class Feeder:
    def __init__(self, rows):
        self.rows, self.at = rows, 0
        self.staging = np.empty((4, 5), dtype=np.float32)
        self.other = np.zeros(3)

    def next(self):
        np.copyto(self.staging, self.rows[self.at])
        self.other[0] = self.at
        return torch.from_numpy(self.staging)
"""

KERNEL = """import numpy as np
import torch

def forward_kernel(gate, up, out):
    np.multiply(gate, up, out=out)

def backward_kernel(dy, gate, d_gate):
    np.multiply(dy, gate, out=d_gate)

def raw(t):
    return t.detach().numpy()

class Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, gate, up):
        out = torch.empty_like(gate)
        forward_kernel(raw(gate), raw(up), raw(out))
        ctx.save_for_backward(gate, up)
        return out

    @staticmethod
    def backward(ctx, dy):
        gate, up = ctx.saved_tensors
        d_gate = gate.detach()
        backward_kernel(raw(dy), raw(gate), raw(d_gate))
        return d_gate, up

w = torch.ones(3, requires_grad=True)
Gate.apply(w.exp(), w * 2).sum().backward()
"""

POINTER = """import ctypes
import torch

def native(ptr, count):
    cells = (ctypes.c_double * count).from_address(ptr)
    for i in range(count):
        cells[i] /= 2.0

def features(x):
    h = torch.tanh(x)
    native(h.data_ptr(), h.numel())
    return h
"""


def lines(source: str, seen: set[int]) -> list[int]:
    return [site.line for site in unseen_writes("suspects.py", source, seen)]


def line_of(source: str, words: str) -> int:
    return next(number for number, line in enumerate(source.splitlines(), 1) if words in line)


def test_a_staging_array() -> None:
    assert lines(FEEDER, {line_of(FEEDER, "from_numpy")}) == [line_of(FEEDER, "copyto")]


def test_the_write_into_memory_seen_on_most_lines_comes_first() -> None:
    seen = {line_of(KERNEL, "raw(up), raw(out)"), line_of(KERNEL, "ctx.saved_tensors")}
    assert lines(KERNEL, seen)[0] == line_of(KERNEL, "out=d_gate")


def test_a_raw_pointer() -> None:
    assert lines(POINTER, {line_of(POINTER, "data_ptr")}) == [line_of(POINTER, "cells[i] /=")]


def test_lines_that_pass_no_array() -> None:
    assert lines(FEEDER, {1, 2}) == []


def test_text_that_is_no_python() -> None:
    assert lines("def (", {1}) == []
