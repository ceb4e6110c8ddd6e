"""What `bench/copies.py` copies: small tensors by the thousand, models, one large tensor, plain Python."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn


@dataclass(frozen=True)
class Subject:
    """One object to copy; `nbytes` are those of its storages."""

    name: str
    make: Callable[[], Any]
    reach: float  # how many times as fast as `copy.deepcopy` it is to be
    rounds: int


def state_dict() -> Any:
    """2,000 tensors of 1 KB."""
    return OrderedDict((f"layer{i}.weight", torch.randn(256)) for i in range(2000))


def module() -> nn.Module:
    """576 parameters of 1 KB and 64 bytes, in 288 layers."""
    return nn.Sequential(*[nn.Linear(16, 16) for _ in range(288)])


def stepped(model: nn.Module) -> torch.optim.Optimizer:
    optimizer = torch.optim.AdamW(model.parameters())
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    optimizer.step()
    return optimizer


def adamw_state() -> Any:
    return stepped(module()).state_dict()


def training() -> Any:
    """A module and the optimizer that holds its parameters."""
    model = module()
    optimizer = stepped(model)
    optimizer.zero_grad()
    return {"model": model, "optimizer": optimizer, "epoch": 3}


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.ModuleList([nn.Linear(width, 3 * width), nn.Linear(width, width)])
        self.feedforward = nn.ModuleList([nn.Linear(width, 4 * width), nn.Linear(4 * width, width)])


def gpt2() -> nn.Module:
    """The shapes of GPT-2 small: 124 million parameters, the output tied to the embedding."""
    model = nn.Module()
    model.tokens, model.positions = nn.Embedding(50257, 768), nn.Embedding(1024, 768)
    model.blocks = nn.ModuleList(Block(768) for _ in range(12))
    model.norm, model.head = nn.LayerNorm(768), nn.Linear(768, 50257, bias=False)
    model.head.weight = model.tokens.weight
    return model


def config(with_tensors: bool) -> Any:
    """Dictionaries, lists, objects and numbers; with or without a few tensors."""
    layers = [
        {"name": f"conv{i}", "size": (3, 3), "stride": [1, 1], "init": SimpleNamespace(mean=0.0, std=0.02)}
        for i in range(60)
    ]
    tree = {"layers": layers, "data": {"path": "train", "mix": [0.1] * 50}, "tags": {"a", "b"}, "seed": 1}
    if with_tensors:
        tree["mean"], tree["anchors"] = torch.rand(3), [torch.rand(9, 2) for _ in range(4)]
    return tree


def sliced() -> Any:
    """Two rows of a 64 MB tensor."""
    return {"rows": torch.randn(16 << 20).view(1024, -1)[:2]}


SUBJECTS = [
    Subject("2,000 x 1 KB state_dict", state_dict, 10, 15),
    Subject("AdamW state, 576 parameters", adamw_state, 10, 15),
    Subject("module, 576 parameters", module, 5, 15),
    Subject("module and optimizer", training, 0.95, 11),
    Subject("GPT-2-sized module", gpt2, 1.5, 15),
    Subject("one 512 MB tensor", lambda: torch.randn(128 << 20), 1.5, 7),
    Subject("slice of a 64 MB tensor", sliced, 0.95, 9),
    Subject("config with 5 tensors", lambda: config(True), 0.95, 41),
    Subject("config without tensors", lambda: config(False), 0.95, 41),
    Subject("one small dict", lambda: {"lr": 0.1, "steps": [1, 2, 3]}, 0.95, 201),
    Subject("one number", lambda: 3, 0.95, 201),
    Subject("one small tensor", lambda: torch.randn(8), 0.95, 101),
    Subject("one Linear", lambda: nn.Linear(4, 4), 0.95, 101),
]
