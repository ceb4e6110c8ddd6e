"""The loss is summed with item() and wrapped again. (fixed)"""
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(3):
    opt.zero_grad()
    total = 0.0
    for x in torch.randn(4, 3):
        total += (net(x) - 1).pow(2).sum()
    loss = total
    loss.backward()
    opt.step()
print("ok")
