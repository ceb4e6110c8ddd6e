"""Weights before a round of local training are kept in a list of .data. (fixed)"""
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(3, 1)
before = [p.data.clone() for p in net.parameters()]
opt = torch.optim.SGD(net.parameters(), 0.5)
for _ in range(3):
    opt.zero_grad()
    net(torch.randn(8, 3)).pow(2).mean().backward()
    opt.step()
delta = [p.data - b for p, b in zip(net.parameters(), before)]
print(sum(d.abs().sum().item() for d in delta) > 0)
