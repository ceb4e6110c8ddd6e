"""Predictions of an epoch are collected for a report with their graphs.

kind: graph-retained
symptom: memory
"""
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
opt = torch.optim.SGD(net.parameters(), 0.01)
all_preds = []
for _ in range(12):
    out = net(torch.randn(8, 4))
    loss = out.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    all_preds.extend(out.softmax(-1))  #@ culprit
print(torch.stack(all_preds).shape)
