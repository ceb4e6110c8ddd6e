"""Attention scores are masked in place through .mT after softmax saved them.

kind: saved-tensor-modified
symptom: raises
"""
import torch
from torch import nn

class Attend(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q, self.k = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, x, mask):
        scores = torch.softmax(self.q(x) @ self.k(x).mT, dim=-1)  #@ origin
        scores.mT[mask] = 0.0  #@ culprit
        return scores @ x

torch.manual_seed(0)
x = torch.randn(5, 8)
out = Attend(8)(x, torch.ones(5, 5, dtype=torch.bool).triu(1))
out.sum().backward()  #@ site
print("ok")
