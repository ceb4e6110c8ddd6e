"""The weights of each epoch are kept by .data.numpy() for a plot. (fixed)"""
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), 0.1)
history = []
for _ in range(4):
    opt.zero_grad()
    net(torch.randn(4, 2)).pow(2).mean().backward()
    opt.step()
    history.append(net.weight.data.numpy().copy())
print(len({h.tobytes() for h in history}))
