"""A residual branch is added with operator.iadd through functools.reduce. (fixed)"""
import functools, operator
import torch
from torch import nn

torch.manual_seed(0)
class Ensemble(nn.Module):
    def __init__(self):
        super().__init__()
        self.branches = nn.ModuleList(nn.Sequential(nn.Linear(4, 4), nn.Sigmoid()) for _ in range(3))
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        outs = [branch(x) for branch in self.branches]
        total = functools.reduce(operator.add, outs)
        return self.head(total)

loss = Ensemble()(torch.randn(2, 4)).sum()
loss.backward()
print("ok")
