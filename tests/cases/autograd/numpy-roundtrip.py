"""A median filter in NumPy sits between encoder and head.

kind: graph-cut
symptom: silent
"""
import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
enc, head = nn.Linear(4, 6), nn.Linear(6, 1)
opt = torch.optim.SGD([*enc.parameters(), *head.parameters()], 0.1)
for _ in range(3):
    opt.zero_grad()
    h = enc(torch.randn(8, 4))
    smooth = torch.from_numpy(np.clip(h.detach().numpy(), -1, 1))  #@ culprit
    loss = head(smooth).pow(2).mean()
    loss.backward()
    opt.step()
print("ok")
