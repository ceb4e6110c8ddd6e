"""Activation checkpointing of both kinds, with dropout: the recomputation must draw the same numbers."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


def losses(use_reentrant: bool) -> list[float]:
    torch.manual_seed(0)
    blocks = nn.ModuleList(
        nn.Sequential(nn.Linear(16, 16), nn.ReLU(inplace=True), nn.Dropout(0.2)) for _ in range(3)
    )
    head = nn.Linear(16, 1)
    optimizer = torch.optim.Adam([*blocks.parameters(), *head.parameters()], lr=1e-2)
    seen = []
    for _ in range(10):
        # reentrant checkpointing gives a segment no gradient unless one of its inputs requires it
        x = torch.randn(8, 16, requires_grad=True)
        hidden = x
        for block in blocks:
            hidden = checkpoint(block, hidden, use_reentrant=use_reentrant)
        loss = (head(hidden) - x.detach().sum(dim=1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen.append(loss.item())
    return seen


if __name__ == "__main__":
    torch.set_num_threads(1)
    for reentrant in (True, False):
        print(f"use_reentrant={reentrant}", *(f"{loss:.9f}" for loss in losses(reentrant)))
