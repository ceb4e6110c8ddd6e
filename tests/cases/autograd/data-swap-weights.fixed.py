"""The averaged weights are copied over the live ones through .data before backward. (fixed)"""
import torch
from torch import nn

torch.manual_seed(0)
net, ema = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)), nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
x = torch.randn(5, 3)
loss = net(x).pow(2).mean()
loss.backward()
for p, q in zip(net.parameters(), ema.parameters()):
    p.data.copy_(0.9 * p.data + 0.1 * q.data)
print(net[0].weight.grad.sum())
