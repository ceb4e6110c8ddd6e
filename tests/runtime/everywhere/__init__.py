"""Programs for every corner of PyTorch, as text: each defines `run()`, whose result is compared bitwise."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from runtime.everywhere import compiling, hooks, importing, subclasses, transforms

SETUP = """\
import torch, torch.nn as nn, torch.nn.functional as F
from torch import Tensor

def make():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(inplace=True), nn.BatchNorm1d(8), nn.Linear(8, 2))

def batch(seed=1):
    return torch.randn(6, 4, generator=torch.Generator().manual_seed(seed))

def grads(module):
    return [None if p.grad is None else p.grad.clone() for p in module.parameters()]

def train(net, steps=3, forward=None, optimizer=None):
    optimizer = optimizer or torch.optim.AdamW(net.parameters(), lr=0.01)
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        loss = (forward or net)(batch(step)).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [p.detach().clone() for p in net.parameters()]

"""
FAMILIES = {
    "transforms": transforms.PROGRAMS,
    "compiling": compiling.PROGRAMS,
    "subclasses": subclasses.PROGRAMS,
    "hooks": hooks.PROGRAMS,
    "importing": importing.PROGRAMS,
}


def names() -> Iterator[tuple[str, str]]:
    for family, programs in FAMILIES.items():
        for name in programs:
            yield family, name


def text(family: str, name: str) -> str:
    return SETUP + textwrap.dedent(FAMILIES[family][name])
