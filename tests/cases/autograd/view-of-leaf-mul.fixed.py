"""One head of a parameter is scaled through its view at construction. (fixed)"""
import torch
from torch import nn

class Rope(nn.Module):
    def __init__(self):
        super().__init__()
        self.freq = nn.Parameter(torch.ones(2, 4))
        with torch.no_grad():
            half = self.freq[:, :2]
            half.mul_(0.5)

    def forward(self, x):
        return x * self.freq

print(Rope()(torch.ones(2, 4)).sum())
